"""Merge the keywords of a training into its configuration, and check that before any data is read."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from molgraph.base.errors import ConflictError, UnsupportedError
from molgraph.base.options import Keyword, fill, optional
from molgraph.base.paths import missing_file
from molgraph.base.recipe_keys import KEYS, KEYWORDS
from molgraph.base.registry import full_name, get
from molgraph.base.run_config import RunConfig
from molgraph.base.workbook import split_sheet
from molgraph.chem.standardise import preset
from molgraph.data.cards import card
from molgraph.run.start import as_its_start, with_model_of_start

Recipe: TypeAlias = RunConfig | str | Path | None  #: None: the defaults
TABLES = ("test", "unlabelled")  # a path, which a recipe can name, or a frame
TRAIN_KEYWORDS = {name: keyword for name, keyword in KEYWORDS.items() if name not in TABLES}


def train_config(
    recipe: Recipe, options: Mapping[str, Any], params: Mapping[str, Any] | None, data: Any, test: Any, unlabelled: Any
) -> RunConfig:
    """The configuration that the arguments of ``train`` ask for; its start decides what they leave open."""
    values = fill(optional(TRAIN_KEYWORDS), options) | {"params": params}
    tables = zip(TABLES, (test, unlabelled), strict=True)
    values |= {name: os.fspath(table) for name, table in tables if isinstance(table, str | os.PathLike)}
    if isinstance(data, str) and data.startswith("dataset:"):  # its card may recommend a split
        values["path"] = data
    values = {name: value for name, value in values.items() if value is not None}
    config = as_its_start(with_model_of_start(config_of(recipe, values)))
    if not get("objective", config.training.objective).labelled:
        raise UnsupportedError(
            f"{config.training.objective} learns no targets, and train does", hint="molgraph pretrain trains by it"
        )
    return config


def corpus_values(
    keywords: Mapping[str, Keyword], options: Mapping[str, Any], data: Any, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The keywords of a verb that learns from a corpus, those that were given; a path of data is one of them."""
    values = fill(optional(keywords), options) | {"params": params, "path": data if isinstance(data, str) else None}
    return {name: value for name, value in values.items() if value is not None}


def config_of(recipe: Recipe, values: Mapping[str, Any]) -> RunConfig:
    """A recipe's configuration with keywords of ``train`` laid over it."""
    base = recipe if isinstance(recipe, RunConfig) else RunConfig() if recipe is None else RunConfig.from_toml(recipe)
    sections = base.model_dump(exclude_unset=True)
    for name, value in values.items():
        for section, key in KEYS[name]:
            if name in ("targets", "helpers", "features") and isinstance(value, str):
                value = (value,)
            keys = sections.setdefault(section, {})
            keys[key] = {**keys.get(key, {}), **value} if name == "params" else value
    if recipe is None and "split" not in values and (splitter := advised_split(values.get("path"))):
        sections.setdefault("split", {})["splitter"] = splitter
    return RunConfig.from_dict(sections)


def advised_split(path: str | None) -> str:
    """The split that the card of ``dataset:NAME`` recommends; empty for other sources, and for a column of its own.

    Example:
        >>> advised_split("dataset:bbbp"), advised_split("assay.csv")
        ('scaffold/deepchem', '')
    """
    if path is None or not path.startswith("dataset:"):
        return ""
    splitter = card(path.removeprefix("dataset:")).split
    return "" if splitter == "column" else splitter


def check_config(config: RunConfig) -> None:
    """Refuse what can be known to be wrong without a look at the data."""
    preset(config.data.standardise)
    path, name = split_file(config), split_name(config)
    if path is not None and not path.is_file():
        raise missing_file(path, "split file")
    get("split", name)
    for file, what in ((config.data.test, "test table"), (config.data.unlabelled, "table of rows without labels")):
        elsewhere = file is None or file == "-" or file.startswith(("dataset:", "builtin:"))
        if not elsewhere and not Path(split_sheet(str(file))[0]).is_file():
            raise missing_file(str(file), what)


def check_report(config: RunConfig) -> None:
    """Refuse a report on a run whose fractions leave nothing to test."""
    if config.data.test is None and config.split.fractions[2] == 0 and get("split", split_name(config)).uses_fractions:
        raise ConflictError(
            "a report needs a test part, and the fractions leave none", hint="as in --fractions 0.8,0.1,0.1"
        )


def split_file(config: RunConfig) -> Path | None:
    """The file that says how to split, where the configuration names one."""
    splitter = config.split.splitter
    return Path(splitter) if splitter.endswith((".json", ".csv")) else None


def split_name(config: RunConfig) -> str:
    """The split's registered name: a splitter's, or ``file``, or ``column`` where the table has one of its own."""
    if split_file(config) is not None:
        return "file"
    column = config.data.split_column is not None and config.split.splitter not in ("time", "group")
    return "column" if column else full_name("split", config.split.splitter)

"""Merge the keywords of ``train`` into a recipe, and check the recipe before any data is read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from molgraph.base.contracts import Generator
from molgraph.base.errors import ConflictError, UnsupportedError
from molgraph.base.options import Keyword, fill, optional
from molgraph.base.paths import missing_file
from molgraph.base.recipe_keys import DEFAULTS, KEYS
from molgraph.base.registry import full_name, get, names
from molgraph.base.run_config import RunConfig
from molgraph.base.workbook import split_sheet
from molgraph.chem.standardise import preset
from molgraph.data.cards import card
from molgraph.train.modelfile import load_start

PRETRAIN = "pretrain one: molgraph pretrain library.smi -m gin -o encoder.mgm"
READING = ("decimal", "qualifiers", "unit", "log")  # how cells of values are read


def recipe_of(recipe: RunConfig | str | Path | None, given: Mapping[str, Any]) -> RunConfig:
    """A recipe with the keywords of ``train`` that were given laid over it."""
    base = recipe if isinstance(recipe, RunConfig) else RunConfig() if recipe is None else RunConfig.from_toml(recipe)
    values = base.model_dump(exclude_unset=True)
    for name, value in given.items():
        for section, key in KEYS[name]:
            if name in ("targets", "helpers", "features") and isinstance(value, str):
                value = (value,)
            own = values.setdefault(section, {})
            own[key] = {**own.get(key, {}), **value} if name == "params" else value
    if recipe is None and "split" not in given and (advised := advised_split(given.get("path"))):
        values.setdefault("split", {})["splitter"] = advised
    return RunConfig.from_dict(values)


def corpus_keywords(
    known: Mapping[str, Keyword], options: Mapping[str, Any], data: Any, params: Mapping[str, Any] | None
) -> dict[str, Any]:
    """The keywords of a verb that learns from a corpus, those that were given; a path of data is one of them."""
    given = fill(optional(known), options) | {"params": params, "path": data if isinstance(data, str) else None}
    return {name: value for name, value in given.items() if value is not None}


def with_start(config: RunConfig) -> RunConfig:
    """The recipe, with the model of the file that its encoder starts from where it names none itself.

    Raises:
        UnsupportedError: the file's model has no encoder.
    """
    if config.model.init is None or "name" in config.model.model_fields_set:
        return config
    found = load_start(config.model.init)
    if isinstance(found.method, Generator) or "init" not in found.method.param_names():
        anew = f"; or train it anew: molgraph train assay.csv -t Y -m {found.kind}" * (found.kind in names("method"))
        said = f"{config.model.init} holds a {found.kind}, which has no encoder to start from"
        raise UnsupportedError(said, hint=PRETRAIN + anew)
    return config.model_copy(update={"model": config.model.model_copy(update={"name": found.method.model_name})})


def as_its_start(config: RunConfig) -> RunConfig:
    """The recipe with what a start from a file decides where it says nothing of it: lp-ft, and the standardiser.

    Raises:
        ConflictError: another standardiser than the file's.
    """
    if config.model.init is None:
        return config
    theirs, data, training = load_start(config.model.init).standardiser, config.data, config.training
    if "standardise" in data.model_fields_set and data.standardise != theirs:
        words = f"the molecules of {config.model.init} were standardised by {theirs!r}, not by {data.standardise!r}"
        raise ConflictError(words, hint=f"leave --standardise out, or set it to {theirs}")
    data = data.model_copy(update={"standardise": theirs})
    if "callback" not in training.model_fields_set and training.objective == DEFAULTS.objective:
        training = training.model_copy(update={"callback": "lp-ft"})
    return config.model_copy(update={"data": data, "training": training})


def advised_split(path: str | None) -> str:
    """The split that the card of ``dataset:NAME`` recommends; empty for other sources, and for a column of its own.

    Example:
        >>> advised_split("dataset:bbbp"), advised_split("assay.csv")
        ('scaffold/deepchem', '')
    """
    if path is None or not path.startswith("dataset:"):
        return ""
    advised = card(path.removeprefix("dataset:")).split
    return "" if advised == "column" else advised


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
    """The file that says how to split, where the recipe names one."""
    asked = config.split.splitter
    return Path(asked) if asked.endswith((".json", ".csv")) else None


def split_name(config: RunConfig) -> str:
    """The split's registered name: a splitter's, or ``file``, or ``column`` where the table has one of its own."""
    if split_file(config) is not None:
        return "file"
    own = config.data.split_column is not None and config.split.splitter not in ("time", "group")
    return "column" if own else full_name("split", config.split.splitter)

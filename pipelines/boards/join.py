"""Join two records of one recipe whose boards were computed at different times or on different machines.

    molgraph bench run pipelines/adme.toml --only dataset=adme_rppb -o bench/adme    # on one machine
    python pipelines/boards/run.py                                                   # keeps its record
    molgraph bench run pipelines/adme.toml --only dataset=adme_sol -o bench/adme     # later, on another
    python pipelines/boards/run.py                                                   # joins both records

A board, that is a dataset under a split, is taken whole from the record that has more of its cells, the newer of two.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from molgraph.base.csv_text import csv_text
from molgraph.base.errors import DataError
from molgraph.base.paths import atomic_write
from molgraph.evaluate.benchmark.published_record import ABOUT, FORMAT, PACKED
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.run_folder import RECIPE
from molgraph.evaluate.benchmark.scoring import read_scores

BOARD = ["dataset", "split"]


def join_records(old: Path | None, new: Path) -> None:
    """Add the boards of the record ``old`` to the record ``new`` where that has fewer of their cells.

    ``new`` then counts the cells of its whole recipe, whatever part was run; one of all cells takes nothing from
    ``old``, which may be of another recipe.

    Raises:
        DataError: they are records of different recipes, or of different data or folds.
    """
    recipe, scores = BenchRecipe.from_toml(new / RECIPE), read_scores(new / PACKED)
    about = json.loads((new / ABOUT).read_text(encoding="utf-8"))
    if old is not None and about["done"] < _wanted(recipe, scores):
        recipe, scores, about = _joined(old, recipe, scores, about)
    about |= {"wanted": _wanted(recipe, scores)}
    about["facts"]["recipe sha256"] = hashlib.sha256(recipe.to_toml().encode()).hexdigest()
    texts = {RECIPE: recipe.to_toml(), ABOUT: json.dumps(about, indent=1) + "\n"}
    contents = {name: text.encode() for name, text in texts.items()}
    for name, content in (contents | {PACKED: gzip.compress(csv_text(scores).encode(), mtime=0)}).items():
        with atomic_write(new / name) as file:
            file.write(content)


def _joined(
    old: Path, recipe: BenchRecipe, scores: pd.DataFrame, about: dict[str, Any]
) -> tuple[BenchRecipe, pd.DataFrame, dict[str, Any]]:
    """Recipe, scores and knowledge of both."""
    before, known = BenchRecipe.from_toml(old / RECIPE), read_scores(old / PACKED)
    entered = {m.row: m for each in (before, recipe) for m in each.method if m.kind == "external"}
    own, theirs = (tuple(m for m in each.method if m.row not in entered) for each in (recipe, before))
    if recipe.model_copy(update={"method": own}) != before.model_copy(update={"method": theirs}):
        raise DataError(
            f"{old} is a record of another recipe than the new one",
            hint="compute all of its boards again, or delete the old record first",
        )
    recipe = recipe.model_copy(update={"method": (*own, *entered.values())})
    _check_same_data(pd.concat([known, scores]))
    counts, known_counts = (frame.groupby(BOARD)["key"].nunique() for frame in (scores, known))
    older = {place for place, n in known_counts.items() if n > counts.get(place, 0)}
    kept = [known[[place in older for place in _places(known)]], scores[[p not in older for p in _places(scores)]]]
    order = {(d, s.name): i for i, (d, s) in enumerate((d, s) for d in recipe.datasets for s in recipe.split_of(d))}
    packed = pd.concat(kept).assign(_at=lambda f: [order[place] for place in _places(f)])
    packed = packed.sort_values("_at", kind="stable").drop(columns="_at")
    return recipe, packed, _about(json.loads((old / ABOUT).read_text(encoding="utf-8")), about, packed, older)


def _wanted(recipe: BenchRecipe, scores: pd.DataFrame) -> int:
    """How many cells the recipe asks for, of all its datasets, and those that were submitted."""
    own, entered = ([m for m in recipe.method if (m.kind == "external") is yes] for yes in (False, True))
    boards = [(dataset, split) for dataset in recipe.datasets for split in recipe.split_of(dataset)]
    rows = [sum(not m.skips(dataset, split.name) for m in own) for dataset, split in boards]
    asked = sum(n * len(s.parts) * len(recipe.seeds_of(s)) for (_, s), n in zip(boards, rows, strict=True))
    return asked + scores.loc[scores["method"].isin([m.row for m in entered]), "key"].nunique()


def _places(frame: pd.DataFrame) -> Iterable[tuple[str, str]]:
    return zip(frame["dataset"], frame["split"], strict=True)


def _check_same_data(frame: pd.DataFrame) -> None:
    for column, keys in (("data_hash", ["dataset"]), ("split_hash", [*BOARD, "repeat", "fold"])):
        if len(bad := frame.groupby(keys)[column].nunique().loc[lambda n: n > 1]):
            raise DataError(f"the records differ in the {column} of {bad.index[0]}", hint="delete the old record first")


def _about(
    old: Mapping[str, Any], new: Mapping[str, Any], packed: pd.DataFrame, older: set[tuple[str, str]]
) -> dict[str, Any]:
    """What both know beside the scores."""
    if {old["format"], new["format"]} != {FORMAT}:
        raise DataError(f"a record's format is not {FORMAT!r}", hint="was it written by this version?")
    listed = {
        key: [e for e in old[key] if tuple(e[:2]) in older] + [e for e in new[key] if tuple(e[:2]) not in older]
        for key in ("ceilings", "errors", "refused_splits")
    }
    each = packed.drop_duplicates("key")
    status = Counter(each["status"][each["status"] != "ok"])
    merged = {key: {**old[key], **new[key]} for key in ("leading", "rows", "entered", "refused")}
    return {
        **new,
        **merged,
        **listed,
        "facts": _facts(old["facts"], new["facts"], each),
        "done": len(each),
        "failed": dict(status),
    }


def _facts(old: Mapping[str, str], new: Mapping[str, str], cells: pd.DataFrame) -> dict[str, str]:
    hours = cells["cpu_seconds"].sum() / 3600
    facts = {**old, **new, "CPU time of all cells": f"{hours:.1f} h" if hours >= 1 else f"{60 * hours:.1f} min"}
    days = sorted(day for told in (old, new) for day in told["computed"].split(" to "))
    facts["computed"] = " to ".join(dict.fromkeys((days[0], days[-1])))
    for name in (name for name in facts if name.startswith("version of ") or name == "machine"):
        sign = "; " if name == "machine" else ", "
        facts[name] = sign.join(dict.fromkeys(x for told in (old, new) for x in told.get(name, "").split(sign) if x))
    commits = [each for told in (old, new) for each in re.findall(r"\b[0-9a-f]{12}\b", told.get("commit", ""))]
    return facts | {"commit": f"cells at {', '.join(dict.fromkeys(commits))}" if commits else ""}

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


def join_records(old: Path, new: Path) -> None:
    """Add the boards of the record ``old`` to the record ``new`` where that has fewer of their cells.

    Raises:
        DataError: they are records of different recipes, or of different data or folds.
    """
    recipes = [BenchRecipe.from_toml(folder / RECIPE) for folder in (old, new)]
    scores = [read_scores(folder / PACKED) for folder in (old, new)]
    entered = {m.row: m for each in recipes for m in each.method if m.kind == "external"}
    own = [tuple(m for m in each.method if m.row not in entered) for each in recipes]
    bare = [each.model_copy(update={"method": rows}) for each, rows in zip(recipes, own, strict=True)]
    if bare[0] != bare[1]:
        raise DataError(
            f"{old} is a record of another recipe than {new}",
            hint="compute all of its boards again, or delete the old record first",
        )
    recipe = bare[1].model_copy(update={"method": (*own[1], *entered.values())})
    _check_same_data(pd.concat(scores))
    cells = [frame.groupby(BOARD)["key"].nunique() for frame in scores]
    older = {place for place, n in cells[0].items() if n > cells[1].get(place, 0)}
    if not older:
        return
    keep = [
        frame[[(place in older) is wanted for place in _places(frame)]]
        for frame, wanted in zip(scores, (True, False), strict=True)
    ]
    order = {(d, s.name): i for i, (d, s) in enumerate((d, s) for d in recipe.datasets for s in recipe.split_of(d))}
    packed = pd.concat(keep).assign(_at=lambda f: [order[place] for place in _places(f)])
    packed = packed.sort_values("_at", kind="stable").drop(columns="_at")
    told = [json.loads((folder / ABOUT).read_text(encoding="utf-8")) for folder in (old, new)]
    about = _about(told, packed, older) | {"wanted": _wanted(recipe)}
    about["facts"]["recipe sha256"] = hashlib.sha256(recipe.to_toml().encode()).hexdigest()
    with atomic_write(new / RECIPE, "w") as file:
        file.write(recipe.to_toml())
    with atomic_write(new / PACKED) as file:
        file.write(gzip.compress(csv_text(packed).encode(), mtime=0))
    with atomic_write(new / ABOUT, "w") as file:
        file.write(json.dumps(about, indent=1) + "\n")


def _wanted(recipe: BenchRecipe) -> int:
    """How many cells the recipe asks for, of all its datasets."""
    boards = [(dataset, split) for dataset in recipe.datasets for split in recipe.split_of(dataset)]
    rows = [sum(not m.skips(dataset, split.name) for m in recipe.method) for dataset, split in boards]
    return sum(n * len(s.parts) * len(recipe.seeds_of(s)) for (_, s), n in zip(boards, rows, strict=True))


def _places(frame: pd.DataFrame) -> Iterable[tuple[str, str]]:
    return zip(frame["dataset"], frame["split"], strict=True)


def _check_same_data(frame: pd.DataFrame) -> None:
    for column, keys in (("data_hash", ["dataset"]), ("split_hash", [*BOARD, "repeat", "fold"])):
        if len(bad := frame.groupby(keys)[column].nunique().loc[lambda n: n > 1]):
            raise DataError(f"the records differ in the {column} of {bad.index[0]}", hint="delete the old record first")


def _about(told: list[Mapping[str, Any]], packed: pd.DataFrame, older: set[tuple[str, str]]) -> dict[str, Any]:
    """What both know beside the scores."""
    old, new = told
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

"""Join two records of one recipe whose rows were computed at different times or on different machines.

    molgraph bench run pipelines/adme.toml --only dataset=adme_rppb -o bench/adme    # on one machine
    python pipelines/boards/run.py                                                   # keeps its record
    molgraph bench run pipelines/adme.toml --only dataset=adme_sol -o bench/adme     # later, on another
    python pipelines/boards/run.py                                                   # joins both records

A row, that is a method on a dataset under a split, is taken whole from the record that has more of its cells, the newer
of two. Where methods are tested on the molecules of one split, the whole board is.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from molgraph.base.csv_text import csv_text
from molgraph.base.errors import FormatError, MismatchError
from molgraph.base.paths import atomic_write
from molgraph.evaluate.benchmark.published_record import ABOUT, FORMAT, PACKED
from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe
from molgraph.evaluate.benchmark.run_folder import RECIPE
from molgraph.evaluate.benchmark.scoring import read_scores

BOARD = ["dataset", "split"]


def join_records(old: Path | None, new: Path) -> None:
    """Add the rows of the record ``old`` to the record ``new`` where that has fewer of their cells.

    ``new`` then counts the cells of its whole recipe, whatever part was run; one of all cells takes nothing from
    ``old``, which may be of another recipe. That of ``new`` stands; it may have more methods, which may skip others.

    Raises:
        MismatchError: they are records of different recipes, or of different data or folds.
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
    both = tuple(m for m in own if m.row in {each.row for each in theirs})
    told = (each.model_copy(update={"method": _unskipped(rows)}) for each, rows in ((recipe, both), (before, theirs)))
    if next(told) != next(told):
        raise MismatchError(
            f"{old} is a record of another recipe than the new one",
            hint="compute all of its boards again, or delete the old record first",
        )
    recipe = recipe.model_copy(update={"method": (*own, *entered.values())})
    _check_same_data(pd.concat([known, scores]))
    places = [(dataset, split) for dataset in recipe.datasets for split in recipe.split_of(dataset)]
    single = {(dataset, split.name) for dataset, split in places if len(split.parts) == 1}
    skipped = {(d, s.name, m.row) for m in own for d, s in places if m.skips(d, s.name)}
    known = known[[(*at, row) not in skipped for at, row in zip(_places(known), known["method"], strict=True)]]
    unit, known_unit = (_units(frame, single) for frame in (scores, known))
    n, n_known = (frame.groupby(of)["key"].nunique() for frame, of in ((scores, unit), (known, known_unit)))
    older = {each for each, count in n_known.items() if count > n.get(each, 0)}
    new = scores[~unit.isin(older)]
    at = {(dataset, split.name): i for i, (dataset, split) in enumerate(places)}
    order = {method.row: i for i, method in enumerate(recipe.method)}
    packed = pd.concat([known[known_unit.isin(older)], new])
    packed = packed.assign(at=[at[each] for each in _places(packed)], row=packed["method"].map(order))
    packed = packed.sort_values(["at", "repeat", "fold", "row"], kind="stable").drop(columns=["at", "row"])
    knows = json.loads((old / ABOUT).read_text(encoding="utf-8"))
    return recipe, packed, _about(knows, about, packed, {*_places(new)})


def _unskipped(methods: Iterable[BenchMethod]) -> tuple[BenchMethod, ...]:
    return tuple(method.model_copy(update={"skip": ()}) for method in methods)


def _units(frame: pd.DataFrame, single: Collection[tuple[str, str]]) -> pd.Series:
    """Which lines are taken together: those of a row, or of a whole board of ``single``."""
    methods = zip(_places(frame), frame["method"], strict=True)
    return pd.Series([(*at, "" if at in single else method) for at, method in methods], frame.index, object)


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
            words = f"the records differ in the {column} of {bad.index[0]}"
            raise MismatchError(words, hint="delete the old record first")


def _about(
    old: Mapping[str, Any],
    new: Mapping[str, Any],
    packed: pd.DataFrame,
    own: Collection[tuple[str, str]],
) -> dict[str, Any]:
    """What both know beside the scores; of a board of which ``new`` gives a row, what that knows."""
    if {old["format"], new["format"]} != {FORMAT}:
        raise FormatError(f"a record's format is not {FORMAT!r}", hint="was it written by this version?")
    listed = {
        key: [e for e in old[key] if tuple(e[:2]) not in own] + [e for e in new[key] if tuple(e[:2]) in own]
        for key in ("ceilings", "errors")
    }
    refused = {tuple(e[:2]): e for told in (old, new) for e in told["refused_splits"]}
    each = packed.drop_duplicates("key")
    status = Counter(each["status"][each["status"] != "ok"])
    merged = {key: {**old[key], **new[key]} for key in ("leading", "rows", "entered", "refused")}
    return {
        **new,
        **merged,
        **listed,
        "refused_splits": [*refused.values()],
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
    commits = re.findall(r"\b[0-9a-f]{12}(?:-dirty)?\b", f"{old.get('commit')} {new.get('commit')}")
    return facts | {"commit": f"cells at {', '.join(dict.fromkeys(commits))}" if commits else ""}

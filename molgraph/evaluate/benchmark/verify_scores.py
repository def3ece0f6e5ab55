"""Compare stored scores with scores made anew."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from molgraph.evaluate.benchmark.cells import Cell
from molgraph.evaluate.benchmark.run_folder import Records
from molgraph.evaluate.benchmark.scoring import SCORES, stored_scores

OF_CELL = ["dataset", "split", "split_hash", "repeat", "fold", "method", "seed"]  # columns of scores that name a cell


def read_stored(records: Records) -> tuple[pd.DataFrame | None, list[tuple[str, str]]]:
    """The scores that the run wrote down, where there are some that can be read."""
    try:
        return stored_scores(records.out), []
    except (OSError, ValueError, KeyError) as error:
        return None, [(SCORES, f"it cannot be read: {error}")]


def _keyed(records: Records) -> dict[tuple, Cell]:
    """The cells that are there, by what a row of the scores says of its own."""
    found = {}
    for problem in records.problems.values():
        for c in problem.cells:
            if c.folder(records.out).is_dir():
                stated = problem.split_hash.get((c.split, c.repeat, c.fold), "")
                found[c.dataset, c.split, stated, c.repeat, c.fold, c.method, c.seed] = c
    return found


def without_cell(records: Records, stored: pd.DataFrame) -> Iterator[tuple[str, str]]:
    """Rows of the stored scores whose cell is not there; what was refused has none."""
    cells, lost = _keyed(records), dict[str, None]()
    for key in stored[OF_CELL].drop_duplicates().itertuples(index=False, name=None):
        dataset, label, _, repeat, fold, method, seed = key
        problem = records.problems.get(dataset)
        if problem is None and dataset in records.recipe.datasets:
            continue  # its plan is gone, or it was not begun
        refused = problem is not None and (problem.refused or label in problem.refused_splits)
        if key not in cells and not refused:
            lost[f"{dataset} {label} {method} r{repeat}-f{fold}-s{seed}"] = None
    for where in lost:
        yield where, f"{SCORES} has rows of it, and the cell is not there: run the recipe again"


def differences(records: Records, scores: pd.DataFrame, stored: pd.DataFrame) -> Iterator[tuple[Cell | None, str, str]]:
    """Rows of the stored scores that differ from those made anew: the cell, where, and what is wrong."""
    cells = _keyed(records)
    keys = [*OF_CELL, "target", "metric"]
    both = scores.merge(stored, on=keys, suffixes=("", "_stored"))
    same = (both["value"] == both["value_stored"]) | (both["value"].isna() & both["value_stored"].isna())
    for row in both[~same].to_dict("records"):
        where = " ".join(str(row[key]) for key in keys if key != "split_hash")
        judged = cells.get(tuple(row[key] for key in OF_CELL))
        yield judged, where, f"scores {row['value']!r}, {SCORES} has {row['value_stored']!r}"

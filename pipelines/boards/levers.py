"""Try two ways to learn more from a small set: a refit on the validation rows too, and related endpoints together.

    MOLGRAPH_DATA=... python pipelines/boards/levers.py      # stopped, it goes on with the same command

``dmpnn`` with 3,000 steps or its own early stopping, its readout the mean, on five folds of new scaffolds. The refit
learns from training and validation rows for as many epochs as the first fit found best. "Together" learns the six
endpoints of Fang et al. 2023 at once, whose folds are of all molecules, and is tested on one of them.
"""

from __future__ import annotations

import argparse
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import molgraph  # noqa: E402
from molgraph.base.table import Table  # noqa: E402
from molgraph.data.datasets import load_dataset  # noqa: E402
from molgraph.data.splits import repeated_kfold  # noqa: E402
from molgraph.data.splits.inner import inner_splits  # noqa: E402
from molgraph.evaluate.benchmark.job import VALID_SHARE  # noqa: E402
from molgraph.evaluate.benchmark.ranking import rank_methods  # noqa: E402
from molgraph.evaluate.metrics import evaluate_metric, get_metric  # noqa: E402
from molgraph.train.make_method import make_method  # noqa: E402
from pipelines.common.cells import Cells, spread, write  # noqa: E402

ADME = "adme_fang/ADME_public_set_3521.csv"
ENDPOINTS = ("adme_rppb", "adme_hppb", "adme_sol", "adme_mdr1er", "adme_rlm", "adme_hlm")
SETS = {"adme_rppb": "mae", "adme_hppb": "mae", "freesolv": "rmse", "bace@c1": "roc_auc"}
HOW: dict[str, Any] = {"epochs": 50, "patience": 15, "min_steps": 3000, "readout": "mean", "threads": 1, "store": None}
FOLDS, LEVERS = 5, ("refit", "together")
WORDS = (
    "`dmpnn`, its readout the mean, on five folds of new scaffolds, with 3,000 steps or its own early stopping.",
    "*refit*: the training and validation rows, for as many epochs as the first fit found best. *together*: all six",
    "endpoints of Fang et al. 2023 at once. Mean and standard deviation over the folds; t on paired folds with Nadeau",
    "and Bengio's variance.",
)


def endpoints() -> Table:
    """All molecules of Fang et al. with their six endpoints."""
    names = [load_dataset(name).table.targets[0].name for name in ENDPOINTS]
    return molgraph.read_table(Path(os.environ["MOLGRAPH_DATA"]) / ADME, smiles="SMILES", targets=names)


def only(table: Table, name: str) -> Table:
    """The rows that have a value of one target, with this target alone."""
    one = table.with_targets([name])
    assert one.y is not None
    return one.take(np.flatnonzero(one.ok & np.isfinite(one.y[:, 0])))


def fold(name: str, i: int) -> dict[str, Any]:
    """Scores of one fold: of a fit, of a refit, and of all endpoints at once where there are some."""
    metric, related = get_metric(SETS[name]), name in ENDPOINTS
    known = load_dataset(name).table
    table, target = endpoints() if related else known, known.targets[0].name
    outer = repeated_kfold(table, 1, FOLDS, "scaffold/balanced")[i]
    both, test = (table.take(rows) for rows in (outer.train, outer.test))
    (inner,) = inner_splits(both, outer, i, share=VALID_SHARE, part="valid")
    parts = both.take(inner.train), both.take(inner.valid)
    train, valid, both, test = (only(part, target) for part in (*parts, both, test))

    def score(learned: Table, stops: Table | None, **how: Any) -> tuple[float, int | None]:
        method: Any = make_method("dmpnn", **HOW | how).fit(learned, stops)
        assert test.y is not None
        found = method.predict(test)
        column = [each.name for each in found.targets].index(target)
        return evaluate_metric(metric, test.y[:, 0], found.value[:, column])[0], method.best_epoch

    plain, best = score(train, valid)
    scores = {"plain": plain, "refit": score(both, None, epochs=best, min_steps=0, patience=None)[0], "epoch": best}
    if related:
        scores["together"] = score(*parts)[0]
    return scores


def page(cells: Cells) -> list[str]:
    """The results as a table."""
    lines = ["# A refit on all rows, and related endpoints together", "", *WORDS, ""]
    lines += ["| data | metric | dmpnn | | scores | less dmpnn, 95% interval | p | verdict |", "|---" * 8 + "|"]
    for name, metric in SETS.items():
        found = cells.of(data=name)
        if len(found) < FOLDS:
            continue
        card, better = load_dataset(name).card, get_metric(metric).higher_is_better
        for lever in (each for each in LEVERS if each in found[0]):
            scores = pd.DataFrame(found)[[lever, "plain"]]
            ranking = rank_methods(scores, better, margin=card.margin.value if card.margin else None)
            (pair,) = ranking.pairs.to_dict("records")
            sign = 1 if pair["a"] == lever else -1
            low, high = sorted((sign * pair["low"], sign * pair["high"]))
            apart = f"{sign * pair['difference']:+.3f} ({low:+.3f} to {high:+.3f})"
            values = [spread(scores[each].tolist(), 3) for each in ("plain", lever)]
            words = [
                name,
                metric,
                values[0],
                lever,
                values[1],
                apart,
                f"{pair['p']:.2f}",
                ranking.verdict(lever, "plain"),
            ]
            lines.append(f"| {' | '.join(words)} |")
    return [*lines, "", "Made by `python pipelines/boards/levers.py`."]


def main() -> None:
    """Run what is not there yet; every fold is written at once."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.parse_args()
    cells = Cells(HERE / "levers.json")
    for name in SETS:
        for i in range(FOLDS):
            cells.once({"data": name, "fold": i}, partial(fold, name, i))
        write(HERE / "LEVERS.md", page(cells))


if __name__ == "__main__":
    main()

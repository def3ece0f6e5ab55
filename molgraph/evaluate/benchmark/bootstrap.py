"""Bootstrap the scores of methods on one published split over its test molecules, or its drugs and proteins."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.seeds import generator
from molgraph.chem.scaffold import scaffolds
from molgraph.data.table_parquet import OF_ARRAYS
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.report_slices import handed_table
from molgraph.evaluate.benchmark.run_folder import Predicted, Records
from molgraph.evaluate.metrics import get_metric, score_target

RESAMPLES = 400
LEAST_CLUSTERS = 20


def bootstrap_errors(records: Records, board: Board) -> pd.DataFrame | None:
    """Standard errors of the differences of methods on a board of one split, and of each score on the diagonal.

    Molecules of one Murcko scaffold are drawn together, because their errors are alike (a cluster bootstrap, Davison
    and Hinkley 1997, section 3.8), acyclic ones each by itself. Of pairs the molecules are drawn, and the proteins by
    themselves: a row counts as often as its molecule was drawn times its protein (Owen 2007, Ann. Appl. Stat. 1:386).
    Of other tables each row is drawn by itself. All methods are scored on the same draws. The errors tell of the choice
    of test rows, not of other training sets or seeds.

    Args:
        records: with the predictions.
        board: one of its boards.

    Returns:
        A row and a column for each ranked method; None where fewer than two methods are ranked, or the test part has
        fewer than 20 scaffolds, molecules or proteins. ``attrs["df"]``: degrees of freedom for t, the number of groups
        less 1, of uneven ones that of as many even ones as vary so, ``(sum m)² / sum m²``.
    """
    methods = board.ranking.ranked
    problem = records.problems[board.dataset]
    targets = [item for item in problem.targets if item.name in board.scores.tasks]
    answers: dict[str, list[Predicted]] = {name: [] for name in methods}
    for cell, manifest in records.done:
        if (cell.dataset, cell.split) == (board.dataset, board.split) and cell.method in answers:
            answers[cell.method].append(records.predictions(cell, manifest))
    if len(methods) < 2:
        return None
    clusters = _clusters(records, board, answers[methods[0]][0].rows)
    sizes = [int(item.max()) + 1 for item in clusters]
    if min(sizes) < LEAST_CLUSTERS:
        return None
    rng, scores = generator(0, "bootstrap of scaffolds"), np.empty((RESAMPLES, len(methods)))
    for i in range(RESAMPLES):
        times = [np.bincount(rng.integers(0, n, n), minlength=n) for n in sizes]
        counts = np.prod([n[item] for n, item in zip(times, clusters, strict=True)], axis=0)
        drawn = np.repeat(np.arange(len(counts)), counts)
        scores[i] = [np.mean([_score(item, drawn, targets, board.metric) for item in answers[m]]) for m in methods]
    apart = scores[:, :, None] - scores[:, None, :]
    errors = np.nanstd(apart, axis=0, ddof=1)
    np.fill_diagonal(errors, np.nanstd(scores, axis=0, ddof=1))
    frame = pd.DataFrame(errors, index=methods, columns=methods)
    frame.attrs["df"] = min(len(item) ** 2 / int((np.bincount(item) ** 2).sum()) for item in clusters) - 1
    return frame


def _score(found: Predicted, drawn: np.ndarray, targets: Sequence[Target], metric: str) -> float:
    """The mean over targets of a method's score on the drawn rows; NaN where one has none."""
    values = []
    for target in targets:
        y, p = found.y[target.name][drawn], found.of(target)[drawn]
        values.append(score_target(target, y, p, [get_metric(metric)])[0].value)
    return float(np.mean(values))


def _clusters(records: Records, board: Board, rows: np.ndarray) -> list[np.ndarray]:
    """For each thing that is drawn by itself, which one each row has: scaffolds, or the columns of pairs."""
    table = handed_table(records, board.dataset)
    if table is None:
        return [np.arange(len(rows))]
    kinds = [entity.kind for entity in table.entities]
    if kinds == ["molecule"]:
        keys = scaffolds(table.smiles[rows].tolist()).values
        return [pd.factorize(np.array([key or f"row {k}" for k, key in enumerate(keys)], dtype=object))[0]]
    if len(kinds) > 1 and not {*kinds} & {*OF_ARRAYS}:
        return [pd.factorize(entity.values[rows])[0] for entity in table.entities]
    return [np.arange(len(rows))]

"""Bootstrap the scores of methods on one published split over its test molecules, drawn by scaffold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.seeds import generator
from molgraph.chem.scaffold import scaffolds
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.report_slices import handed_table
from molgraph.evaluate.benchmark.run_folder import Predicted, Records
from molgraph.evaluate.metrics import get_metric, score_target

RESAMPLES = 400
LEAST_CLUSTERS = 20


def bootstrap_errors(records: Records, board: Board) -> pd.DataFrame | None:
    """Standard errors of the differences of methods on a board of one split, and of each score on the diagonal.

    Molecules of one Murcko scaffold are drawn together, because their errors are alike (a cluster bootstrap, Davison
    and Hinkley 1997, section 3.8); of rows that are no single molecule, and of acyclic molecules, each is drawn by
    itself. All methods are scored on the same draws. The errors tell of the choice of test molecules, not of other
    training sets or seeds.

    Args:
        records: with the predictions.
        board: one of its boards.

    Returns:
        A row and a column for each ranked method; None where fewer than two methods are ranked, or the test part has
        fewer than 20 scaffolds.
    """
    methods = board.ranking.ranked
    problem = records.problems[board.dataset]
    targets = [each for each in problem.targets if each.name in board.scores.tasks]
    answers: dict[str, list[Predicted]] = {name: [] for name in methods}
    for cell, manifest in records.done:
        if (cell.dataset, cell.split) == (board.dataset, board.split) and cell.method in answers:
            answers[cell.method].append(records.predictions(cell, manifest))
    if len(methods) < 2:
        return None
    clusters = _clusters(records, board, answers[methods[0]][0].rows)
    if len(clusters) < LEAST_CLUSTERS:
        return None
    rng, scores = generator(0, "bootstrap of scaffolds"), np.empty((RESAMPLES, len(methods)))
    for i in range(RESAMPLES):
        drawn = np.concatenate([clusters[k] for k in rng.integers(0, len(clusters), len(clusters))])
        scores[i] = [np.mean([_score(each, drawn, targets, board.metric) for each in answers[m]]) for m in methods]
    apart = scores[:, :, None] - scores[:, None, :]
    errors = np.nanstd(apart, axis=0, ddof=1)
    np.fill_diagonal(errors, np.nanstd(scores, axis=0, ddof=1))
    return pd.DataFrame(errors, index=methods, columns=methods)


def _score(found: Predicted, drawn: np.ndarray, targets: Sequence[Target], metric: str) -> float:
    """The mean over targets of a method's score on the drawn rows; NaN where one has none."""
    values = []
    for target in targets:
        y, p = found.y[target.name][drawn], found.of(target)[drawn]
        values.append(score_target(target, y, p, [get_metric(metric)])[0].value)
    return float(np.mean(values))


def _clusters(records: Records, board: Board, rows: np.ndarray) -> list[np.ndarray]:
    """Places in ``rows`` of the molecules of each scaffold."""
    table = handed_table(records, board.dataset)
    keys = np.arange(len(rows)).astype(str).astype(object)
    if table is not None and [entity.kind for entity in table.entities] == ["molecule"]:
        found = scaffolds(table.smiles[rows].tolist()).values
        keys = np.array([scaffold or f"row {k}" for k, scaffold in zip(keys, found, strict=True)], dtype=object)
    codes, _ = pd.factorize(keys)
    order = np.argsort(codes, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(codes[order])) + 1)

"""Show where methods err: by distance to the training set, by probability, by molecule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import MolgraphError
from molgraph.chem.fingerprints import Fingerprints, morgan
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.plan import DatasetPlan
from molgraph.evaluate.benchmark.run_folder import Predicted, Records

EDGES = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 1.0)  # Tanimoto distance to the nearest training molecule
MOST_ROWS = 2_000  # test molecules whose distance is measured
LEAST_ROWS = 10  # in a bin


@dataclass(frozen=True)
class Slices:
    """Measured and predicted values of the first repeat's test rows, for one dataset and split.

    Rows are those of the dataset; what was not tested or not measured is NaN.
    """

    targets: tuple[Target, ...]  # the columns of ``y`` and ``p``
    y: np.ndarray  # float64 [rows, targets], measured; the code of a class
    p: Mapping[str, np.ndarray]  # method -> float64 [rows, targets]; of classes the probability of the measured one
    smiles: np.ndarray | None = None  # object [rows]; None where a row is no single molecule
    ids: np.ndarray | None = None  # object [rows]; None where the table is not at hand
    # float64 [rows]: 1 - Tanimoto similarity of ECFP4 to the nearest training molecule of the row's fold
    distance: np.ndarray | None = None

    def of(self, targets: Collection[str]) -> Slices:
        """The same for those targets alone."""
        kept = [j for j, target in enumerate(self.targets) if target.name in targets]
        p = {name: values[:, kept] for name, values in self.p.items()}
        return replace(self, targets=tuple(self.targets[j] for j in kept), y=self.y[:, kept], p=p)

    @property
    def binary(self) -> bool:
        """Whether all targets are."""
        return all(target.kind == "binary" for target in self.targets)

    @property
    def error_label(self) -> str:
        """What ``by_distance`` gives means of."""
        if any(target.kind == "multiclass" for target in self.targets):
            return "1 less the probability of the class"
        many = len(self.targets) > 1
        return "Brier score" if self.binary else "mean absolute error" + ", in standard deviations" * many

    def errors(self, method: str) -> np.ndarray:
        """float [rows, targets]: absolute error; of a class, 1 less its probability.

        Of several numbers, each in its target's standard deviation.
        """
        classes = np.array([target.kind == "multiclass" for target in self.targets])
        error = np.abs(self.p[method] - np.where(classes & np.isfinite(self.y), 1.0, self.y))
        for j, target in enumerate(self.targets):
            if len(self.targets) > 1 and target.kind in ("regression", "bounded"):
                known = self.y[np.isfinite(self.y[:, j]), j]
                error[:, j] /= (float(known.std()) or 1.0) if len(known) > 1 else 1.0
        return error

    def by_distance(self, methods: Sequence[str]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Mean absolute error (of probabilities: Brier score) in each bin of distance; NaN in bins of few labels.

        Returns:
            Labels in each bin, int [bins], and by method float [bins].
        """
        distance = np.full(len(self.y), np.nan) if self.distance is None else self.distance
        bins, n, out = range(len(EDGES) - 1), pd.Series(0, range(len(EDGES) - 1)), {}
        at = np.where(np.isfinite(distance), np.digitize(distance, EDGES[1:-1]), np.nan)
        for method in methods:
            error = pd.DataFrame(self.errors(method) ** (2 if self.binary else 1), at).stack().groupby(level=0)
            stats = error.agg(["count", "mean"]).reindex(bins)
            n = np.maximum(n, stats["count"].fillna(0).astype(int))
            out[method] = stats["mean"].where(stats["count"] >= LEAST_ROWS).to_numpy()
        return n.to_numpy(), out

    def worst(self, method: str, n: int = 8) -> list[tuple[int, int, float]]:
        """Row, target and error of the largest errors, a molecule once, largest first."""
        error = np.nan_to_num(self.errors(method), nan=-1.0)
        most = error.max(axis=1, initial=-1.0)
        rows = np.argsort(-most, kind="stable")[:n]
        return [(int(i), int(error[i].argmax()), float(most[i])) for i in rows if most[i] >= 0]


def slice_records(records: Records, problem: DatasetPlan, split: str, prints: dict[str, Fingerprints]) -> Slices | None:
    """Collect a dataset's predictions under a split, with the distance of its test molecules to what was learnt from.

    None where no cell of the first repeat ended well; ``prints`` keeps the fingerprints of datasets.
    """
    y, p = np.full((problem.rows, len(problem.targets)), np.nan), dict[str, np.ndarray]()
    for cell, manifest in records.done:
        if (cell.dataset, cell.split, cell.repeat) != (problem.dataset, split, 0) or manifest["status"] != "ok":
            continue
        if cell.seed != min(c.seed for c in problem.cells if (c.split, c.method) == (split, cell.method)):
            continue
        prediction, values = records.predictions(cell), p.setdefault(cell.method, np.full_like(y, np.nan))
        for j, target in enumerate(problem.targets):
            y[prediction.rows, j] = prediction.y[target.name]
            values[prediction.rows, j] = _column(target, prediction)
    if not p:
        return None
    table = handed_table(records, problem.dataset)
    if table is None:
        return Slices(problem.targets, y, p)
    if [entity.kind for entity in table.entities if entity.kind != "geometry"] != ["molecule"]:
        return Slices(problem.targets, y, p, ids=table.ids)  # no molecules, or pairs of them with something else
    distance, known = np.full(len(table), np.nan), prints.get(problem.dataset)
    x = prints[problem.dataset] = morgan(table.smiles.tolist()) if known is None else known
    folds = sorted({c.fold for c in problem.cells if c.split == split and c.repeat == 0})
    for fold in folds:
        part = Split.load(file_of_split(records.out, problem.dataset, split, 0, fold))
        rows = part.test[:: max(-(-len(part.test) * len(folds) // MOST_ROWS), 1)]
        rows, train = rows[x.ok[rows]], part.train[x.ok[part.train]]
        distance[rows] = 1 - find_nearest(x.x[rows], x.x[train]).similarity
    return Slices(problem.targets, y, p, table.smiles, table.ids, distance)


def _column(target: Target, found: Predicted) -> np.ndarray:
    """The predictions of a target; of several classes, the probability of the measured one."""
    p, y = found.of(target), found.y[target.name]
    return p if p.ndim == 1 else p[np.arange(len(y)), np.where(np.isfinite(y), y, 0).astype(np.int64)]


def handed_table(records: Records, dataset: str) -> Table | None:
    """The dataset's rows, or None where they are not at hand."""
    try:
        return records.table(dataset)
    except (MolgraphError, OSError):  # a report without pictures is still a report
        return None

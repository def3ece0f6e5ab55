"""Show where methods err: by distance to the training set, by probability, by molecule."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import MolgraphError
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.datasets import load_dataset
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.data.table_parquet import read_handed
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.plan import DatasetPlan
from molgraph.evaluate.benchmark.run_folder import Records

EDGES = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 1.0)  # Tanimoto distance to the nearest training molecule
MOST_ROWS = 2_000  # test molecules whose distance is measured
LEAST_ROWS = 10  # in a bin


@dataclass(frozen=True)
class Answers:
    """One method's predictions of the first repeat's test rows, every molecule at most once."""

    rows: np.ndarray  # int64 [n], rows of the dataset
    y: np.ndarray  # float64 [n, targets], measured, the code of a class; NaN where not
    p: np.ndarray  # float64 [n, targets], predicted; of a target with classes, the probability of the measured one


@dataclass(frozen=True)
class Slices:
    """Where the methods of one dataset and split err."""

    targets: tuple[Target, ...]  # the columns of ``tested``
    tested: Mapping[str, Answers]  # method -> its predictions
    # by row of the dataset; empty where a row is no single molecule
    smiles: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))
    ids: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=object))  # by row of the dataset
    # float [dataset's rows]: 1 - Tanimoto similarity of ECFP4 to the nearest training molecule of the row's
    # fold; NaN where not measured
    distance: np.ndarray = field(default_factory=lambda: np.empty(0))

    def of(self, targets: Collection[str]) -> Slices:
        """The same for those targets alone."""
        kept = [j for j, target in enumerate(self.targets) if target.name in targets]
        tested = {name: Answers(each.rows, each.y[:, kept], each.p[:, kept]) for name, each in self.tested.items()}
        return replace(self, targets=tuple(self.targets[j] for j in kept), tested=tested)

    @property
    def binary(self) -> bool:
        """Whether all targets are."""
        return all(target.kind == "binary" for target in self.targets)

    def errors(self, method: str) -> np.ndarray:
        """float [n, targets]: absolute error; of a class, 1 less its probability.

        Of several numbers, each in its target's standard deviation.
        """
        tested = self.tested[method]
        classes = np.array([target.kind == "multiclass" for target in self.targets])
        error = np.abs(tested.p - np.where(classes & np.isfinite(tested.y), 1.0, tested.y))
        for j, target in enumerate(self.targets):
            if len(self.targets) > 1 and target.kind in ("regression", "bounded"):
                known = tested.y[np.isfinite(tested.y[:, j]), j]
                error[:, j] /= (float(known.std()) or 1.0) if len(known) > 1 else 1.0
        return error

    def by_distance(self, methods: Sequence[str]) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Mean absolute error (of probabilities: Brier score) in each bin of distance; NaN in bins of few labels.

        Returns:
            Labels in each bin, int [bins], and by method float [bins].
        """
        bins, out = len(EDGES) - 1, {}
        counts = np.zeros(bins, dtype=np.int64)
        for method in methods:
            distance = self.distance[self.tested[method].rows]
            error = self.errors(method) ** (2 if self.binary else 1)
            use = np.isfinite(error) & np.isfinite(distance)[:, None]
            at = np.broadcast_to(np.digitize(distance, EDGES[1:-1])[:, None], error.shape)[use]
            n, total = np.bincount(at, minlength=bins), np.bincount(at, error[use], minlength=bins)
            out[method] = np.where(n >= LEAST_ROWS, total / np.maximum(n, 1), np.nan)
            counts = np.maximum(counts, n)
        return counts, out

    def worst(self, method: str, n: int = 8) -> list[tuple[int, int, float]]:
        """Row, target and error of the largest errors, a molecule once, largest first."""
        error = np.nan_to_num(self.errors(method), nan=-1.0)
        most = error.max(axis=1, initial=-1.0)
        order = np.argsort(-most, kind="stable")[:n]
        rows = self.tested[method].rows
        return [(int(rows[i]), int(error[i].argmax()), float(most[i])) for i in order if most[i] >= 0]


def slice_records(records: Records, problem: DatasetPlan, split: str) -> Slices | None:
    """Collect a dataset's predictions under a split, with the distance of its test molecules to what was learnt from.

    None where no cell of the first repeat ended well.
    """
    parts: dict[str, list[Answers]] = {}
    for record in records.done:
        cell = record.cell
        if (cell.dataset, cell.split, cell.repeat) != (problem.dataset, split, 0) or record.manifest["status"] != "ok":
            continue
        if cell.seed != min(c.seed for c in problem.cells if (c.split, c.method) == (split, cell.method)):
            continue
        found = records.predictions(cell)
        y = np.column_stack([found.y[t.name] for t in problem.targets])
        p = np.column_stack([_column(t, found.p, found.y[t.name]) for t in problem.targets])
        parts.setdefault(cell.method, []).append(Answers(found.rows, y, p))
    if not parts:
        return None
    tested = {name: _joined(each) for name, each in parts.items()}
    table = handed_table(records, problem)
    if table is None:
        return Slices(problem.targets, tested)
    distance = np.full(len(table), np.nan)
    kinds = [entity.kind for entity in table.entities if entity.kind != "geometry"]
    if kinds != ["molecule"]:  # no molecules, or pairs of them with something else
        return Slices(problem.targets, tested, ids=table.ids, distance=distance)
    x = morgan(table.smiles.tolist())
    folds = sorted({c.fold for c in problem.cells if c.split == split and c.repeat == 0})
    for fold in folds:
        part = Split.load(file_of_split(records.out, problem.dataset, split, 0, fold))
        rows = part.test[:: max(-(-len(part.test) * len(folds) // MOST_ROWS), 1)]
        rows, train = rows[x.ok[rows]], part.train[x.ok[part.train]]
        distance[rows] = 1 - find_nearest(x.x[rows], x.x[train]).similarity
    return Slices(problem.targets, tested, table.smiles, table.ids, distance)


def _column(target: Target, p: Mapping[str, np.ndarray], y: np.ndarray) -> np.ndarray:
    if target.kind != "multiclass":
        return p[target.name]
    each = np.column_stack([p[name] for name in target.columns])
    return each[np.arange(len(y)), np.where(np.isfinite(y), y, 0).astype(np.int64)]


def _joined(parts: Sequence[Answers]) -> Answers:
    rows = np.concatenate([part.rows for part in parts])
    _, first = np.unique(rows, return_index=True)
    y, p = np.concatenate([part.y for part in parts]), np.concatenate([part.p for part in parts])
    return Answers(rows[first], y[first], p[first])


def handed_table(records: Records, problem: DatasetPlan) -> Table | None:
    """The dataset's rows: as the cells were handed them, else loaded anew; None where neither is there."""
    if problem.table_file(records.out).is_file():
        return read_handed(problem.table_file(records.out))
    try:
        loaded = load_dataset(problem.dataset)
    except (MolgraphError, OSError):  # a report without pictures is still a report
        return None
    return loaded.table if loaded.hash == problem.data_hash else None

"""Score the ranks of docked poses alone, beside a model that has the rank as an input feature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from molgraph.base.contracts import Prediction
from molgraph.base.errors import UnknownNameError, nearest
from molgraph.data.content import entity_texts
from molgraph.data.graph_values import Geometry
from molgraph.data.table import Entities, Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric
from molgraph.evaluate.screening import top_rate

DOCKING = "docking program"


def rank_column(table: Table, rank: str) -> np.ndarray:
    """float64 [n]: the ranks; raises ``UnknownNameError`` where no feature has that name."""
    if rank not in table.feature_names or table.features is None:
        raise UnknownNameError(
            f"no feature is named {rank!r}", hint=nearest(rank, table.feature_names) or "read it: --feature COLUMN"
        )
    return table.features[:, table.feature_names.index(rank)]


def without_feature(table: Table, name: str) -> Table:
    """The table without one of its columns of features."""
    rank_column(table, name)
    kept = [i for i, feature in enumerate(table.feature_names) if feature != name]
    features = None if table.features is None or not kept else table.features[:, kept]
    return replace(table, features=features, feature_names=tuple(table.feature_names[i] for i in kept))


def complexes_of(table: Table) -> np.ndarray:
    """int64 [n]: a number for each complex, whose rows are poses of one ligand in one protein.

    Poses of a complex share the SMILES, the sequence and the protein's atoms; the ligand's positions differ.
    """
    texts = [entity_texts(_protein_of(entity)) for entity in table.entities]
    return pd.factorize(np.array(["\0".join(map(str, parts)) for parts in zip(*texts, strict=True)], dtype=object))[0]


def _protein_of(entity: Entities) -> Entities:
    if entity.kind != "geometry":
        return entity
    values = np.empty(len(entity.values), dtype=object)
    values[:] = [v.part(True) if isinstance(v, Geometry) else v for v in entity.values]
    return replace(entity, values=values)


def rank_alone(train: Table, test: Table, rank: str) -> np.ndarray:
    """float64 [n]: what a logistic regression, or a line, on the rank alone predicts of the test rows."""
    from sklearn.linear_model import LinearRegression, LogisticRegression

    assert train.y is not None
    x, y = rank_column(train, rank)[:, None], train.y[:, 0]
    if train.row_targets[0].kind == "binary" and len(np.unique(y)) == 2:
        fitted = LogisticRegression().fit(x, y.astype(int))
        return fitted.predict_proba(rank_column(test, rank)[:, None])[:, 1]
    return LinearRegression().fit(x, y).predict(rank_column(test, rank)[:, None])


def rank_rows(
    frame: pd.DataFrame, parts: Sequence[Table], fits: Mapping[str, Sequence[Prediction]], rank: str
) -> pd.DataFrame:
    """The frame of ``pair-bias`` with rows of the model without the rank, of the rank alone and of the program itself.

    Where labels are 0 and 1 the column ``top1`` is the share of complexes whose first pose is right.
    """
    train, _, test = parts
    target, y = test.row_targets[0], np.zeros(0) if test.y is None else test.y[:, 0]
    metric, group = default_metric(target.kind), complexes_of(test)
    scores = {"rank alone": rank_alone(train, test, rank), DOCKING: -rank_column(test, rank)}
    without = columns_of(fits["without the rank"][0], target)
    rows = [
        {"row": "without the rank", metric.name: evaluate_metric(metric, y, without)[0], "fits": 1},
        {"row": "rank alone", metric.name: evaluate_metric(metric, y, scores["rank alone"])[0], "fits": 1},
        {"row": DOCKING, "fits": 1},
    ]
    whole = pd.concat([frame, pd.DataFrame(rows)], ignore_index=True)
    if target.kind != "binary":
        return whole
    names = [*fits, *scores]
    rates = {
        name: np.mean([top_rate(y, columns_of(prediction, target), group) for prediction in fits[name]])
        if name in fits
        else top_rate(y, scores[name], group)
        for name in names
    }
    return whole.assign(top1=[rates.get(row, np.nan) for row in whole["row"]])

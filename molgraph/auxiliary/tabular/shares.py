"""Take the scores of fitted models apart into what each feature of a molecule adds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.auxiliary.tabular.features import Features
from molgraph.auxiliary.tabular.target_model import SharesScore, TargetModel
from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError
from molgraph.data.table import Table
from molgraph.explain.feature_shares import FeatureShares


def share_scores(
    targets: Sequence[Target],
    models: Sequence[TargetModel | None],
    features: Features,
    table: Table,
    columns: Sequence[int],
    threads: int,
) -> FeatureShares:
    """What each feature of each row adds to the score in an output column, over that of the reference.

    The reference has no bit, and the training rows' median of each other feature (``Features.reference``).

    Args:
        targets, models: of the method.
        features: how they are computed.
        table: rows that can be read.
        columns: the output column of each, all of one target.
        threads: that compute features.

    Raises:
        UnsupportedError: the target could not be learned, or a row has no features.
    """
    ends = np.cumsum([0, *(len(target.columns) for target in targets)])
    place = int(np.searchsorted(ends, columns[0], side="right")) - 1 if len(columns) else 0
    model, target, matrix = models[place], targets[place], features.of(table, threads)
    if not isinstance(model, SharesScore):
        words = f"{target.name} could not be learned, and has no predictions to explain"
        raise UnsupportedError(words, hint="explain another target: target=NAME")
    if len(matrix.rows) < len(table):
        words = next(str(item) for item in matrix.reason if item)
        raise UnsupportedError(f"a molecule has no features: {words}", hint="leave it out")
    reference, outputs = features.reference(), np.array([item - ends[place] for item in columns], dtype=np.int64)
    shares = [model.shares(row, reference, int(c)) for row, c in zip(matrix.x, outputs, strict=True)]
    unit = f"{model.score_name} of {target.name}" if target.kind in ("binary", "multiclass") else target.name
    return FeatureShares(
        model.scores(matrix.x)[np.arange(len(outputs)), outputs],
        model.scores(reference[None])[0, outputs],
        np.array(shares).reshape(len(outputs), features.width),
        features.radius,
        features.n_bits,
        features.names()[features.n_bits :],
        unit,
    )

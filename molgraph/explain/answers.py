"""The one number of a prediction that an explainer explains: a value, or the log-odds of a class."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.train.inference import FittedNetworks
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model

EDGE = 1e-6  # probabilities are this far from 0 and 1


def target_place(model: Model, name: str) -> int:
    """The number of the target of a name, the first of the model where it is empty.

    Raises:
        UnknownNameError: the model has no such target.
    """
    known = [target.name for target in model.targets]
    if name and name not in known:
        raise UnknownNameError(f"the model has no target {name!r}", hint=nearest(name, known))
    return known.index(name) if name else 0


def target_columns(model: Model, name: str) -> list[int]:
    """The output columns of a target."""
    place = target_place(model, name)
    start = sum(len(target.columns) for target in model.targets[:place])
    return [*range(start, start + len(model.targets[place].columns))]


def explained_columns(model: Model, value: np.ndarray, name: str) -> list[int]:
    """The output column of each row that is explained: that of the target, of several classes the likeliest.

    Args:
        model: the model.
        value: float64 [n, columns], its predictions; NaN in rows without one.
        name: of the target.
    """
    columns = target_columns(model, name)
    likely = np.nan_to_num(value[:, columns], nan=-np.inf).argmax(axis=1) if len(columns) > 1 else np.zeros(len(value))
    return [columns[int(i)] for i in likely]


def place_of(model: Model, column: int) -> int:
    """The number of the target of an output column."""
    return [place for place, target in enumerate(model.targets) for _ in target.columns][column]


def as_score(model: Model, value: np.ndarray, column: int) -> np.ndarray:
    """Predicted numbers as they are, probabilities as log-odds: float64 [n] of float64 [n, columns]."""
    score = np.asarray(value, dtype=np.float64)[:, column]
    kinds = [target.kind for target in model.targets for _ in target.columns]
    if kinds[column] in ("regression", "bounded"):
        return score
    score = np.clip(score, EDGE, 1 - EDGE)
    return np.asarray(np.log(score / (1 - score)))


def network_score(fitted: FittedNetworks, raw: Tensor, column: Tensor, place: int) -> Tensor:
    """The score of a network's raw outputs, differentiable.

    Args:
        fitted: the network.
        raw: float [n, width].
        column: int64 [n], the output column of each row.
        place: the target's number.

    Returns:
        float [n]: a number in its units, without the reference values of its atoms where a head has those; the
        log-odds of a class; of a bounded target those of the fraction.
    """
    value, outputs = fitted.network.head.values(raw)[0], fitted.outputs
    logit, where = value.gather(1, column[:, None])[:, 0], outputs.slices[place]
    if outputs.targets[place].kind == "multiclass":
        others = value[:, where].masked_fill(torch.arange(where.start, where.stop) == column[:, None], -torch.inf)
        return logit - others.logsumexp(1)
    return logit * float(outputs.scale[place]) + float(outputs.mean[place])


def unit_of(model: Model, place: int) -> str:
    """What the score of a target is, in words."""
    target = model.targets[place]
    words = {"regression": "", "bounded": "log-odds of ", "binary": "log-odds of "}
    return f"{words.get(target.kind, 'log-odds of the class of ')}{target.name}"


def reads_atom_features(model: Any) -> bool:
    """Whether a model is one network that predicts molecules from features of their atoms."""
    if not isinstance(model, Model) or not isinstance(model.method, GraphMethod):
        return False
    fitted = model.method.ready()
    atoms = fitted.inputs[0].spec.widths.get("atom", 0) > 0 and not fitted.network.encoder.by_code
    return fitted.network.has_head and len(fitted.inputs) == 1 and atoms and fitted.network.level == "row"

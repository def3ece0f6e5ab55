"""Read the logits of a classifier while it predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.special import logit
from torch import Tensor, nn

from molgraph.base.contracts import Method, Prediction
from molgraph.base.errors import UnsupportedError
from molgraph.base.table import Target
from molgraph.train.method import GraphMethod

CLASSES = ("binary", "multiclass")
SMALLEST = 1e-12  # of probabilities that a method gives, which may be 0

Logits = list[np.ndarray]
"""One array a target with classes: float64 [n, classes], or [n, 1] with the logit of class 1 where there are two."""


def check_classes(targets: Sequence[Target], score: str) -> None:
    """Refuse targets none of which has classes; ``score`` is the name of what reads logits."""
    if not any(target.level == "row" and target.kind in CLASSES for target in targets):
        words = f"{score} reads logits of classes, and no target of whole rows has classes"
        raise UnsupportedError(words, hint="choose another score, as in by=nearest")


def predict_logits(method: Method, predict: Callable[[], Prediction]) -> tuple[Prediction, Logits, np.ndarray]:
    """A prediction with its logits, and the rows that have them.

    They are the outputs of the head of the network inside, and the mean of those where there are several. A method
    without a network has ``log(p / (1 - p))`` of two classes, which is the same up to rounding, and ``log p`` of
    several, which lacks a constant of each row.

    Args:
        method: fitted, a wrapper too.
        predict: calls it once.

    Raises:
        UnsupportedError: no target of whole rows has classes.
    """
    heads = [part.ready().network.head if isinstance(part, GraphMethod) else None for part in method.innermost]
    seen: list[list[Tensor]] = [[] for _ in heads]
    hooks = [_kept(head, kept) for head, kept in zip(heads, seen, strict=True) if isinstance(head, nn.Module)]
    try:
        prediction = predict()
    finally:
        for hook in hooks:
            hook.remove()
    check_classes(prediction.targets, "the domain score")
    rows = np.flatnonzero(prediction.ok)
    outputs = [torch.cat(kept).double().numpy() for kept in seen if kept]
    shapes = {array.shape for array in outputs}
    # the network read other rows than these where it sees a molecule several times, such as conformer by conformer
    whole = len(outputs) == len(seen) and shapes == {(len(rows), prediction.value.shape[1])}
    if whole:
        return prediction, _by_target(prediction, np.mean(outputs, axis=0)), rows
    p = np.clip(prediction.value[rows], SMALLEST, 1 - SMALLEST)
    return prediction, _by_target(prediction, p, probabilities=True), rows


def _kept(head: nn.Module, kept: list[Tensor]) -> torch.utils.hooks.RemovableHandle:
    """Keep what the head gives for the columns of its targets."""
    return head.register_forward_hook(lambda made, _, raw: kept.append(made.values(raw)[0].detach().float().cpu()))


def _by_target(prediction: Prediction, x: np.ndarray, *, probabilities: bool = False) -> Logits:
    logits, column = Logits(), 0
    for target in (target for target in prediction.targets if target.level == "row"):
        block = x[:, column : column + len(target.columns)]
        column += len(target.columns)
        if target.kind in CLASSES and target.name not in prediction.unlearned:
            kind = logit if target.kind == "binary" else np.log
            logits.append(kind(block) if probabilities else block)
    return logits

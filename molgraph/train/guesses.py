"""Read class probabilities from a network's outputs, and check inputs, for objectives that learn unlabelled rows."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.train.inputs import Input
from molgraph.train.outputs import Outputs

CLASSES = ("binary", "multiclass")


def log_probabilities(kind: str, scores: Tensor) -> Tensor:
    """float [n, k]: the log-probabilities of a target's k classes, two where it is binary.

    Args:
        kind: ``binary`` or ``multiclass``.
        scores: float [n, 1] or [n, k], logits.

    Example:
        >>> log_probabilities("binary", torch.tensor([[0.0]])).exp()
        tensor([[0.5000, 0.5000]])
    """
    scores = scores.float()
    if kind == "binary":
        return torch.cat([F.logsigmoid(-scores), F.logsigmoid(scores)], dim=1)
    return scores.log_softmax(dim=1)


def sharpened(log_p: Tensor, temperature: float) -> Tensor:
    """float [n, k]: ``p_c^(1/T) / sum_j p_j^(1/T)``, Berthelot et al. 2019, equation 7; T = 1 leaves p as it is.

    Example:
        >>> sharpened(torch.tensor([[0.25, 0.75]]).log(), 0.5)
        tensor([[0.1000, 0.9000]])
    """
    return (log_p / temperature).softmax(dim=1)


def check_one_column(name: str, inputs: Sequence[Input], outputs: Outputs) -> None:
    """Refuse targets of atoms or bonds, and networks of several columns, whose views a batch has once each.

    Raises:
        UnsupportedError: one of the two.
    """
    if outputs.level != "row":
        words = f"{name} learns targets of rows, and {outputs.targets[0].name} is one of each {outputs.level}"
        raise UnsupportedError(words, hint="leave the objective out")
    if len(inputs) != 1:
        read = " and ".join(f"{each.column} ({each.kind})" for each in inputs)
        words = f"{name} compares views of one column, and the model reads {read}"
        raise UnsupportedError(words, hint="name one column: --input COLUMN (in Python: inputs=[...])")

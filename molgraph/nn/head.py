"""Define ``Head``, the base class of output layers, with the loss and the predicted values of each target."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import read_part
from molgraph.base.ranges import Count, Probability
from molgraph.base.registry import get
from molgraph.base.table import Target
from molgraph.nn.perceptron import Perceptron


class Head(Perceptron):
    """The base class of heads: ``(h [n, d], extra [n, e]) -> raw [n, width]``, whose losses and values it knows.

    As it stands it is a perceptron on the state beside the row's descriptors. Regression: ``(raw - y)^2`` on the scaled
    target; bounded: ``(sigmoid(raw) - y)^2``; binary: ``-y log p - (1 - y) log(1 - p)`` with ``p = sigmoid(raw)``;
    multiclass: ``-log softmax(raw)_y``. A subclass may have more raw columns (``width``), behind those of the targets.

    ``kinds``: of targets that it predicts. ``reads_atoms``: whether it is given the states of atoms, and ``members``,
    the relation from atoms to graphs, in the place of the states of rows; descriptors are then refused.
    ``references``: whether targets are learned less a least-squares value of each element, with no mean
    (``train.references``).

    Args:
        d_in: width of the state and the descriptors together.
        targets: what is predicted.
        d_hidden: width of hidden layers.
        n_layers: linear layers.
        dropout: probability of dropping a hidden value while training.
        activation: between layers.
    """

    kinds: tuple[str, ...] = ("regression", "bounded", "binary", "multiclass")
    reads_atoms: bool = False
    references: bool = False

    def __init__(
        self,
        d_in: int,
        targets: Sequence[Target],
        d_hidden: Count = 300,
        n_layers: Count = 2,
        dropout: Probability = 0.0,
        activation: str = "relu",
    ) -> None:
        super().__init__(d_in, d_hidden, self.width(targets), n_layers, dropout, activation)
        ends = [0, *accumulate(len(target.columns) for target in targets)]
        #: the kind of each target, and its first and last column
        self.columns = tuple((t.kind, a, b) for t, a, b in zip(targets, ends[:-1], ends[1:], strict=True))
        self.d_out = ends[-1]
        kinds = {kind for kind, _, _ in self.columns}
        self.single = kinds.pop() if len(kinds) == 1 and kinds != {"multiclass"} else None

    @classmethod
    def width(cls, targets: Sequence[Target]) -> int:
        """Raw columns: one for each target, or for each of its classes."""
        return sum(len(target.columns) for target in targets)

    def forward(self, h: Float[Tensor, "n d"], extra: Float[Tensor, "n e"] | None = None) -> Float[Tensor, "n width"]:
        """Raw outputs, from states and descriptors."""
        return super().forward(h if extra is None else torch.cat([h, extra], dim=1))

    def losses(self, raw: Float[Tensor, "n width"], y: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """The loss of every label by itself; missing ones hold 0 and must be masked after."""
        raw = raw[:, : self.d_out].float()
        if self.single is not None:  # one operation for all columns, however many
            return _loss(self.single, raw, y)
        parts = []
        for j, (kind, start, stop) in enumerate(self.columns):
            if kind == "multiclass":
                parts.append(F.cross_entropy(raw[:, start:stop], y[:, j].long(), reduction="none")[:, None])
            else:
                parts.append(_loss(kind, raw[:, start:stop], y[:, j : j + 1]))
        return torch.cat(parts, dim=1)

    def values(
        self, raw: Float[Tensor, "n width"]
    ) -> tuple[Float[Tensor, "n {self.d_out}"], Float[Tensor, "n {self.d_out}"] | None]:
        """Scaled values and the scores of classes, and a standard deviation of each value (NaN: none), or None."""
        return raw[:, : self.d_out], None


def check_head(text: str, targets: Sequence[Target]) -> type[Head]:
    """The class of a registered head, with settings or without; targets that it does not predict are refused.

    Raises:
        UnsupportedError: the first such target, its kind or level.

    Example:
        >>> check_head("perceptron(n_layers=3)", [Target("active", "binary")]).reads_atoms
        False
    """
    name = read_part(text, "head").name
    head: type[Head] = get("head", name)
    for target in targets:
        hint = "choose another head, such as params.head=perceptron, or name other targets: -t NAME"
        if target.kind not in head.kinds:
            words = f"the head {name} predicts {' and '.join(head.kinds)} targets, and {target.name!r} is {target.kind}"
            raise UnsupportedError(words, hint=hint)
        if head.reads_atoms and target.level != "row":
            words = f"the head {name} predicts values of molecules, and {target.name!r} is one of each {target.level}"
            raise UnsupportedError(words, hint=hint)
    return head


def _loss(kind: str, raw: Tensor, y: Tensor) -> Tensor:
    if kind == "binary":
        return F.binary_cross_entropy_with_logits(raw, y, reduction="none")
    return ((raw.sigmoid() if kind == "bounded" else raw) - y).square()

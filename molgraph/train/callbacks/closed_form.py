"""Callbacks ``ridge`` and ``prototypes``: fit the linear head in closed form on a frozen pretrained encoder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Share
from molgraph.base.registry import register
from molgraph.nn.closed_form import prototype_head
from molgraph.train.callback import Callback, Compute, Phase
from molgraph.train.callbacks.lp_ft import STILL, new_parameters, of_rows
from molgraph.train.objective import Loss, StepState
from molgraph.train.ridge_probe import RidgeProbe


class ClosedFormHead(Callback):
    """The base class: the encoder stays, and the last layer of the head is solved for after one pass over the rows.

    One epoch is enough, and is what ``finetune`` makes, of a linear head. Of a head with more layers, those before the
    last stay as they were drawn.
    """

    needs_start = True
    solves_head = True
    name: str
    solved: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("solved", torch.zeros((), dtype=torch.bool))
        self.rows: RidgeProbe | None = None

    @abstractmethod
    def probe(self, head: Any) -> RidgeProbe:
        """What keeps the rows' states and solves for the layer."""

    def phases(self, network: Any) -> list[Phase]:
        """One phase, in which nothing moves."""
        return [Phase(1.0, new_parameters(network, self.name), STILL)]

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss; rows are kept in the first epoch, whose end, or validation, solves for the layer."""
        if not state.training:
            self.solve()
        if self.solved or not state.training:
            return objective(network, batch, state)
        if self.rows is None:
            if not of_rows(network):
                raise UnsupportedError(f"{self.name} solves for a head of rows", hint="--callback lp-ft")
            self.rows = self.probe(network.head)
        loss = objective(network, batch, state)
        self.rows.add(batch.y, batch.weights)
        return loss

    def after_epoch(self, network: Any) -> Mapping[str, float]:
        """Solve where no validation part did."""
        self.solve()
        return {}

    def solve(self) -> None:
        """Set the layer, once."""
        if self.rows is not None:
            self.rows.close()
            self.rows.solve()
            self.rows = None
            self.solved.fill_(True)


@register(
    "callback",
    "ridge",
    summary="the head by ridge regression on a pretrained encoder's states, without gradient",
    paper="Bertinetto et al. 2019, ICLR",
    command="molgraph pretrain dataset:tox21 --objective ridge --epochs 3 -o ridge.mgm && "
    "molgraph finetune ridge.mgm dataset:chembl2321810 --callback ridge -o model.mgm",
)
class RidgeHead(ClosedFormHead):
    """The head by ridge regression, its penalty by generalised cross-validation; the encoder stays.

    Use it for ten to a few hundred labels, and for a model in a second: each state is standardised, as the probe of
    ``lp-ft(probe=ridge)`` does, after which ``lp-ft`` goes on to train all weights.
    """

    name = "ridge"

    def probe(self, head: Any) -> RidgeProbe:
        """Ridge regression."""
        return RidgeProbe(head)


@register(
    "callback",
    "prototypes",
    summary="the head by the mean state of each class, without gradient",
    paper="Snell et al. 2017, NeurIPS",
    command="molgraph pretrain dataset:tox21 --objective prototypes --epochs 3 -o proto.mgm && "
    "molgraph finetune proto.mgm dataset:chembl2321810 --callback prototypes -o model.mgm",
)
class PrototypeHead(ClosedFormHead):
    """The head by class prototypes (``nn.closed_form.prototype_head``); the encoder stays.

    Use it for classes with few labels, after ``pretrain --objective prototypes`` on other assays.

    Args:
        mahalanobis: share of the covariance within classes in the metric, which weighs more with more labels.
    """

    name = "prototypes"
    classes_only = True

    def __init__(self, *, mahalanobis: Share = 0.0) -> None:
        super().__init__()
        self.mahalanobis = mahalanobis

    def probe(self, head: Any) -> RidgeProbe:
        """Means of classes."""
        numbers = [kind for kind, _, _ in head.columns if kind not in ("binary", "multiclass")]
        if numbers:
            words = f"prototypes are of classes, and a target is {numbers[0]}"
            raise UnsupportedError(words, hint="--callback ridge learns numbers")
        return PrototypeProbe(head, self.mahalanobis)


class PrototypeProbe(RidgeProbe):
    """Collects as the ridge probe does, and sets the layer to class prototypes."""

    def __init__(self, head: Any, mahalanobis: float) -> None:
        super().__init__(head)
        self.mahalanobis = mahalanobis

    @torch.no_grad()
    def solve(self) -> None:
        """Set the layer's weights, of each target by its own rows."""
        x, y, known = (torch.as_tensor(np.concatenate(parts)) for parts in (self.x, self.y, self.known))
        for j, (kind, start, stop) in enumerate(self.head.columns):
            rows = known[:, j] if known.shape[1] > 1 else known[:, 0]
            n_classes = 2 if kind == "binary" else stop - start
            one_hot = torch.nn.functional.one_hot(y[rows, j].long(), n_classes).double()
            weight, bias = prototype_head(x[rows].double(), one_hot, self.mahalanobis)
            if kind == "binary":
                weight, bias = weight[1:] - weight[:1], bias[1:] - bias[:1]
            self.layer.weight[start:stop] = weight.to(self.layer.weight.dtype)
            self.layer.bias[start:stop] = bias.to(self.layer.bias.dtype)

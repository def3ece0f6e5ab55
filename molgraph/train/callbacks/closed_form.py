"""Callbacks ``ridge`` and ``prototypes``: fit the linear head in closed form on a frozen pretrained encoder."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Layers, NotNegative, Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.closed_form import ClassSpread, Linear, prototype_head
from molgraph.train.callback import Callback, Compute, Phase
from molgraph.train.callbacks.lp_ft import STILL, new_parameters, of_rows
from molgraph.train.objective import Loss, StepState
from molgraph.train.objectives.prototypes import SPREAD
from molgraph.train.ridge_probe import RidgeProbe


class Task(NamedTuple):
    """The rows of a target.

    Args:
        x: float64 [n, d], states.
        y: float64 [n], labels.
        kind: of the target.
        n_columns: of the layer.
    """

    x: Tensor
    y: Tensor
    kind: str
    n_columns: int


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
    def probe(self, network: Any) -> RidgeProbe:
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
            self.rows = self.probe(network)
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

    def probe(self, network: Any) -> RidgeProbe:
        """Ridge regression."""
        return RidgeProbe(network.head)


@register(
    "callback",
    "prototypes",
    summary="the head by the mean state of each class, without gradient",
    paper="Snell et al. 2017, NeurIPS",
    systems=(
        SystemCard(
            "shot-analysis-embedding-space-transforma",
            left_out="its bound on the accuracy, which is no method",
            off="prototypes",
            beside=("prototypes without the transformation",),
            command="molgraph pretrain dataset:tox21 --objective prototypes --epochs 3 -o encoder.mgm && "
            "molgraph finetune encoder.mgm dataset:tox21 --callback 'prototypes(est=5)' -o model.mgm",
            modules=("molgraph.nn.closed_form",),
        ),
    ),
    command="molgraph pretrain dataset:tox21 --objective prototypes --epochs 3 -o proto.mgm && "
    "molgraph finetune proto.mgm dataset:tox21 --callback prototypes -o model.mgm",
)
class PrototypeHead(ClosedFormHead):
    """The head by class prototypes (``nn.closed_form.prototype_head``); the encoder stays.

    Use it for classes with few labels, after ``pretrain --objective prototypes`` on other assays.

    With ``est`` distances are measured along the axes in which classes differ most: Cao et al. 2020, "A Theoretical
    Analysis of the Number of Shots in Few-Shot Learning", section 4. The covariances are those of the assays that the
    file's encoder was pretrained on, or, where it learned no prototypes, those of this table's own targets.

    Args:
        mahalanobis: share of the covariance within classes in the metric, which weighs more with more labels.
        est: axes of the embedding space transformation; 0 for all of the states.
        rho: of the covariance within classes, which is taken from that of the class means.
    """

    name = "prototypes"
    classes_only = True

    def __init__(self, *, mahalanobis: Share = 0.0, est: Layers = 0, rho: NotNegative = 0.1) -> None:
        super().__init__()
        self.mahalanobis, self.est, self.rho = mahalanobis, est, rho
        self.spread = list[Any]()  # a module in a list is no part of this one

    def begin(self, network: Any) -> None:
        """Take the covariances of the classes that the encoder learned from, where its file has them."""
        spread = network.start_parts.get(SPREAD)
        fits = spread is not None and len(spread.within) == network.head.layers[-1].in_features
        self.spread = [spread] if fits else []

    def probe(self, network: Any) -> RidgeProbe:
        """Means of classes."""
        numbers = [kind for kind, _, _ in network.head.columns if kind not in ("binary", "multiclass")]
        if numbers:
            words = f"prototypes are of classes, and a target is {numbers[0]}"
            raise UnsupportedError(words, hint="--callback ridge learns numbers")
        return LinearProbe(network.head, self.heads)

    def heads(self, tasks: list[Task]) -> list[Linear]:
        """The layers of targets, each by its own rows."""
        one_hots = [nn.functional.one_hot(each.y.long(), max(each.n_columns, 2)).double() for each in tasks]
        d, heads = tasks[0].x.shape[1], list[Linear]()
        axes = torch.eye(d, dtype=torch.float64)
        if self.est:
            (spread,) = self.spread or [ClassSpread(d).double()]
            for task, one_hot in zip(tasks, one_hots, strict=True):
                if not self.spread:
                    spread.add(task.x, one_hot)
            axes = spread.axes(min(self.est, d), self.rho).double()
        for task, one_hot in zip(tasks, one_hots, strict=True):
            weight, bias = prototype_head(task.x @ axes, one_hot, self.mahalanobis)
            weight = weight @ axes.T
            heads.append((weight[1:] - weight[:1], bias[1:] - bias[:1]) if task.kind == "binary" else (weight, bias))
        return heads


class LinearProbe(RidgeProbe):
    """Collects as the ridge probe does, and sets the layer to what a function makes of the targets' rows.

    Args:
        head: as for the ridge probe.
        heads: of a list of tasks, the linear layer of each.
    """

    def __init__(self, head: Any, heads: Callable[[list[Task]], Sequence[Linear]]) -> None:
        super().__init__(head)
        self.heads = heads

    @torch.no_grad()
    def solve(self) -> None:
        """Set the layer's weights, of each target by its own rows."""
        if not self.x:
            return
        x, y, known = (torch.as_tensor(np.concatenate(parts)) for parts in (self.x, self.y, self.known))
        places, tasks = list[slice](), list[Task]()
        for j, (kind, start, stop) in enumerate(self.head.columns):
            rows = known[:, j] if known.shape[1] > 1 else known[:, 0]
            if rows.any():
                places.append(slice(start, stop))
                tasks.append(Task(x[rows].double(), y[rows, j].double(), kind, stop - start))
        for place, (weight, bias) in zip(places, self.heads(tasks), strict=True):
            self.layer.weight[place] = weight.to(self.layer.weight.dtype)
            self.layer.bias[place] = bias.to(self.layer.bias.dtype)

"""PopArt: learn targets of different scales, each by its running mean and deviation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Probability
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.head import Head
from molgraph.nn.popart import PopArtLinear
from molgraph.train.network import Network
from molgraph.train.objective import Loss, StepState
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs


@register(
    "objective",
    "popart",
    summary="targets of different scales, each by its running mean and deviation (PopArt)",
    paper="Hessel et al. 2018, arXiv:1809.04474; van Hasselt et al. 2016, NeurIPS 29",
    systems=(
        SystemCard(
            "popart",
            left_out="reinforcement learning, whose returns have no scale beforehand: labels take their place",
            off="-s params.objective.beta=0",
            beside=("squared errors in the targets' units", "the scale of the whole training part"),
            modules=("molgraph.nn.popart",),
        ),
    ),
    command="molgraph train dataset:chembl2321810 -m dmpnn --objective popart -s params.objective.beta=0.01",
)
class PopArt(Supervised):
    """``(n - (y - mu) / sigma)^2`` of each number y in its own unit, n the normalised output of the head's last layer.

    Hessel et al. 2018, "Multi-task deep reinforcement learning with PopArt", section 3: mu and sigma follow each
    target's labels from batch to batch, from the first batch on, and whenever they move the last layer is rewritten so
    that no prediction changes (``nn.popart``). Nothing is scaled beforehand; validation is judged on the scale of the
    training part, as elsewhere. Targets of other kinds have their usual losses.

    Use it to see what a scale of all labels is worth, and as the form in which labels that come in rounds can be
    learned. Known limits: a fit has all labels of its training part, whose mean and deviation ``supervised`` takes
    once and for all; with those it does as well.

    Args:
        outputs: which output columns belong to which target.
        beta: share of a batch's moments in the running ones; with 0 errors are squared in the targets' own units.
        penalties: the weights of the network's penalties by name; 1 if not given.
    """

    mean: Tensor
    scale: Tensor

    def __init__(
        self, outputs: Outputs, *, beta: Probability = 0.01, penalties: Mapping[str, NotNegative] | None = None
    ) -> None:
        super().__init__(outputs, penalties=penalties)
        self.beta = beta
        self.numbers = [(j, start) for j, (kind, start, _) in enumerate(self.kinds) if kind == "regression"]
        columns = [start for _, start in self.numbers]
        mean, scale = torch.zeros(outputs.d_out).double(), torch.ones(outputs.d_out).double()
        rows = [j for j, _ in self.numbers]
        mean[columns], scale[columns] = torch.tensor(outputs.mean[rows]), torch.tensor(outputs.scale[rows])
        self.register_buffer("mean", mean, persistent=False)
        self.register_buffer("scale", scale, persistent=False)

    @classmethod
    def network_parts(cls, network: Network, **settings: Any) -> Mapping[str, nn.Module]:
        """Put the layer in the place of the head's last one.

        Raises:
            UnsupportedError: a head whose last layer's outputs are not the targets.
        """
        head = network.head
        if isinstance(head, Head):
            plain = type(head).forward is Head.forward and type(head).losses is Head.losses
            if not plain or head.layers[-1].out_features != head.d_out:
                words = "popart rewrites the last layer of a head that predicts values alone"
                raise UnsupportedError(words, hint="choose params.head=perceptron, or leave the objective out")
            old: Any = head.layers[-1]
            new = PopArtLinear(old.in_features, old.out_features)
            new.load_state_dict(old.state_dict(), strict=False)
            head.layers[-1] = new
        return {}

    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        """The losses, after the moments have moved to those of the batch where it is one of training."""
        layer = network.head.layers[-1]
        if state.training:
            if not layer.seen.any():
                layer.mean.copy_(self.mean), layer.scale.copy_(self.scale)
            rows, columns = [j for j, _ in self.numbers], [start for _, start in self.numbers]
            y = torch.zeros(len(batch.y), len(layer.mu)).to(layer.mu)
            known = torch.zeros_like(y, dtype=torch.bool)
            y[:, columns], known[:, columns] = batch.y[:, rows].double(), batch.weights[:, rows] > 0
            layer.move(y * self.scale + self.mean, known, self.beta)
            self.factors = (self.scale / layer.sigma).square()
        else:
            self.factors = torch.ones_like(self.scale)
        return super().forward(network, batch, state)

    def losses(self, network: Any, raw: Tensor, batch: Any) -> Tensor:
        """Squared errors over sigma, [n, t]; the losses of other kinds."""
        losses = super().losses(network, raw, batch)
        factors = torch.ones_like(losses)
        for j, start in self.numbers:
            factors[:, j] = self.factors[start].to(losses)
        return losses * factors

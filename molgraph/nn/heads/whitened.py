"""A perceptron whose first layer reads whitened states and descriptors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import Count, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.base.table import Target
from molgraph.nn.deconvolution import Deconvolution
from molgraph.nn.head import Head


@register(
    "head",
    "whitened",
    summary="a value of each target, of states and descriptors made independent of each other",
    paper="Ye et al. 2020, ICLR",
    systems=(
        SystemCard(
            "network-deconvolution",
            left_out="whitening before every layer, and the gradient through the covariance",
            off="-s params.head=perceptron",
            beside=("perceptron",),
            command="molgraph train dataset:chembl2321810 -m dmpnn --descriptors rdkit -s params.head=whitened",
            modules=("molgraph.nn.deconvolution",),
        ),
    ),
)
class WhitenedHead(Head):
    """``perceptron`` on ``(x - mean) Cov^(-1/2)``, x the state and the descriptors of a row side by side.

    Use it with descriptors (``--descriptors rdkit`` or ``--feature``), which are nearly multiples of each other. Known
    limits: what tells molecules apart and what is noise have the same variance afterwards; fewer rows than columns say
    little of a covariance.

    Args:
        d_in: width of the state and the descriptors together.
        targets: what is predicted.
        d_hidden: width of hidden layers.
        n_layers: linear layers.
        dropout: probability of dropping a hidden value while training.
        activation: between layers.
        group: columns that are whitened together.
        n_iter: Newton-Schulz iterations.
        eps: added to the variances, as a share of their mean.
    """

    def __init__(
        self,
        d_in: int,
        targets: Sequence[Target],
        d_hidden: Count = 300,
        n_layers: Count = 2,
        dropout: Probability = 0.0,
        activation: str = "relu",
        group: Width = 128,
        n_iter: Annotated[int, Range(1, 100)] = 5,
        eps: Annotated[float, Range(0, 1)] = 1e-4,
    ) -> None:
        super().__init__(d_in, targets, d_hidden, n_layers, dropout, activation)
        self.whiten = Deconvolution(d_in, group, n_iter, eps)

    def forward(self, h: Float[Tensor, "n d"], extra: Float[Tensor, "n e"] | None = None) -> Float[Tensor, "n width"]:
        """Raw outputs, from states and descriptors."""
        return super().forward(self.whiten(h if extra is None else torch.cat([h, extra], dim=1)))

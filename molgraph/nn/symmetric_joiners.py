"""Join the states of a pair so that the order of the two entities does not matter."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.joiners import Joiner, JoinPart

MOMENTUM = 0.1  # of the running mean and variance, once ten batches were seen


@register(
    "joiner",
    "symmetric",
    summary="products of two projections, the same for both orders of a pair; one encoder for both columns",
    paper="Hashemifar et al. 2018, Bioinformatics 34:i802 (DPPI)",
    systems=(
        SystemCard(
            "dppi",
            left_out="PSI-BLAST profiles in crops of 512 residues, average pooling: the encoder reads whole sequences",
            off="bilinear",
            beside=("bilinear", "cosine of the states"),
            command="molgraph train dataset:ppi_yeast -m deepdta+deepdta -s params.joiner=symmetric --epochs 2",
        ),
    ),
)
class Symmetric(Joiner):
    """``z = A(x) * B(y) + B(x) * A(y)`` with ``A(x) = ReLU(batchnorm(W_A x + b_A))``, and ``B`` alike.

    Hashemifar et al. 2018, "Predicting protein-protein interactions through sequence-based deep learning", section 2.3:
    both proteins go through one encoder, and two fixed random projections tell ``x`` that completes ``y`` from ``x``
    that resembles it. The paper gives ``[A(x) * B(y), B(x) * A(y)]`` to one linear layer, whose two halves have weights
    of their own, so that its answer depends on the order of the pair; here the halves share them, as their sum does.
    Mean and variance of the norm, which has no weights, are taken over the states of both columns together.

    Use it where the two columns are of one kind and a pair has no order: protein-protein interactions, drug-drug
    interactions, co-crystals.

    Args:
        widths: of the two parts' states, which are equal.
        width: of each projection.
        learned: whether the projections are trained; in the paper random ones did better.

    Raises:
        ValueError: not two parts, or parts of different widths.
    """

    shared = True
    weight: Float[Tensor, "two_width d"]
    bias: Float[Tensor, " two_width"]

    def __init__(self, widths: Sequence[int], *, width: Width = 512, learned: bool = False) -> None:
        super().__init__()
        if len(widths) != 2 or widths[0] != widths[1]:
            raise ValueError(f"it joins two states of one width, not those of widths {', '.join(map(str, widths))}")
        linear = nn.Linear(widths[0], 2 * width)
        for name, value in linear.named_parameters():
            if learned:
                self.register_parameter(name, value)
            else:
                self.register_buffer(name, value.detach())
        self.norm = nn.BatchNorm1d(2 * width, affine=False)
        self.d_out = width

    def forward(self, parts: Sequence[JoinPart]) -> Float[Tensor, "n {self.d_out}"]:
        """float [n, width]."""
        states = torch.cat([part.states for part in parts])
        projected = nn.functional.linear(states, self.weight, self.bias)
        if len(states):
            # the first batches weigh as in a plain mean: states of small variance would else begin far from it
            self.norm.momentum = max(MOMENTUM, 1 / (int(self.norm.num_batches_tracked or 0) + 1))
            projected = self.norm(projected)
        (a_x, b_x), (a_y, b_y) = (half.relu().chunk(2, dim=1) for half in projected.chunk(2))
        return a_x * b_y + b_x * a_y

"""Argmax quantisation: put the nearest corner of a simplex in the place of a point, and learn a vector of each."""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.bottleneck import Bottleneck
from molgraph.nn.code_bottleneck import CodeBottleneck, Quantised, parts_of

EPS = 1e-6  # of each coordinate, so that a point that no unit lights up is the middle of the simplex
DECAY = 0.99  # of the running mean by which rows are judged


@register(
    "bottleneck",
    "argmax",
    summary="codes that are corners of a simplex, without a codebook",
    paper="Dieleman, van den Oord and Simonyan 2018, NeurIPS",
    systems=(
        SystemCard(
            "amae",
            left_out="sound, WaveNet, stacked autoencoders; the prior is a GRU that is fitted along with the codes",
            off='-s "params.posterior=argmax(diversity=0)"',
            beside=("diversity=0",),
            command="molgraph train-generator dataset:chembl2321810 -m chemvae -s params.posterior=argmax "
            "-o generator.mgm",
            modules=("molgraph.nn.code_bottleneck", "molgraph.nn.code_prior"),
        ),
    ),
)
class ArgmaxQuantisation(CodeBottleneck):
    """``q = ReLU(W h + b)`` over its sum, a point on a simplex; its largest coordinate is the code.

    Dieleman, van den Oord and Simonyan 2018, "The challenge of realistic music generation: modelling raw audio at
    scale", section 3.2: the one-hot vector of the code is the nearest corner, and the gradient is copied from it to q.
    The price ``diversity``, ``sum_j (k mean(q_j) - 1)^2`` with the mean over the rows of a batch, keeps all codes in
    use. A linear layer makes the latent vector of the one-hot ones. Where it does not train, the mean is a running one.

    Args:
        d_in, d, prior, n_rows: as ``Bottleneck`` has them; there is no prior beside it.
        n_codes: corners, k.
        parts: that the latent vector is cut into, each with a code: as many as divide its width evenly, at most this.
        diversity: weight of that price.
    """

    usage: Float[Tensor, "parts k"]

    def __init__(
        self,
        d_in: int,
        d: int,
        prior: Bottleneck | None = None,
        n_rows: int = 0,
        n_codes: Annotated[int, Range(2, 65_536)] = 64,
        parts: Annotated[int, Range(1, 256)] = 8,
        diversity: NotNegative = 1.0,
    ) -> None:
        super().__init__(d_in, d, None, n_rows)
        self.diversity, n = diversity, parts_of(d, parts)
        self.linear, self.values = nn.Linear(d_in, n * n_codes), nn.Parameter(torch.randn(n_codes, d // n))
        self.register_buffer("usage", torch.full((n, n_codes), 1 / n_codes))
        self.with_prior(n_codes, n)

    def simplex(self, h: Float[Tensor, "n d_in"]) -> Float[Tensor, "n parts k"]:
        """The points before they are quantised."""
        x = self.linear(h).float().relu().unflatten(1, (self.n_columns, -1)) + EPS
        return x / x.sum(dim=2, keepdim=True)

    def corners(self, q: Float[Tensor, "n parts k"]) -> tuple[Float[Tensor, "n parts k"], Int[Tensor, "n parts"]]:
        """The nearest corners, whose gradient is copied to the points, and their codes."""
        code = q.argmax(dim=2)
        return q + (F.one_hot(code, self.n_codes) - q).detach(), code

    def quantise(self, h: Float[Tensor, "n d_in"], group: Int[Tensor, " n"] | None = None) -> Quantised:
        """Codes of the rows, whatever group they are in."""
        q = self.simplex(h)
        corner, code = self.corners(q)
        mean = self.usage
        if self.training and len(h):
            mean = q.mean(dim=0)
            self.usage.lerp_(mean.detach(), 1 - DECAY)
        price = self.diversity * (self.n_codes * mean - 1).square().sum(dim=1)
        return Quantised((corner @ self.values).flatten(1), code, {"diversity": price.expand(len(h), -1)})

    def vectors(self, code: Int[Tensor, "n columns"]) -> Float[Tensor, "n d"]:
        """The learned vectors side by side."""
        return self.values[code].flatten(1)

    def snap(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The nearest learned vectors, part by part."""
        x = z.unflatten(1, (self.n_columns, -1))
        return self.vectors((self.values.square().sum(dim=1) - 2 * x @ self.values.T).argmin(dim=2))

"""Define ``CodeBottleneck``, the base class of bottlenecks that put one of a few code vectors in a vector's place."""

from __future__ import annotations

from abc import abstractmethod
from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.seeds import generator
from molgraph.nn.bottleneck import Bottleneck, LatentState, Prices
from molgraph.nn.code_prior import CodePrior
from molgraph.nn.variational import LOG_VARIANCE, Gaussian


class Quantised(NamedTuple):
    """Discrete latent vectors.

    Args:
        z: the vectors that the codes stand for; their gradient is that of the vectors before (straight-through).
        code: of each row, one or several.
        prices: of each row, by name.
    """

    z: Float[Tensor, "n d"]
    code: Int[Tensor, "n columns"]
    prices: Prices


class CodeBottleneck(Bottleneck):
    """The base class of codes: ``quantise(h, group) -> Quantised``, and an autoregressive prior of a row's codes.

    A subclass calls ``with_prior(n_codes, n_columns)``, and has ``quantise``, ``vectors`` and ``snap``. As a posterior
    it draws nothing, and has its prior itself: the price ``code_prior`` is what the codes cost by that, through which
    no gradient reaches them.
    """

    discrete = True
    n_codes: int
    n_columns: int

    def with_prior(self, n_codes: int, n_columns: int) -> None:
        """Make the prior of rows of so many codes."""
        self.n_codes, self.n_columns = n_codes, n_columns
        self.codes = CodePrior(n_codes, n_columns)

    @abstractmethod
    def quantise(self, h: Float[Tensor, "n d_in"], group: Int[Tensor, " n"] | None = None) -> Quantised:
        """Codes and their vectors.

        Args:
            h: states of rows.
            group: the number of the group of each row, such as an atom's fragment, for those that code groups too;
                None: each row is a group.
        """

    @abstractmethod
    def vectors(self, code: Int[Tensor, "n columns"]) -> Float[Tensor, "n d"]:
        """What rows of codes stand for."""

    @abstractmethod
    def snap(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The nearest vectors that codes stand for."""

    def forward(self, h: Float[Tensor, "n d_in"], state: LatentState) -> tuple[Float[Tensor, "n d"], Prices]:
        """A vector of each row, and its prices."""
        q = self.quantise(h)
        return q.z, {**q.prices, "code_prior": self.codes(q.code)}

    def moments(self, h: Float[Tensor, "n d_in"]) -> Gaussian:
        """The vectors themselves, all but without spread."""
        z = self.quantise(h).z
        return Gaussian(z, torch.full_like(z, -LOG_VARIANCE))

    def sample(self, n: int, seed: int) -> Float[Tensor, "n d"]:
        """Vectors of rows of codes that the prior writes."""
        uniform = torch.from_numpy(generator(seed, "prior").random((n, self.n_columns)))
        return self.vectors(self.codes.sample(uniform.to(self.codes.out.weight.device)))

    def around(
        self, code: Float[Tensor, "n d"], noise: Float[Tensor, "n d"], spread: float = 0.5
    ) -> Float[Tensor, "n d"]:
        """The code vector nearest to each vector with noise, ``spread`` of that vector's standard deviation."""
        code = code.to(self.codes.out.weight)
        deviation = code.std(dim=1, correction=0, keepdim=True)
        return self.snap(code + spread * deviation * noise.to(code))


def parts_of(d: int, most: int) -> int:
    """The largest number of equal parts, ``most`` at most, that a width is divided into.

    Example:
        >>> parts_of(56, 8), parts_of(7, 4)
        (8, 1)
    """
    return next(n for n in range(min(d, most), 0, -1) if d % n == 0)

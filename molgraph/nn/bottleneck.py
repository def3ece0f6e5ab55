"""Define ``Bottleneck``, the base class of latent layers of autoencoders: a posterior, its divergence and its prior."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.base.errors import ConflictError, UnsupportedError
from molgraph.base.parts import make_part
from molgraph.base.registry import get, names
from molgraph.base.seeds import generator
from molgraph.nn.variational import Gaussian, gaussian_kl, standard_normal

MOMENTS = 32  # points by which the spread of a density that has none in closed form is measured
Prices: TypeAlias = Mapping[str, Float[Tensor, "n _"]]  # by name, of each row in one or more parts


class LatentState(NamedTuple):
    """What a bottleneck is given beside the states.

    Args:
        noise: standard normal, for each row's vector.
        row: of the training part, below 0 for rows that are not in it; None: none of them is.
    """

    noise: Float[Tensor, "n d"]
    row: Int[Tensor, " n"] | None = None


class Bottleneck(nn.Module):
    """The base class of bottlenecks: ``(h [n, d_in], state) -> (z [n, d], prices)``.

    As it stands it adds noise of variance 1 to the states and asks their divergence from its prior. A subclass has a
    ``posterior`` of its own, or a ``forward``. The price ``kl`` is one that an objective may weigh, others count as
    they are. A prior (``is_prior``) has ``density``, ``sample`` and ``around``; without one a bottleneck is its own,
    standard normal, prior. ``unit_variance`` says of a prior that posteriors beside it have the variance 1,
    ``discrete`` of a posterior that it draws nothing and has a prior of codes itself (``nn.code_bottleneck``).

    Args:
        d_in: width of a row's state; of a prior, d.
        d: width of a latent vector.
        prior: by which the price is measured; its own if not given.
        n_rows: rows of the training part, for priors that keep something of each.
    """

    is_prior: bool = False
    unit_variance: bool = False
    discrete: bool = False

    def __init__(self, d_in: int, d: int, prior: Bottleneck | None = None, n_rows: int = 0) -> None:
        super().__init__()
        self.d, self.prior = d, prior

    def posterior(self, h: Float[Tensor, "n d_in"]) -> Gaussian:
        """The Gaussian density that each row's vector is drawn from (and then bent, by a flow)."""
        return Gaussian(h, torch.zeros_like(h))

    def moments(self, h: Float[Tensor, "n d_in"]) -> Gaussian:
        """Centre and spread of each row's vector, without noise."""
        return self.posterior(h)

    def forward(self, h: Float[Tensor, "n d_in"], state: LatentState) -> tuple[Float[Tensor, "n d"], Prices]:
        """A vector of each row, and its prices."""
        q = self.posterior(h)
        z, p = q.draw(state.noise), self.beside(q.mean, state)
        return z, {"kl": gaussian_kl(q, p) if isinstance(p, Gaussian) else (q.log_prob(z) - p.log_prob(z))[:, None]}

    def weighed(
        self, h: Float[Tensor, "n d_in"], state: LatentState
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """A vector of each row, and ``log q(z|h) - log p(z)`` there, of which importance weights are made."""
        q = self.posterior(h)
        z = q.draw(state.noise)
        return z, q.log_prob(z) - self.beside(q.mean, state).log_prob(z)

    def beside(self, code: Float[Tensor, "n d"], state: LatentState) -> Any:
        """The density of its prior for each row, by the centre of the row's posterior."""
        return (self.prior or self).density(code, state)

    def density(self, code: Float[Tensor, "n d"], state: LatentState) -> Any:
        """Of a prior: a density for each row, ``Gaussian`` or anything with ``log_prob(z)``."""
        return standard_normal(code)

    def sample(self, n: int, seed: int) -> Float[Tensor, "n d"]:
        """Of a prior: vectors of it, the first the same whatever n is."""
        noise = torch.from_numpy(generator(seed, "prior").standard_normal((n, self.d)))
        return noise if self.prior is None else self.prior.sample(n, seed)

    def around(
        self, code: Float[Tensor, "n d"], noise: Float[Tensor, "n d"], spread: float = 0.5
    ) -> Float[Tensor, "n d"]:
        """Of a prior: a vector near each code, ``spread`` of its standard deviations away."""
        return code + spread * noise if self.prior is None else self.prior.around(code, noise, spread)


def make_bottleneck(posterior: str, d_in: int, d: int, prior: str = "normal", n_rows: int = 0) -> Bottleneck:
    """A registered bottleneck beside a registered prior, such as ``planar(n_maps=8)`` beside ``normal``.

    Raises:
        UsageError: an unknown name, one that is (or is not) a prior, or a value that a setting cannot have.

    Example:
        >>> z, prices = make_bottleneck("planar(n_maps=2)", 3, 5)(torch.ones(4, 3), LatentState(torch.zeros(4, 5)))
        >>> z.shape, prices["kl"].shape
        (torch.Size([4, 5]), torch.Size([4, 1]))
    """
    for name, role in ((posterior, False), (prior, True)):
        if get("bottleneck", name).is_prior != role:
            able = [kind for kind in names("bottleneck") if get("bottleneck", kind).is_prior == role]
            words = f"{name} is {'no' if role else 'a'} prior"
            raise UnsupportedError(words, hint=f"choose one of {', '.join(able)}")
    if get("bottleneck", posterior).discrete and prior != "normal":
        words = f"{posterior} has a prior of its codes, and no {prior} beside it"
        raise ConflictError(words, hint="leave params.prior out")
    beside = make_part("bottleneck", prior, d, d, None, n_rows)
    bottleneck: Bottleneck = make_part("bottleneck", posterior, d_in, d, beside, n_rows)
    return bottleneck

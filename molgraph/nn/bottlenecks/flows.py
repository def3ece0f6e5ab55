"""Bend Gaussian posteriors by normalizing flows: invertible maps, planar and radial."""

from __future__ import annotations

from typing import Annotated, ClassVar, NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.nn.bottleneck import MOMENTS, Bottleneck, LatentState, Prices
from molgraph.nn.bottlenecks.gaussian import linear_moments, split_moments
from molgraph.nn.variational import Gaussian


class Moved(NamedTuple):
    """Points after a flow.

    Args:
        z: the points.
        log_det: ``log |det df/dz|`` of each, by which their log density falls.
    """

    z: Float[Tensor, "rows d"]
    log_det: Float[Tensor, " rows"]


class PlanarMap(nn.Module):
    """``f(z) = z + u tanh(w.z + b)``, with ``|det| = |1 + u.w tanh'(w.z + b)|``.

    Rezende and Mohamed 2015, "Variational Inference with Normalizing Flows", ICML. It is invertible for
    ``w.u >= -1``, to which ``u`` is brought along ``w`` as in the paper's appendix.

    Args:
        d: dimensions.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(d) * d**-0.5), nn.Parameter(torch.randn(d) * 0.1 * d**-0.5)
        self.b = nn.Parameter(torch.zeros(()))

    def forward(self, z: Float[Tensor, "rows d"]) -> Moved:
        """The points after one map."""
        overlap = self.w @ self.u
        u = self.u + (F.softplus(overlap) - 1 - overlap) * self.w / self.w.square().sum().clamp(min=1e-12)
        h = torch.tanh(z @ self.w + self.b)
        slope = (1 - h.square()) * (u @ self.w)
        return Moved(z + u * h[:, None], slope.clamp(min=-1 + 1e-6).log1p())


class RadialMap(nn.Module):
    """``f(z) = z + beta h (z - z_0)`` with ``h = 1 / (alpha + |z - z_0|)``: towards a point, or away from it.

    Rezende and Mohamed 2015; ``|det| = (1 + beta h)^(d-1) (1 + beta h - beta h^2 r)``. It is invertible for
    ``beta >= -alpha``, and so is every ``beta`` that it can have.

    Args:
        d: dimensions.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.centre = nn.Parameter(torch.randn(d) * 0.1)
        self.raw_alpha, self.raw_beta = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))

    def forward(self, z: Float[Tensor, "rows d"]) -> Moved:
        """The points after one map."""
        alpha = F.softplus(self.raw_alpha) + 1e-3
        beta = F.softplus(self.raw_beta) - alpha
        away = z - self.centre
        r = (away.square().sum(dim=1) + 1e-12).sqrt()
        h = 1 / (alpha + r)
        stretch = beta * h
        log_det = (z.shape[1] - 1) * stretch.log1p() + (stretch - stretch * h * r).log1p()
        return Moved(z + stretch[:, None] * away, log_det)


class FlowBottleneck(Bottleneck):
    """A Gaussian whose points go through maps: ``log q_K(z_K) = log q_0(z_0) - sum_k log |det df_k/dz_(k-1)|``.

    Its price is ``log q(z|h) - log p(z)`` at the point that was drawn. A subclass has a ``make_map``.

    Args:
        d_in, d, prior, n_rows: as ``Bottleneck`` has them.
        n_maps: K; without any, points stay where they are.
    """

    make_map: ClassVar[type[nn.Module]]

    def __init__(
        self,
        d_in: int,
        d: int,
        prior: Bottleneck | None = None,
        n_rows: int = 0,
        n_maps: Annotated[int, Range(0, 64)] = 8,
    ) -> None:
        super().__init__(d_in, d, prior, n_rows)
        self.linear = linear_moments(d_in, d, prior)
        self.maps = nn.ModuleList(self.make_map(d) for _ in range(n_maps))

    def posterior(self, h: Float[Tensor, "n d_in"]) -> Gaussian:
        """The Gaussian that the maps begin with."""
        return split_moments(self.linear(h), self.d)

    def bend(self, z: Float[Tensor, "rows d"]) -> Moved:
        """The points after all maps, and the sum of their log determinants."""
        total = z.new_zeros(len(z))
        for flow in self.maps:
            z, log_det = flow(z)
            total = total + log_det
        return Moved(z, total)

    def moments(self, h: Float[Tensor, "n d_in"]) -> Gaussian:
        """The image of the mean and the spread around it, by points that are the same for every row."""
        q = self.posterior(h)
        noise = torch.from_numpy(generator(0, "moments").standard_normal((MOMENTS, self.d))).to(q.mean)
        points = torch.stack([self.bend(q.draw(sample.expand_as(q.mean))).z for sample in noise])
        centre = self.bend(q.mean).z
        return Gaussian(centre, (points - centre).square().mean(dim=0).clamp(min=1e-9).log())

    def forward(self, h: Float[Tensor, "n d_in"], state: LatentState) -> tuple[Float[Tensor, "n d"], Prices]:
        """A point of each row, and its price in one part."""
        q = self.posterior(h)
        start, p = q.draw(state.noise), self.beside(q.mean, state)
        z, log_det = self.bend(start)
        return z, {"kl": (q.log_prob(start) - log_det - p.log_prob(z))[:, None]}

    def weighed(
        self, h: Float[Tensor, "n d_in"], state: LatentState
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """A point of each row, and its price."""
        z, prices = self(h, state)
        return z, prices["kl"].sum(dim=1)


@register(
    "bottleneck",
    "planar",
    summary="a Gaussian that planar maps bend",
    paper="Rezende and Mohamed 2015, ICML",
    command="molgraph train-generator dataset:chembl2321810 -m chemvae -s params.posterior=planar -o generator.mgm",
)
class Planar(FlowBottleneck):
    """Planar maps (``PlanarMap``), each of which bends along one direction."""

    make_map = PlanarMap


@register("bottleneck", "radial", summary="a Gaussian that radial maps bend", paper="Rezende and Mohamed 2015, ICML")
class Radial(FlowBottleneck):
    """Radial maps (``RadialMap``), each towards a point or away from it."""

    make_map = RadialMap

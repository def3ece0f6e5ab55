"""Early exit: read a graph out of several layers, weighted by a learned probability of stopping at each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, ClassVar, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.atom_encoder import AtomEncoder, Pooled, SharedStates
from molgraph.nn.block import BlockOption
from molgraph.nn.encoder import Encoder
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation

LEFT_OUT = "alignment of sequences: the scan is over the layers of an encoder; all layers are computed"

Stops: TypeAlias = Float[Tensor, "layers g heads"]  # of each layer, for each graph and head


def stop_chances(p: Float[Tensor, "layers ..."]) -> Float[Tensor, "layers ..."]:
    """The chance that reading stops at each layer: ``p_l prod_{m<l} (1 - p_m)``; what is left stops at the last.

    Raffel et al. 2017, equations 6 to 8 with one output.

    Example:
        >>> stop_chances(torch.tensor([0.5, 0.5, 0.5])).tolist()
        [0.5, 0.25, 0.25]
    """
    still = torch.cat([torch.ones_like(p[:1]), (1 - p[:-1]).cumprod(0)])
    return still * torch.cat([p[:-1], torch.ones_like(p[:1])])


def lookback(stop: Float[Tensor, "layers ..."], energy: Float[Tensor, "layers ..."]) -> Float[Tensor, "layers ..."]:
    """The weight of each layer where soft attention looks back over all layers up to the stop.

    Arivazhagan et al. 2019, equation 3: ``beta_j = sum_{k >= j} alpha_k exp(u_j) / sum_{l <= k} exp(u_l)``.

    Example:
        >>> lookback(torch.tensor([0.0, 0.0, 1.0]), torch.tensor([0.0, 0.0, 60.0])).tolist()[-1]
        1.0
    """
    total = torch.logcumsumexp(energy, dim=0)  # of each stop k
    shares = (energy.unsqueeze(1) - total.unsqueeze(0)).exp()  # [j, k, ...]
    upto = torch.ones(len(stop), len(stop), dtype=stop.dtype, device=stop.device).triu()  # k >= j
    return torch.einsum("jk,jk...,k...->j...", upto, shares, stop.expand(shares.shape[1:]))


class Exit(BlockOption):
    """The base class of exits: a state of each layer's graphs, ``W_l sum(h_l) / sqrt(n)``, weighed by ``weights``.

    In training each layer counts by the chance of stopping there; in prediction reading stops at the first layer whose
    chance is above a half. The penalty ``depth`` is ``cost`` times the mean number of layers that are read.

    Args:
        cost: of a layer, in units of the loss.
    """

    key = "exit"
    noise: ClassVar[float] = 1.0

    def __init__(self, cost: Annotated[float, Range(0, 1_000)] = 0.01) -> None:
        super().__init__()
        self.cost = cost
        self.n_heads = 1

    def build(self, encoder: Encoder) -> str:
        """A layer for the states of each layer; an encoder that does not tell these is refused."""
        if not encoder.d_layers or not isinstance(encoder, AtomEncoder):
            return "does not give the states of each layer"
        if encoder.d_out % self.n_heads:
            return f"gives states of width {encoder.d_out}, which {self.n_heads} heads cannot share"
        self.maps = nn.ModuleList(nn.Linear(d, encoder.d_out) for d in encoder.d_layers)
        self.stop = nn.Linear(encoder.d_out, self.n_heads)
        return ""

    def weights(self, stop: Stops, h: Float[Tensor, "layers g d"]) -> Stops:
        """How much each layer counts, by the chances of stopping there."""
        return stop

    def pool(self, call: Callable[[SharedStates], Pooled], found: SharedStates) -> Pooled:
        """One state a graph, from those of all layers."""
        h = torch.stack([m(_pooled(x, members)) for m, (x, members) in zip(self.maps, found.layers, strict=True)])
        logits = self.stop(h)
        if self.training:  # Raffel et al. 2017, section 2.4: noise makes the chances nearly binary
            stop = stop_chances((logits + self.noise * torch.randn_like(logits)).sigmoid())
        else:
            stop = stop_chances((logits > 0).to(h.dtype))
        weights = self.weights(stop, h).repeat_interleave(h.shape[2] // self.n_heads, dim=2)
        return (weights * h).sum(0), self.penalties(layers_read(stop))

    def penalties(self, depth: Float[Tensor, "g heads"]) -> dict[str, Float[Tensor, ""]]:
        """What a graph costs by the layers that it reads."""
        return {"depth": self.cost * depth.mean()}


def layers_read(stop: Stops) -> Float[Tensor, "g heads"]:
    """The mean number of layers that are read, from the chances of stopping at each."""
    numbers = torch.arange(1, len(stop) + 1, dtype=stop.dtype, device=stop.device)
    return torch.einsum("lgh,l->gh", stop, numbers)


def _pooled(h: Tensor, members: Relation) -> Tensor:
    return propagate(h, members) / members.offsets.diff().clamp(min=1).to(h.dtype).sqrt().unsqueeze(1)


@register(
    "block",
    "halting",
    tags=("exit",),
    systems=(
        SystemCard(
            "monotonic-attention",
            left_out=LEFT_OUT,
            off="-s params.exit=none",
            beside=("all layers",),
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.exit=halting(cost=0.01)'",
            modules=("molgraph.nn.block",),
        ),
    ),
    summary="each graph is read out of the layer at which it stops",
    paper="Raffel et al. 2017, ICML",
)
class Halting(Exit):
    """The state of the layer at which reading stops, ``sum_l alpha_l h_l`` in training."""


@register(
    "block",
    "lookback",
    tags=("exit",),
    systems=(
        SystemCard(
            "milk",
            left_out=LEFT_OUT,
            off="-s params.exit=halting",
            beside=("the layer of the stop alone",),
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.exit=lookback(cost=0.01)'",
            modules=("molgraph.nn.block",),
        ),
    ),
    summary="attention over all layers up to the one at which a graph stops",
    paper="Arivazhagan et al. 2019, ACL",
)
class Lookback(Exit):
    """``sum_j beta_j h_j``: jumping knowledge by attention, over the layers up to a learned stop."""

    def build(self, encoder: Encoder) -> str:
        """A layer for the attention's energies beside those of the base class."""
        if lacking := super().build(encoder):
            return lacking
        self.energy = nn.Linear(encoder.d_out, 1)
        return ""

    def weights(self, stop: Stops, h: Float[Tensor, "layers g d"]) -> Stops:
        """Equation 3."""
        return lookback(stop, self.energy(h))


@register(
    "block",
    "heads",
    tags=("exit",),
    systems=(
        SystemCard(
            "mma",
            left_out=f"{LEFT_OUT}; soft attention by head (MMA-IL); the weighted average lagging of heads",
            off="-s params.exit=halting",
            beside=("one stop for all",),
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.exit=heads(n=4)'",
            modules=("molgraph.nn.block",),
        ),
    ),
    summary="several stops: each head reads a share of the state out of a layer of its own",
    paper="Ma et al. 2020, ICLR",
)
class Heads(Exit):
    """A stop for each of ``n`` shares of the state; the penalty ``heads`` is the variance of their depths.

    Args:
        n: heads.
        cost: of a layer, in units of the loss.
        variance: weight of the variance of the depths of a graph's heads.
    """

    def __init__(
        self,
        n: Annotated[int, Range(1, 64)] = 4,
        cost: Annotated[float, Range(0, 1_000)] = 0.01,
        variance: Annotated[float, Range(0, 1_000)] = 0.0,
    ) -> None:
        super().__init__(cost)
        self.n_heads, self.variance = n, variance

    def penalties(self, depth: Float[Tensor, "g heads"]) -> dict[str, Float[Tensor, ""]]:
        """The heads' variance beside the depth."""
        spread = self.variance * depth.var(dim=1, correction=0).mean()
        return {**super().penalties(depth), "heads": spread}

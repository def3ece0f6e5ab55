"""Base class of encoders whose rows are directed pairs of atoms in space, and whose messages know angles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.joined_linear import CodedRows, JoinedLinear
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate
from molgraph.nn.spherical_basis import RadialBessel, smooth_cutoff, spherical_bessel, zonal_harmonics
from molgraph.nn.triplets import DirectedPairs, directed_pairs, distances
from molgraph.nn.weighted_sum import Weights

AT_ONCE = 2000  # pairs, whose messages stay in a processor's cache
ALL = 1 << 62


@dataclass(frozen=True)
class Bases:
    """What the messages of a batch know of space, computed once for all blocks.

    Args:
        radial: float [p, n_radial], of the length of each pair.
        bessel: float [n_spherical, n_radial, p], spherical Bessel functions of the length of each pair.
        angles: float [n_spherical, t] and its order, zonal harmonics of the angle of each triplet.
    """

    radial: Float[Tensor, "p n_radial"]
    bessel: Float[Tensor, "n_spherical n_radial p"]
    angles: Weights


class Directional(AtomEncoder):
    """Directional message passing: ``m_ji <- f(m_ji, sum_k g(m_kj, d_kj, angle(kj, ji)))``, k near j but not i.

    A subclass has ``cosines``, as ``nn.triplets.turns``, and ends its constructor with ``self.build``. Bases are those
    of ``nn.spherical_basis``, each times ``u(x) / x`` of ``x = d / cutoff``. On a processor a batch is computed part by
    part, each of whole graphs, which changes no value.
    """

    reads = ("geometry",)
    needs = ("atom", "atom.position")
    cosines: Callable[..., Tensor]

    def build(
        self, spec: InputSpec, d_hidden: int, d_atom: int, n_radial: int, n_spherical: int, cutoff_angstrom: float,
        envelope_exponent: int, blocks: Iterable[nn.Module], outputs: Iterable[nn.Module], norm: str, readout: str,
    ) -> None:  # fmt: skip
        """Put the layers together: one block of ``blocks`` between two of ``outputs``."""
        self.normed = norm != "none"
        self.cutoff, self.power, self.n_spherical = cutoff_angstrom, envelope_exponent + 1, n_spherical
        self.radial = RadialBessel(n_radial)
        self.embed = nn.Linear(spec.width("atom"), d_hidden, bias=False)
        nn.init.uniform_(self.embed.weight, -(3**0.5), 3**0.5)
        self.embed_radial = nn.Linear(n_radial, d_hidden)
        self.embed_pair = JoinedLinear(3 * d_hidden, d_hidden)
        self.blocks, self.outputs = nn.ModuleList(blocks), nn.ModuleList(outputs)
        self.norms = make_norms(norm, [d_hidden] * len(self.blocks))
        self.d_layers = (d_atom,) * len(self.outputs)
        self.read_by(readout, d_atom)

    def prepare(self, batch: GraphBatch) -> None:
        """Find the pairs within the cutoff and their triplets ahead."""
        _ = directed_pairs(batch, self.cutoff, self.at_once()), relations.members(batch)

    def at_once(self) -> int:
        """After how many pairs a part of a batch ends: never on a GPU, nor under a norm, which may be over all rows."""
        return ALL if self.normed or self.embed.weight.is_cuda else AT_ONCE

    def states(self, batch: GraphBatch) -> list[Float[Tensor, "n_atoms d"]]:
        """What the outputs up to each block contribute for each atom, float [n_atoms, d_atom]."""
        atoms = batch["atom"]
        table, positions = self.embed(atoms.table), atoms.arrays["position"].to(self.embed.weight.dtype)
        parts = [
            self._part(pairs, CodedRows(table, atoms.code[pairs.atoms]), positions[pairs.atoms])
            for pairs in directed_pairs(batch, self.cutoff, self.at_once())
        ]
        sums = (torch.cat(blocks) for blocks in zip(*parts, strict=True))
        return list(accumulate(output(heard) for output, heard in zip(self.outputs, sums, strict=True)))

    def _part(self, pairs: DirectedPairs, atoms: CodedRows, positions: Float[Tensor, "n 3"]) -> list[Tensor]:
        """What arrives at the atoms of some graphs for each output, float [n, d_hidden]."""
        bases = self.bases(pairs, positions)
        ends = [
            CodedRows(atoms.table, atoms.code.index_select(0, end)) for end in (pairs.near.target, pairs.near.source)
        ]
        m = silu(self.embed_pair(*ends, silu(project(bases.radial, self.embed_radial))))
        first, *others = cast("Iterable[Output]", self.outputs)
        sums = [first.arriving(m, bases.radial, pairs)]
        for block, norm, output in zip(self.blocks, self.norms, others, strict=True):
            m = norm(block(m, bases), pairs.to_graphs)
            sums.append(output.arriving(m, bases.radial, pairs))
        return sums

    def bases(self, pairs: DirectedPairs, positions: Float[Tensor, "n 3"]) -> Bases:
        """The bases of all pairs and triplets."""
        vectors = relations.pair_vectors(pairs.near, positions)
        d = distances(vectors)
        x = d / self.cutoff
        fade = smooth_cutoff(x, self.power)
        radial = self.radial(x) * fade.unsqueeze(1)
        bessel = spherical_bessel(x, self.n_spherical, radial.shape[1]) * (fade / x)
        cosine = self.cosines(vectors, d, pairs.triplets.relation)
        return Bases(radial, bessel, Weights.of(pairs.triplets, zonal_harmonics(cosine, self.n_spherical)))


class Output(nn.Module):
    """What a block contributes for each atom: ``t_i = MLP(W sum_j m_ji * (W e_RBF(d_ji)))``.

    Args:
        n_radial, d_hidden: widths of the basis and of messages.
        d_wide: width of the perceptron's layers; that of messages, and no matrix before them, where it is None.
        n_layers: its hidden layers.
        d_atom: width of what it gives.
    """

    def __init__(self, n_radial: int, d_hidden: int, d_wide: int | None, n_layers: int, d_atom: int) -> None:
        super().__init__()
        wide = d_wide or d_hidden
        self.gate = orthogonal(n_radial, d_hidden, bias=False)
        self.up = orthogonal(d_hidden, wide, bias=False) if d_wide else nn.Identity()
        self.layers = nn.ModuleList(orthogonal(wide, wide) for _ in range(n_layers))
        self.last = orthogonal(wide, d_atom, bias=False, gain=0.003)  # the paper begins at 0

    def arriving(
        self, m: Float[Tensor, "p d"], radial: Float[Tensor, "p n_radial"], pairs: DirectedPairs
    ) -> Float[Tensor, "n d"]:
        """Messages summed over the pairs that arrive at an atom: float [p, d_hidden] to [n_atoms, d_hidden]."""
        return propagate(times(project(radial, self.gate), m), pairs.to_atoms)

    def forward(self, heard: Float[Tensor, "n d"]) -> Float[Tensor, "n d_atom"]:
        """These sums, float [n_atoms, d_hidden], to [n_atoms, d_atom]."""
        t = self.up(heard)
        for layer in self.layers:
            t = silu(layer(t))
        return self.last(t)


class Refine(nn.Module):
    """Residual layers before and after the skip: ``r(m + silu(W r(h) + b))``, ``r(h) = h + silu(W silu(W h + b) + b)``.

    Args:
        d: width of messages.
        n_before, n_after: number of residual layers on both sides of the skip.
    """

    def __init__(self, d: int, n_before: int, n_after: int) -> None:
        super().__init__()
        self.before = nn.ModuleList(Residual(d) for _ in range(n_before))
        self.middle = orthogonal(d, d)
        self.after = nn.ModuleList(Residual(d) for _ in range(n_after))

    def forward(self, h: Float[Tensor, "p d"], m: Float[Tensor, "p d"]) -> Float[Tensor, "p d"]:
        """What was heard and the messages before, float [p, d], to the messages after."""
        for layer in self.before:
            h = layer(h)
        h = silu(self.middle(h)).add_(m)
        for layer in self.after:
            h = layer(h)
        return h


class Residual(nn.Module):
    """``h + silu(W silu(W h + b) + b)``."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.first, self.second = orthogonal(d, d), orthogonal(d, d)

    def forward(self, h: Float[Tensor, "p d"]) -> Float[Tensor, "p d"]:
        """float [p, d] to [p, d]."""
        return silu(self.second(silu(self.first(h)))).add_(h)


def orthogonal(d_in: int, d_out: int, *, bias: bool = True, gain: float = 1.0) -> nn.Linear:
    """A linear layer with an orthogonal weight of the standard deviation ``gain (2 / (d_in + d_out))^(1/2)``."""
    layer = nn.Linear(d_in, d_out, bias=bias)
    nn.init.orthogonal_(layer.weight, gain * (2 * max(d_in, d_out) / (d_in + d_out)) ** 0.5)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def project(x: Float[Tensor, "p d_in"], layer: nn.Linear) -> Float[Tensor, "p d_out"]:
    """``layer(x)`` for few columns: the weight's gradient is then a product with long columns, ten times as fast."""
    weight = layer.weight.t().contiguous()
    return x @ weight if layer.bias is None else torch.addmm(layer.bias, x, weight)


def silu(x: Float[Tensor, "p d"]) -> Float[Tensor, "p d"]:
    """``x / (1 + exp(-x))``, in the memory of x where no gradient asks for it."""
    return F.silu(x, inplace=not torch.is_grad_enabled())


def times(x: Float[Tensor, "p d"], y: Float[Tensor, "p d"]) -> Float[Tensor, "p d"]:
    """``x * y``, in the memory of x where no gradient asks for it."""
    return x * y if torch.is_grad_enabled() else x.mul_(y)

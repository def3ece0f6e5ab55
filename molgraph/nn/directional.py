"""Base class of DimeNet and DimeNet++: message passing between directed pairs of atoms with angles."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate
from typing import cast

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.directional_layers import Output, project, silu
from molgraph.nn.joined_linear import CodedRows, JoinedLinear
from molgraph.nn.norms import make_norms
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


CARD = SystemCard(
    "dimenet",
    "its cap of 32 neighbours an atom, its schedule with a moving average of weights",
    off="-s params.n_spherical=1",
    beside=("without angles", "schnet"),
    modules=("molgraph.nn.directional", "molgraph.nn.spherical_basis"),
)


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

"""PaiNN: messages of numbers and of vectors between atoms in space, equivariant under rotation."""

from __future__ import annotations

import math
from types import MappingProxyType
from typing import Annotated, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.basis import cosine_cutoff, safe_norm
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation

Numbers: TypeAlias = Float[Tensor, "n d"]
Vectors: TypeAlias = Float[Tensor, "n 3 d"]
Pairs: TypeAlias = Float[Tensor, "p _"]


@register(
    "encoder",
    "painn",
    tags=("3d",),
    summary="numbers and vectors of atoms in space, which turn with the molecule",
    paper="Schuett et al. 2021, ICML",
    line=("atoms", "radius", "filtered numbers, vectors, directions", "gates", "sum", "supervised"),
)
class PaiNN(AtomEncoder):
    """The polarizable atom interaction network: states are numbers ``s`` [d] and vectors ``v`` [3, d] of each atom.

    Schuett, Unke and Gastegger 2021, "Equivariant message passing for the prediction of tensorial properties and
    molecular spectra", section 4. From ``s_i = a_(Z_i)``, ``v_i = 0`` on, ``depth`` times a message, equations 7 and 8,
    ``s_i += sum_j phi_s(s_j) * W_s(d_ij)``, ``v_i += sum_j v_j * phi_vv(s_j) * W_vv(d_ij) + phi_vs(s_j) * W_vs(d_ij)
    r_ij / d_ij``, then an update, equations 9 and 10, ``s_i += a_ss + a_sv <U v_i, V v_i>``, ``v_i += a_vv U v_i`` with
    gates ``a(s_i, |V v_i|)``. ``phi`` and ``a`` are perceptrons (SiLU); ``W(d)`` is linear in ``sin(k pi d / cutoff) /
    d`` and fades to 0. ``v`` turns with the atoms, ``s`` does not change.

    Use it where angles matter, without triplets: with 2,400 molecules of QM9 gaps were off by 401 meV, by ``schnet``
    552. Energies are for ``params.head=atomwise``, numbers that do not grow with the molecule, such as gaps, for
    ``params.readout=mean``. Known limits: mirror images are one to it; no head reads ``v`` (dipoles, tensors) yet.

    Args:
        spec: what the graphs hold.
        d_hidden: numbers of an atom's state, and as many vectors; 128 in the paper.
        depth: pairs of a message and an update.
        cutoff_angstrom: radius within which atoms see each other.
        n_basis: sines of a distance.
        norm: a registered norm, of the numbers that each pair of steps adds; the paper has none.
        readout: rows to graph, a registered readout.

    Raises:
        UsageError: an unknown norm or readout.
    """

    reads = ("geometry",)
    needs = ("atom", "atom.position")
    small = MappingProxyType({"d_hidden": 8, "n_basis": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 3,
        cutoff_angstrom: Annotated[float, Range(0, 100, above=True)] = 5.0,
        n_basis: Annotated[int, Range(1, INNER_LIMIT)] = 20,
        norm: str = "none",
        readout: str = "sum",
    ) -> None:
        super().__init__()
        self.cutoff, self.n_basis = cutoff_angstrom, n_basis
        self.embed = nn.Linear(spec.width("atom"), d_hidden, bias=False)
        self.messages = nn.ModuleList(_Message(d_hidden, n_basis) for _ in range(depth))
        self.updates = nn.ModuleList(_Update(d_hidden) for _ in range(depth))
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.d_layers = (d_hidden,) * depth
        self.read_by(readout, d_hidden)

    def prepare(self, batch: GraphBatch) -> None:
        """Find the pairs within the cutoff ahead."""
        _ = relations.radius(batch, self.cutoff).transpose, relations.members(batch)

    def states(self, batch: GraphBatch) -> list[Numbers]:
        """The atoms' numbers after each pair of steps, float [n_atoms, d]."""
        return [s for s, _ in self.numbers_and_vectors(batch)]

    def numbers_and_vectors(self, batch: GraphBatch) -> list[tuple[Numbers, Vectors]]:
        """``s`` and ``v`` of the atoms after each pair of steps."""
        near, members = relations.radius(batch, self.cutoff), relations.members(batch)
        r = -relations.pair_vectors(near, batch["atom"].arrays["position"]).to(self.embed.weight.dtype)
        d = safe_norm(r).unsqueeze(1)
        unit = r * torch.where(d > 1e-6, 1 / d, 0)  # atoms at one place have no direction
        waves = torch.arange(1, self.n_basis + 1, dtype=d.dtype, device=d.device) * (math.pi / self.cutoff)
        pairs = torch.cat([torch.sin(d * waves) / d, cosine_cutoff(d[:, 0], self.cutoff).unsqueeze(1), unit], dim=1)
        s = self.embed(batch.features("atom"))
        v, layers = s.new_zeros(len(s), 3, s.shape[1]), []
        for message, update, norm in zip(self.messages, self.updates, self.norms, strict=True):
            more, turned = message(s, v, near, pairs)
            also, scaled = update(s + more, v + turned)
            s, v = s + norm(more + also, members), v + turned + scaled
            layers.append((s, v))
        return layers


class _Message(nn.Module):
    """Equations 7 and 8: what is added to numbers and vectors."""

    def __init__(self, d: int, n_basis: int) -> None:
        super().__init__()
        self.phi = nn.Sequential(nn.Linear(d, d), nn.SiLU(), nn.Linear(d, 3 * d))
        self.filter = nn.Linear(n_basis, 3 * d)

    def forward(self, s: Numbers, v: Vectors, near: Relation, pairs: Pairs) -> tuple[Numbers, Vectors]:
        """``s`` and ``v`` of atoms; basis, cutoff function and direction of each pair."""
        basis, fade, unit = pairs.split([pairs.shape[1] - 4, 1, 3], dim=1)
        rows = torch.cat([self.phi(s).unflatten(1, (3, -1)), v], dim=1)
        filters = (self.filter(basis) * fade).unflatten(1, (3, -1))
        edges = torch.cat([filters, unit.unsqueeze(2).expand(-1, -1, s.shape[1])], dim=1)
        out = propagate(rows, near, edge_rows=edges, message=_filtered)
        return out[:, 0], out[:, 1:]


def _filtered(source: Tensor, target: Tensor | None, edges: Tensor) -> Tensor:
    """Rows ``phi`` and ``v``, filters and directions, float [p, 3 + 3, d] each, to [p, 1 + 3, d]."""
    number, straight, along = (source[:, :3] * edges[:, :3]).split(1, dim=1)
    return torch.cat([number, source[:, 3:] * straight + along * edges[:, 3:]], dim=1)


class _Update(nn.Module):
    """Equations 9 and 10: what is added to numbers and vectors."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.u, self.v = nn.Linear(d, d, bias=False), nn.Linear(d, d, bias=False)
        self.gates = nn.Sequential(nn.Linear(2 * d, d), nn.SiLU(), nn.Linear(d, 3 * d))

    def forward(self, s: Numbers, v: Vectors) -> tuple[Numbers, Vectors]:
        """``s`` and ``v`` of atoms."""
        left, right = self.u(v), self.v(v)
        a_ss, a_sv, a_vv = self.gates(torch.cat([s, safe_norm(right)], dim=1)).chunk(3, dim=1)
        return a_ss + a_sv * (left * right).sum(1), a_vv.unsqueeze(1) * left

"""DimeNet: directional message passing, with a bilinear layer of messages and angles."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Layers, Range, Width
from molgraph.base.registry import register
from molgraph.data.graph_store import InputSpec
from molgraph.nn.directional import CARD, Bases, Directional
from molgraph.nn.directional_layers import Output, Refine, orthogonal, project, silu, times
from molgraph.nn.triplets import end_angles, turns
from molgraph.nn.weighted_sum import weighted_sum


@register(
    "encoder",
    "dimenet",
    tags=("3d",),
    systems=(CARD,),
    summary="angles between atoms in space, the first network; dimenet_plus_plus is faster",
    paper="Gasteiger et al. 2020, ICLR",
    line=("directed pairs", "triplets", "radial x angular basis", "residual", "sum of every block", "supervised"),
)
class DimeNet(Directional):
    """Messages of directed pairs of atoms within a radius, joined with distances and angles by a bilinear layer.

    Gasteiger et al. 2020, "Directional Message Passing for Molecular Graphs", equations 4 and 9 and figure 4:

    ``m'_ji = r(m_ji + silu(W r(silu(W m_ji) + s_ji)))`` with
    ``s_ji = sum_k (W a_SBF(d_kj, angle))^T B (silu(W m_kj) * W e_RBF(d_kj))`` over the neighbours k of j but i, and
    ``t_i = MLP(sum_j m_ji * W e_RBF(d_ji))``. The blocks' ``t_i`` are summed, and then the atoms.

    Outputs equal those of PyG's ``DimeNet`` with equal weights, and published weights of that network load
    (``nn.dimenet_checkpoint``). Where the authors' code differs from the paper, this follows the code: the angle is
    that at atom i, between j and k, where the paper has the angle at atom j (``angle="paper"``); there are 6 radial
    functions where the paper has 16; the cutoff function is divided by ``d / cutoff`` in both bases, and the factors of
    the cutoff are left to the weights. The bilinear layer is taken once a pair, as two matrix products.

    Use it to reproduce published figures; ``dimenet_plus_plus`` learns the same faster. Known limits: those of
    ``dimenet_plus_plus``, and twice its cost.

    Args:
        spec: what the graphs hold.
        d_hidden: width of a message.
        depth: interaction blocks.
        n_bilinear: width of an angular basis in the bilinear layer.
        d_atom: width of an atom's contribution.
        n_spherical: angular functions; 1 is a network without angles.
        n_radial: radial functions.
        cutoff_angstrom: radius within which atoms see each other.
        envelope_exponent: p - 1 of the cutoff function, as in the authors' code.
        n_before_skip, n_after_skip: residual layers of a block on both sides of its skip.
        n_output_layers: hidden layers of the outputs' perceptrons.
        angle: the angle of a triplet k->j->i, ``published`` at i or ``paper`` at j.
        norm: a registered norm, of each block's messages; the paper has none.
        readout: rows to graph, a registered readout.

    Raises:
        UsageError: an unknown norm or readout.
    """

    small = MappingProxyType({"d_hidden": 8, "d_atom": 8, "n_bilinear": 4, "depth": 2})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 128,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 6,
        n_bilinear: Width = 8,
        d_atom: Width = 128,
        n_spherical: Annotated[int, Range(1, 16)] = 7,
        n_radial: Annotated[int, Range(1, 64)] = 6,
        cutoff_angstrom: Annotated[float, Range(0, 100, above=True)] = 5.0,
        envelope_exponent: Annotated[int, Range(1, 64)] = 5,
        n_before_skip: Layers = 1,
        n_after_skip: Layers = 2,
        n_output_layers: Layers = 3,
        angle: Literal["published", "paper"] = "published",
        norm: str = "none",
        readout: str = "sum",
    ) -> None:
        super().__init__()
        self.cosines = end_angles if angle == "published" else turns
        sizes = d_hidden, n_bilinear, n_radial, n_spherical, n_before_skip, n_after_skip
        self.build(
            spec, d_hidden, d_atom, n_radial, n_spherical, cutoff_angstrom, envelope_exponent,
            [_Block(*sizes) for _ in range(depth)],
            [Output(n_radial, d_hidden, None, n_output_layers, d_atom) for _ in range(depth + 1)],
            norm, readout,
        )  # fmt: skip


class _Block(nn.Module):
    """One interaction block."""

    def __init__(self, d: int, n_bilinear: int, n_radial: int, n_spherical: int, n_before: int, n_after: int) -> None:
        super().__init__()
        self.radial = orthogonal(n_radial, d, bias=False)
        self.spherical = orthogonal(n_spherical * n_radial, n_bilinear, bias=False, gain=0.03)
        self.send, self.keep = orthogonal(d, d), orthogonal(d, d)
        self.bilinear = nn.Parameter(torch.randn(d, n_bilinear, d) * (2 / d))
        self.refine = Refine(d, n_before, n_after)

    def forward(self, m: Float[Tensor, "p d"], bases: Bases) -> Float[Tensor, "p d"]:
        """Messages before, float [p, d], to messages after."""
        sent = times(silu(self.send(m)), project(bases.radial, self.radial))
        n_spherical, n_radial, p = bases.bessel.shape
        d, n_bilinear, _ = self.bilinear.shape
        weight = self.spherical.weight.t().view(n_spherical, n_radial, n_bilinear)
        filters = torch.bmm(bases.bessel.transpose(1, 2), weight).transpose(0, 1)  # [p, n_spherical, n_bilinear]
        mixed = sent @ self.bilinear.permute(2, 1, 0).reshape(d, -1)  # [p, n_bilinear d]
        rows = torch.bmm(filters, mixed.view(p, n_bilinear, d)).transpose(0, 1)
        return self.refine(silu(self.keep(m)).add_(weighted_sum(rows, bases.angles)), m)

"""DimeNet++: directional message passing with small products in the place of a bilinear layer."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Layers, Range, Width
from molgraph.base.registry import register
from molgraph.data.graph_store import InputSpec
from molgraph.nn.directional import CARD, Bases, Directional
from molgraph.nn.directional_layers import Output, Refine, orthogonal, silu, times
from molgraph.nn.filtered_sum import filtered_sum
from molgraph.nn.triplets import turns


@register(
    "encoder",
    "dimenet_plus_plus",
    tags=("3d",),
    systems=(CARD,),
    summary="angles between atoms in space: for energies and quantum properties",
    paper="Gasteiger et al. 2020, NeurIPS workshop on machine learning for molecules, arXiv:2011.14115",
    line=("directed pairs", "triplets", "radial x angular basis", "residual", "sum of every block", "supervised"),
)
class DimeNetPlusPlus(Directional):
    """Messages of directed pairs of atoms within a radius, filtered by distances and angles.

    Gasteiger et al. 2020, "Fast and Uncertainty-Aware Directional Message Passing for Non-Equilibrium Molecules",
    section 3, on Gasteiger et al. 2020, "Directional Message Passing for Molecular Graphs", equations 4 and 9:

    ``m'_ji = r(m_ji + silu(W r(silu(W m_ji) + silu(U s_ji))))`` with
    ``s_ji = sum_k (W a_SBF(d_kj, angle)) * silu(D (silu(W m_kj) * W e_RBF(d_kj)))`` over the neighbours k of j but i,
    and ``t_i = sum_j`` of each block's messages times ``W e_RBF(d_ji)`` through a perceptron. The blocks' ``t_i`` are
    summed, and then the atoms. ``a_SBF`` reads the length of the pair k->j and the angle between k->j and j->i.

    Outputs equal those of PyG's ``DimeNetPlusPlus`` with equal weights, and published weights of that network load
    (``nn.dimenet_checkpoint``). Where the authors' code differs from the paper, this follows the code: the angle is 180
    degrees less the paper's, which the weights of odd orders take up, the cutoff function is divided by
    ``d / cutoff`` in both bases, and the factors of the cutoff are left to the weights. Initial weights of the angular
    basis are a tenth of theirs, those of the outputs' last layers small in the place of 0, and atoms nearer than 0.3
    angstrom count as so far apart. Sums over triplets are taken order by order, so that memory does not hold a
    row a triplet.

    Use it for energies, forces and properties of electrons where positions are good, as from quantum chemistry.
    Known limits: positions of a force field blur what it learns; it costs several times as much as ``schnet``; mirror
    images are one to it; an atom without a neighbour within the cutoff gives the same whatever its element.

    Args:
        spec: what the graphs hold.
        d_hidden: width of a message.
        depth: interaction blocks.
        d_interaction: width of what is summed over triplets.
        d_basis: width between the two matrices of a basis.
        d_output: width of the outputs' perceptrons.
        d_atom: width of an atom's contribution.
        n_spherical: angular functions; 1 is a network without angles.
        n_radial: radial functions.
        cutoff_angstrom: radius within which atoms see each other.
        envelope_exponent: p - 1 of the cutoff function, as in the authors' code.
        n_before_skip, n_after_skip: residual layers of a block on both sides of its skip.
        n_output_layers: hidden layers of the outputs' perceptrons.
        norm: a registered norm, of each block's messages; the paper has none.
        readout: rows to graph, a registered readout.

    Raises:
        UsageError: an unknown norm or readout.
    """

    small = MappingProxyType({"d_hidden": 8, "d_interaction": 8, "d_output": 8, "d_atom": 8, "depth": 2})
    cosines = staticmethod(turns)

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 128,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 4,
        d_interaction: Width = 64,
        d_basis: Width = 8,
        d_output: Width = 256,
        d_atom: Width = 128,
        n_spherical: Annotated[int, Range(1, 16)] = 7,
        n_radial: Annotated[int, Range(1, 64)] = 6,
        cutoff_angstrom: Annotated[float, Range(0, 100, above=True)] = 5.0,
        envelope_exponent: Annotated[int, Range(1, 64)] = 5,
        n_before_skip: Layers = 1,
        n_after_skip: Layers = 2,
        n_output_layers: Layers = 3,
        norm: str = "none",
        readout: str = "sum",
    ) -> None:
        super().__init__()
        sizes = d_hidden, d_interaction, d_basis, n_radial, n_spherical, n_before_skip, n_after_skip
        self.build(
            spec, d_hidden, d_atom, n_radial, n_spherical, cutoff_angstrom, envelope_exponent,
            [_Block(*sizes) for _ in range(depth)],
            [Output(n_radial, d_hidden, d_output, n_output_layers, d_atom) for _ in range(depth + 1)],
            norm, readout,
        )  # fmt: skip


class _Block(nn.Module):
    """One interaction block."""

    def __init__(
        self, d: int, d_small: int, d_basis: int, n_radial: int, n_spherical: int, n_before: int, n_after: int
    ) -> None:
        super().__init__()
        self.radial, self.spherical = (
            nn.ModuleList([orthogonal(n, d_basis, bias=False), orthogonal(d_basis, width, bias=False, gain=gain)])
            for n, width, gain in ((n_radial, d, 1.0), (n_spherical * n_radial, d_small, 0.1))
        )
        self.send, self.keep = orthogonal(d, d), orthogonal(d, d)
        self.down, self.up = orthogonal(d, d_small, bias=False), orthogonal(d_small, d, bias=False)
        self.refine = Refine(d, n_before, n_after)

    def forward(self, m: Float[Tensor, "p d"], bases: Bases) -> Float[Tensor, "p d"]:
        """Messages before, float [p, d], to messages after."""
        small = silu(self.down(times(silu(self.send(m)), bases.radial @ _joined(*self.radial))))
        filters = _joined(*self.spherical).view(*bases.bessel.shape[:2], -1)
        heard = silu(self.up(filtered_sum(small, bases.bessel, filters, bases.angles)))
        return self.refine(heard.add_(silu(self.keep(m))), m)


def _joined(first: nn.Linear, second: nn.Linear) -> Float[Tensor, "d_in d_out"]:
    """Two matrices without a function between them as one, float [d_in, d_out]."""
    return first.weight.t() @ second.weight.t()

"""Predict energies and other extensive numbers: the sum of a contribution of each atom."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import Count, Probability
from molgraph.base.registry import register
from molgraph.base.table import Target
from molgraph.nn.head import Head
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation


@register(
    "head",
    "atomwise",
    summary="a sum of contributions of atoms, for energies and other extensive numbers",
    paper="Behler and Parrinello 2007, Phys. Rev. Lett. 98:146401; Schuett et al. 2018, J. Chem. Phys. 148:241722",
    command="molgraph train dataset:gdb7_3d -m schnet -s params.head=atomwise",
)
class AtomwiseHead(Head):
    """``y = s sum_i c(h_i) + sum_i e0[element of i]`` over the atoms i of a molecule.

    Behler and Parrinello 2007, equation 1; the output of SchNet (Schuett et al. 2018, section II). ``c`` is a
    perceptron of an atom's state. The reference ``e0`` of each element, in the units of the target, is fitted by least
    squares to the compositions of the training part, implicit hydrogens counted, and ``s`` is the deviation of what it
    leaves; no mean is taken off, which would not be extensive. Two molecules far apart have the sum of both where an
    atom's state depends on atoms nearby: by ``schnet``, ``painn``, ``dtnn`` and networks along bonds, not by
    ``enn_s2s`` and ``graphgps``, which hear all pairs, nor under a norm over the atoms of a graph (``norm=graph``).
    ``params.frames`` is refused: its coordinates are in the axes of the whole molecule.

    Use it for energies, enthalpies, heat capacities, volumes: numbers that grow with the molecule. Numbers that do not,
    such as gaps, orbital energies or solubilities, are for the head ``perceptron`` on a readout of the graph: ``mean``,
    or ``set2set`` or attention where a few atoms decide. It reads no descriptors of molecules and no readout, and
    predicts no row with an element that the training part lacks.

    Args:
        d_in: width of the states of atoms.
        targets: numbers of molecules.
        d_hidden: width of hidden layers.
        n_layers: linear layers.
        dropout: probability of dropping a hidden value while training.
        activation: between layers; a smooth one, so that forces are.
    """

    kinds = ("regression",)
    reads_atoms = True
    references = True

    def __init__(
        self,
        d_in: int,
        targets: Sequence[Target],
        d_hidden: Count = 300,
        n_layers: Count = 2,
        dropout: Probability = 0.0,
        activation: str = "silu",
    ) -> None:
        super().__init__(d_in, targets, d_hidden, n_layers, dropout, activation)

    def forward(
        self,
        h: Float[Tensor, "atoms d"],
        extra: Float[Tensor, "atoms e"] | None = None,
        members: Relation | None = None,
    ) -> Float[Tensor, "n width"]:
        """Sums over the atoms of each graph by ``members``, from atoms to graphs; without it contributions of atoms."""
        contributions = super().forward(h, extra)
        return contributions if members is None else propagate(contributions, members)

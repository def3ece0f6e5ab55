"""DAG: a recursive network along the shortest ways from all atoms to each atom."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.matrix_limit import MatrixGB, MatrixLimit
from molgraph.nn.norms import make_norms
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.sweep import sweep


@register(
    "encoder",
    "dag",
    summary="directed acyclic graphs towards each atom: a recursive network along each",
    paper="Lusci, Pollastri & Baldi 2013, J. Chem. Inf. Model. 53:1563",
    line=(
        "atoms as seen from a root",
        "shortest ways to the root",
        "sum",
        "perceptron",
        "sum of the roots",
        "supervised",
    ),
    system="dag",
    command="molgraph train dataset:esol -m dag",
)
class DAG(AtomEncoder):
    """One acyclic graph for each atom of a molecule, all bonds directed towards that atom.

    Lusci et al. 2013, "Deep architectures and deep learning in chemoinformatics": for an atom v and a root k
    ``G_vk = M_G(x_v, G_pa1[v]k, ..., G_pan[v]k)`` from the farthest atoms to the root, with one network ``M_G`` for
    all, and the molecule's state is ``sum_k G_kk``, which the head (``M_O``) reads. The paper gives the parents'
    states to ``M_G`` side by side, in the order of the atoms' numbers; here their sum and the sum of their bonds'
    features stand instead, so that the order of atoms changes nothing.

    Use it to compare with MoleculeNet, or where the whole way between two atoms should count. Atoms with the same ways
    behind them have the same state from whatever root, and are computed once. Known limits: a molecule has as many
    graphs as atoms, so the search for them takes time and memory of atoms x atoms within ``reach``.

    Args:
        spec: what the graphs hold.
        d_state: width of ``G`` (30 in MoleculeNet).
        d_hidden: width of the hidden layer of ``M_G`` (100 in MoleculeNet).
        reach: largest distance of an atom from the root, in bonds; the paper has no such limit.
        max_matrix_gb: the largest matrix with a row for each pair of nodes of one graph, in GB; a batch holds several.
        norm: a registered norm, of the roots' states; the paper has none.
        readout: roots to molecule, a registered readout.

    Raises:
        UsageError: an unknown norm or readout, or a graph with a larger matrix.
    """

    small = MappingProxyType({"d_state": 8, "d_hidden": 8})
    needs = ("atom", "bond", "bond.reverse")  # the search for each root goes back along edges
    limit: MatrixLimit

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_state: Width = 30,
        d_hidden: Width = 100,
        reach: Annotated[int, Range(1, 100)] = 20,
        max_matrix_gb: MatrixGB = 0.25,
        norm: str = "none",
        readout: str = "sum",
    ) -> None:
        super().__init__()
        self.reach, self.d_state = reach, d_state
        d_bond = spec.width("bond")
        d_in = spec.width("atom") + d_state + d_bond
        self.limit = MatrixLimit.near("dag", max(d_in, d_hidden), max_matrix_gb, reach, "reach")
        self.network = Perceptron(d_in, d_hidden, d_state, activation="tanh")
        self.d_message = d_state + d_bond
        self.norms = make_norms(norm, [d_state])
        self.read_by(readout, d_state)

    def prepare(self, batch: GraphBatch) -> None:
        """Find the acyclic graphs ahead."""
        _ = self._dags(batch), relations.members(batch)

    def states(self, batch: GraphBatch) -> Float[Tensor, "n_atoms d"]:
        """The states of the roots, one an atom."""
        dags = self._dags(batch)
        states = sweep(
            batch.features("atom").index_select(0, dags.atom),
            dags.waves,
            d_state=self.d_state,
            d_message=self.d_message,
            edge_rows=batch.features("bond").index_select(0, dags.bond),
            message=_parent_and_bond,
            update=self._network,
        )
        return self.norms[0](states.index_select(0, dags.at_root), relations.members(batch))

    def _dags(self, batch: GraphBatch) -> relations.Dags:
        self.limit.check(batch)
        return relations.dags(batch, self.reach)

    def _network(self, atoms: Tensor, heard: Tensor) -> Tensor:
        """``M_G``."""
        return self.network(torch.cat([atoms, heard.to(atoms.dtype)], dim=1)).tanh()


def _parent_and_bond(parent: Tensor, atom: Tensor | None, bond: Tensor) -> Tensor:
    return torch.cat([parent, bond.to(parent.dtype)], dim=1)

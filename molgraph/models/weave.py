"""Weave: a graph network that updates features of atoms and of atom pairs, bonded or not."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.parts import make_part
from molgraph.base.ranges import INNER_LIMIT, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.matrix_limit import MatrixGB, MatrixLimit
from molgraph.nn.pairs import Pairs, pair_features, pairs
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation


@register(
    "encoder",
    "weave",
    systems=(SystemCard("weave", left_out="pairs of an atom with itself", off="-s params.max_distance=1",
        beside=("bonded pairs alone",), modules=("molgraph.nn.pairs", "molgraph.nn.histogram_readouts")),),
    summary="atoms and pairs, updated from each other",
    paper="Kearnes et al. 2016, J. Comput. Aided Mol. Des. 30:595",
    line=("atoms, atom pairs", "pair ends", "linear", "linear", "gaussian histogram", "supervised"),
)  # fmt: skip
class Weave(AtomEncoder):
    """Molecular graph convolutions on atoms A and pairs of atoms P.

    Kearnes et al. 2016, "Molecular graph convolutions: moving beyond fingerprints", in DeepChem's form:
    ``A'_a = f([f(A_a), sum_b f(P_ab)])`` and ``P'_ab = f([f(A_a, A_b) + f(A_b, A_a), f(P_ab)])``, ``f`` a linear layer,
    a norm and ReLU with weights of its own at each place, ``depth`` times; then ``norm(tanh(W A'))`` and the readout.
    P is first the bond's features, the graph distance one-hot and whether one ring holds both atoms. ``P_ab`` and
    ``P_ba`` are one row, so nothing depends on the order of atoms; memory grows with the pairs alone.

    Use it where atoms two bonds apart should exchange messages directly, or for its histogram. Known limits: pairs of
    an atom with itself are left out; 1,408 numbers a molecule are many for a few hundred molecules; in the paper it did
    not outperform all fingerprint methods (Tox21, random splits: ROC AUC 0.851, DeepChem's 0.842, a forest 0.857); it
    computes in single precision; only molecules have the ring feature.

    Args:
        spec: what the graphs hold.
        d_hidden: width of the states of atoms and pairs, and of what they are made from.
        depth: modules.
        max_distance: bonds between the atoms of a pair, at most.
        d_dense: width of the atoms' last layer.
        max_matrix_gb: the largest matrix with a row for each pair of nodes of one graph, in GB; a batch holds several.
        norm: a registered norm, in every layer.
        readout: rows to graph, a registered readout.

    Raises:
        UsageError: an unknown norm or readout, or a graph with a larger matrix.
    """

    featurisers = MappingProxyType({"molecule": "v2_rings"})
    needs = ("atom", "bond", "bond.reverse")
    small = MappingProxyType({"d_hidden": 8, "d_dense": 8})
    limit: MatrixLimit

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 50,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 2,
        max_distance: Annotated[int, Range(1, 16)] = 2,
        d_dense: Width = 128,
        max_matrix_gb: MatrixGB = 0.25,
        norm: str = "batch",
        readout: str = "gaussian_histogram",
    ) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.limit = MatrixLimit.near("weave", d_hidden, max_matrix_gb, max_distance, "max_distance")
        d_atom, d_pair = spec.width("atom"), spec.width("bond") + max_distance + 1
        widths = [(d_hidden, d_hidden) if t else (d_atom, d_pair) for t in range(depth)]
        last = depth - 1
        self.weaves = nn.ModuleList(_Module(*w, d_hidden, norm, update_pairs=t < last) for t, w in enumerate(widths))
        self.dense, self.norm = nn.Linear(d_hidden, d_dense), make_part("norm", norm, d_dense)
        self.read_by(readout, d_dense)

    def prepare(self, batch: GraphBatch) -> None:
        """Find the pairs ahead."""
        self.limit.check(batch)
        _ = pairs(batch, self.max_distance).atoms.transpose, relations.members(batch)

    def states(self, batch: GraphBatch) -> Float[Tensor, "n_atoms d"]:
        """The atoms' states after the dense layer."""
        self.limit.check(batch)
        atom_pairs, members = pairs(batch, self.max_distance), relations.members(batch)
        a, p = batch.features("atom"), pair_features(batch, self.max_distance)
        with torch.autocast(a.device.type, enabled=False):  # bfloat16's 8 bits would move atoms from bin to bin
            for weave in self.weaves:
                a, p = weave(a, p, atom_pairs, members)
            return self.norm(self.dense(a).tanh(), members)


class _Module(nn.Module):
    """One Weave module: atoms and pairs before, to atoms and pairs after."""

    def __init__(self, d_atom: int, d_pair: int, d: int, norm: str, *, update_pairs: bool) -> None:
        super().__init__()
        self.atom_to_atom, self.pair_to_atom = _Layer(d_atom, d, norm), _Layer(d_pair, d, norm)
        self.atom = _Layer(2 * d, d, norm)
        self.update_pairs = update_pairs
        if update_pairs:
            self.atoms_to_pair, self.pair_to_pair = _Layer(2 * d_atom, d, norm), _Layer(d_pair, d, norm)
            self.pair = _Layer(2 * d, d, norm)

    def forward(
        self, a: Float[Tensor, "n d_atom"], p: Float[Tensor, "p d_pair"], found: Pairs, members: Relation
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, "p _"]]:
        """float [n, d_atom] and [p, d_pair] to [n, d] and [p, d]; pairs as they were where nothing reads them."""
        around = propagate(self.pair_to_atom(p, found.graphs), found.atoms)  # sum_b f(P_ab)
        atoms = self.atom(torch.cat([self.atom_to_atom(a, members), around], dim=1), members)
        if not self.update_pairs:
            return atoms, p
        ends = torch.cat([self._ends(a, found), self.pair_to_pair(p, found.graphs)], dim=1)
        return atoms, self.pair(ends, found.graphs)

    def _ends(self, a: Float[Tensor, "n d_atom"], found: Pairs) -> Float[Tensor, "p d"]:
        """``f(A_a, A_b) + f(A_b, A_a)``; atoms are multiplied before they are gathered, since pairs are more."""
        layer, offsets = self.atoms_to_pair, 2 * found.graphs.offsets
        one, other = (F.linear(a, weight) for weight in layer.linear.weight.chunk(2, dim=1))
        ends = found.ends.flatten()  # index_select: the gradient of x[index] is not the same for each run
        rows = one.index_select(0, ends) + other.index_select(0, found.ends.flip(1).flatten()) + layer.linear.bias
        n, index = len(rows), torch.arange(len(rows), device=offsets.device)  # both orders of each pair
        normed = layer.norm(rows, Relation(index, offsets, n, found.graphs.n_target))
        return normed.relu().unflatten(0, (-1, 2)).sum(1)


class _Layer(nn.Module):
    """``f(x) = ReLU(norm(W x + b))``."""

    def __init__(self, d_in: int, d_out: int, norm: str) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(d_in, d_out), make_part("norm", norm, d_out)

    def forward(self, x: Float[Tensor, "n d_in"], members: Relation) -> Float[Tensor, "n d_out"]:
        """float [n, d_in] to [n, d_out]."""
        return self.norm(self.linear(x), members).relu()

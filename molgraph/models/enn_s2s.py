"""MPNN over all pairs of atoms in space: an edge network of distances, a GRU and Set2Set (enn-s2s)."""

from __future__ import annotations

from types import MappingProxyType

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Layers, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.matrix_limit import MatrixGB, MatrixLimit
from molgraph.nn.messages import EdgeNetwork
from molgraph.nn.norms import make_norms
from molgraph.nn.size_groups import SizeGroups, size_groups
from molgraph.nn.updates import GRU


@register(
    "encoder",
    "enn_s2s",
    tags=("3d",),
    systems=(SystemCard("mpnn", left_out="types of bonds in its edges", off="mpnn", beside=("mpnn on bonds", "mean")),),
    summary="messages over distances of all atoms",
    paper="Gilmer et al. 2017, ICML",
    line=("atoms", "all pairs", "edge network of the distance", "GRU", "set2set", "supervised"),
)
class EnnS2S(AtomEncoder):
    """The variant enn-s2s of message passing neural networks, with distances as edges of the complete graph.

    Gilmer et al. 2017, "Neural Message Passing for Quantum Chemistry", sections 5 and 6: ``h0_v = W x_v``, then
    ``rounds`` times ``m_v = sum_{w != v} A(d_vw) h_w`` and ``h_v = GRU(h_v, m_v)`` with the same weights, then
    ``Set2Set({h_v})``; ``A`` is a perceptron of the distance in angstrom that gives a d x d matrix. Hydrogens are
    atoms, as the geometry has them. The paper's edges hold the kind of bond too, which a geometry does not say.

    No d x d matrix of a pair is formed: ``A(d) = sum_k f_k(d) W_k`` is linear in the hidden layer ``f``, so that
    ``m_v = sum_k W_k sum_w f_k(d_vw) h_w``.

    Use it where positions are known and a molecule is small. Known limits: each atom hears each other one, so its cost
    grows with the square of the atoms, and a distance far from those it learned from has any effect; ``schnet``, whose
    filters end at a cutoff, suits large molecules. With 2,400 molecules of QM9 it was no better than ``mpnn`` along
    bonds (dipole moment: 0.607 beside 0.602 debye); the paper learns from 110,000.

    Args:
        spec: what the graphs hold.
        d_hidden: width of an atom's state.
        rounds: rounds of messages (the paper's T, 3 to 8).
        d_edge: width of the hidden layer of the edge network.
        max_matrix_gb: the largest matrix of all pairs of a molecule's atoms that it forms, in GB.
        norm: a registered norm, after each round; the paper has none.
        readout: rows to graph, a registered readout.

    Raises:
        ValueError: fewer than 0 rounds.
        UsageError: an unknown norm or readout, or a molecule with a larger matrix.
    """

    reads = ("geometry",)
    needs = ("atom", "atom.position")
    small = MappingProxyType({"d_hidden": 8, "d_edge": 8})
    limit: MatrixLimit

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        rounds: Layers = 3,
        d_edge: Width = 64,
        max_matrix_gb: MatrixGB = 0.3,
        norm: str = "none",
        readout: str = "set2set",
    ) -> None:
        super().__init__()
        self.limit = MatrixLimit("enn_s2s", d_edge + 1, max_matrix_gb, "hears all pairs of atoms", "lower d_edge")
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        self.message = EdgeNetwork(1, d_hidden, d_edge)
        for parameter in self.message.network.layers[
            1
        ].parameters():  # A(d) h of the size of h, as d_hidden numbers are summed
            parameter.data.div_(d_hidden**0.5)
        self.update = GRU(d_hidden, d_hidden)
        self.norms = make_norms(norm, [d_hidden] * rounds)
        self.d_layers = (d_hidden,) * rounds
        self.read_by(readout, d_hidden)

    def prepare(self, batch: GraphBatch) -> None:
        """Put atoms side by side ahead."""
        _ = size_groups(batch), relations.members(batch)

    def states(self, batch: GraphBatch) -> list[Float[Tensor, "n_atoms d"]]:
        """The atoms' states after each round, float [n_atoms, d]."""
        self.limit.check(batch)
        groups, members = size_groups(batch), relations.members(batch)
        positions = batch["atom"].arrays["position"].to(self.embed.weight.dtype)
        padded = zip(groups.pad(positions), groups.rows, strict=True)
        hidden = [self._hidden(x, index < batch.n_atoms) for x, index in padded]
        layers = [self.embed(batch.features("atom"))]
        for norm in self.norms:
            h = layers[-1]
            layers.append(norm(self.update(h, self._messages(h, hidden, groups)), members))
        return layers[1:] or layers

    def _hidden(self, x: Float[Tensor, "g n 3"], there: Tensor) -> Float[Tensor, "g _ n"]:
        """``f_k(d_vw)`` and a 1 for the bias: a row an atom and k, 0 where there is no pair, [g, n (k + 1), n]."""
        network, n = self.message.network, x.shape[1]
        distance = (x.unsqueeze(2) - x.unsqueeze(1)).square().sum(3).clamp(min=1e-12).sqrt()
        f = network.activation(network.layers[0](distance.unsqueeze(3)))
        f = torch.cat([f, torch.ones_like(f[..., :1])], dim=3)
        pair = there.unsqueeze(2) & there.unsqueeze(1) & ~torch.eye(n, dtype=torch.bool, device=x.device)
        return (f * pair.unsqueeze(3)).permute(0, 1, 3, 2).flatten(1, 2)

    def _messages(self, h: Tensor, hidden: list[Tensor], groups: SizeGroups) -> Float[Tensor, "n_atoms d"]:
        """``sum_w A(d_vw) h_w`` of each atom."""
        matrices, bias = self.message.network.layers[1].parameters()
        weight = torch.cat([matrices.t(), bias.unsqueeze(0)]).view(-1, h.shape[1])  # [(k + 1) d, d]
        parts = [
            (f @ x).view(*x.shape[:2], -1) @ weight  # sum_w f_k h_w, then the matrices W_k
            for f, x in zip(hidden, groups.pad(h), strict=True)
        ]
        return groups.unpad(parts, h)

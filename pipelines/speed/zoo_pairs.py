"""Build the same networks from molgraph's layers and from PyG's, with equal weights, to time them side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch_geometric.nn import GATConv, GINConv, GINEConv, GPSConv, NNConv, global_add_pool, global_mean_pool
from torch_geometric.nn.models import AttentiveFP as PygAttentiveFP
from torch_geometric.nn.models import NeuralFingerprint as PygNeuralFingerprint

import molgraph.models  # noqa: F401 - registers the encoders
from molgraph.base.registry import get
from molgraph.data.batch import GraphBatch
from molgraph.data.feature_layout import MOLECULE_SPEC as SPEC
from molgraph.nn.attention import AdditiveAttention
from molgraph.nn.deduplicate import atom_rounds
from molgraph.nn.propagate import propagate
from molgraph.nn.walks import walk_returns

D_ATOM, D_BOND = SPEC.width("atom"), SPEC.width("bond")


class Given(NamedTuple):
    """A batch as PyG's layers read it."""

    x: Tensor
    edges: Tensor
    edge_attr: Tensor
    graph_of: Tensor
    n_graphs: int
    walks: Tensor


class Pair(NamedTuple):
    """The same network of both libraries: batch to float [graphs, d], and the ratio asked for."""

    name: str
    ours: nn.Module
    theirs: nn.Module
    floor: float


class Graphs(nn.Module):
    """An encoder of molgraph, batch to graph states."""

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder

    def forward(self, batch: GraphBatch) -> Tensor:
        """float [graphs, d]."""
        graphs: Tensor = self.encoder(batch).graphs
        return graphs

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations, and find the rows that look alike."""
        self.encoder.prepare(batch)


class Peer(nn.Module):
    """Layers of PyG as a function of a batch."""

    def __init__(self, call: Callable[[Any, Given], Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.layers, self.call = nn.ModuleDict(layers), call

    def forward(self, given: Given) -> Tensor:
        """float [graphs, d]."""
        return self.call(self.layers, given)


def nnconv() -> Pair:
    """The edge network and the GRU of MPNN, three rounds, and a sum over atoms."""
    own = get("encoder", "mpnn")(SPEC, readout="sum")
    first, last = own.message.network.layers
    d = own.embed.out_features
    conv = NNConv(d, d, nn.Sequential(first, nn.ReLU(), last), aggr="add", root_weight=False, bias=False)

    def call(layers: Any, given: Given) -> Tensor:
        h = layers["embed"](given.x)
        for _ in range(own.n_rounds):
            h = layers["cell"](layers["conv"](h, given.edges, given.edge_attr), h)
        return global_add_pool(h, given.graph_of, given.n_graphs)

    return Pair("NNConv + GRU", Graphs(own), Peer(call, embed=own.embed, conv=conv, cell=own.update.cell), 4)


def gin(*, edges: bool = False) -> Pair:
    """Five layers with batch norm, all of them read out by sums; with edges the bonds' features are read."""
    own = get("encoder", "gin")(SPEC, edges=edges)
    convs = nn.ModuleList()
    for t, (eps, perceptron) in enumerate(zip(own.eps, own.perceptrons, strict=True)):
        first, last = perceptron.layers
        network = nn.Sequential(first, nn.ReLU(), last)
        conv = GINEConv(network, train_eps=True, edge_dim=D_BOND) if edges else GINConv(network, train_eps=True)
        conv.eps.data.fill_(eps.item())
        if edges:
            conv.lin.load_state_dict(own.embed_edges[t].state_dict())
        convs.append(conv)
    norms = nn.ModuleList(nn.BatchNorm1d(own.embed.out_features) for _ in own.norms)

    def call(layers: Any, given: Given) -> Tensor:
        h = layers["embed"](given.x)
        states = [h]
        for conv, norm in zip(layers["convs"], layers["norms"], strict=True):
            h = norm(conv(h, given.edges, *[given.edge_attr] * edges)).relu()
            states.append(h)
        return global_add_pool(torch.cat(states, dim=1), given.graph_of, given.n_graphs)

    name = "GINEConv" if edges else "GINConv"
    return Pair(name, Graphs(own), Peer(call, embed=own.embed, convs=convs, norms=norms), 2)


def gine() -> Pair:
    """The same with bonds, which is ``gin`` at its defaults."""
    return gin(edges=True)


class Attention(nn.Module):
    """Three layers of additive attention over the neighbours, over rows that look different; a sum over atoms."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.embed = nn.Linear(D_ATOM, d)
        self.layers = nn.ModuleList(AdditiveAttention(d, d, slope=0.2) for _ in range(3))

    def forward(self, batch: GraphBatch) -> Tensor:
        """float [graphs, d]."""
        given = atom_rounds(batch, len(self.layers), distinct=True)
        h = self.embed(given.atoms.rows())
        for step, layer in zip(given.rounds, self.layers, strict=True):
            h = layer(step.senders(h), step.previous(h), step.relation).relu()
        return propagate(h, given.readout)

    def prepare(self, batch: GraphBatch) -> None:
        """Find the rows that look alike."""
        atom_rounds(batch, len(self.layers), distinct=True)


def gat() -> Pair:
    """Three layers of one head."""
    own = Attention(64)
    convs = nn.ModuleList(GATConv(64, 64, add_self_loops=False) for _ in own.layers)
    for conv, layer in zip(convs, own.layers, strict=True):
        conv.load_state_dict({
            "att_src": layer.of_source.weight[None], "att_dst": layer.of_target.weight[None],
            "bias": layer.bias, "lin.weight": layer.w.weight,
        })  # fmt: skip

    def call(layers: Any, given: Given) -> Tensor:
        h = layers["embed"](given.x)
        for conv in layers["convs"]:
            h = conv(h, given.edges).relu()
        return global_add_pool(h, given.graph_of, given.n_graphs)

    return Pair("GATConv", own, Peer(call, embed=own.embed, convs=convs), 4)


def attentivefp() -> Pair:
    """The whole encoder."""
    own = get("encoder", "attentivefp")(SPEC)
    d = own.embed.out_features
    theirs = PygAttentiveFP(D_ATOM, d, d, D_BOND, len(own.cells), own.readout.steps)
    theirs.lin2 = nn.Identity()
    with torch.no_grad():
        gate = theirs.gate_conv
        pairs = [
            (theirs.lin1.weight, own.embed.weight), (theirs.lin1.bias, own.embed.bias),
            (gate.lin1.weight, own.neighbour.weight), (gate.lin2.weight, own.value.weight),
            (gate.att_l, own.of_source.weight), (gate.att_r, own.of_target.weight), (gate.bias, own.bias),
        ]  # fmt: skip
        attentions = [*zip(theirs.atom_convs, own.attention, strict=True), (theirs.mol_conv, own.readout.attention)]
        for conv, mine in attentions:
            pairs += [(conv.lin.weight if conv.lin is not None else conv.lin_src.weight, mine.w.weight),
                      (conv.att_src[0], mine.of_source.weight), (conv.att_dst[0], mine.of_target.weight),
                      (conv.bias, mine.bias)]  # fmt: skip
        for weight, mine in pairs:
            weight.copy_(mine)
    cells = [theirs.gru, *theirs.atom_grus, theirs.mol_gru]
    for cell, mine in zip(cells, [*own.cells, own.readout.cell], strict=True):
        cell.load_state_dict(mine.state_dict())

    def call(layers: Any, given: Given) -> Tensor:
        out: Tensor = layers["all"](given.x, given.edges, given.edge_attr, given.graph_of)
        return out

    return Pair("AttentiveFP", Graphs(own), Peer(call, all=theirs), 4)


def mfconv() -> Pair:
    """Neural fingerprints of four layers; the bonds, which PyG's layer does not read, have weights of 0."""
    own = get("encoder", "neural_fingerprint")(SPEC, norm="none")
    own.activation = nn.Sigmoid()
    theirs = PygNeuralFingerprint(D_ATOM, own.hash[0].weight.shape[1], own.d_out, len(own.hash))
    with torch.no_grad():
        for hash_, index, conv, lin in zip(own.hash, own.index, theirs.convs, theirs.lins, strict=True):
            d = conv.in_channels
            hash_.weight[:, :, d:] = 0
            for k, (around, itself) in enumerate(zip(conv.lins_l, conv.lins_r, strict=True)):
                around.weight.copy_(hash_.weight[k, :, :d])
                around.bias.copy_(hash_.bias[k])
                itself.weight.copy_(hash_.weight[k, :, :d])
            lin.weight.copy_(index.weight)

    def call(layers: Any, given: Given) -> Tensor:
        out: Tensor = layers["all"](given.x, given.edges, given.graph_of, given.n_graphs)
        return out

    return Pair("MFConv", Graphs(own), Peer(call, all=theirs), 4)


def graphgps() -> Pair:
    """Four layers; PyG's side is given the random walks, which molgraph finds for every batch."""
    own = get("encoder", "graphgps")(SPEC)
    d, convs = own.embed.out_features, nn.ModuleList()
    for layer in own.layers:
        first, last = layer.local.layers
        conv = GPSConv(d, GINEConv(nn.Sequential(first, nn.ReLU(), last), edge_dim=D_BOND), heads=layer.heads)
        conv.conv.lin = layer.of_bond
        conv.mlp[0], conv.mlp[3] = layer.mlp.layers
        conv.attn.out_proj.load_state_dict(layer.attended.state_dict())
        with torch.no_grad():
            conv.attn.in_proj_weight.copy_(layer.query_key_value.weight)
            conv.attn.in_proj_bias.copy_(layer.query_key_value.bias)
        convs.append(conv)

    def call(layers: Any, given: Given) -> Tensor:
        h = layers["embed"](torch.cat([given.x, given.walks], dim=1))
        for conv in layers["convs"]:
            h = conv(h, given.edges, given.graph_of, edge_attr=given.edge_attr)
        return global_mean_pool(h, given.graph_of, given.n_graphs)

    return Pair("GPSConv", Graphs(own), Peer(call, embed=own.embed, convs=convs), 2)


def given(batch: GraphBatch) -> Given:
    """A batch as PyG's layers read it."""
    edges, graph_of = torch.stack([batch.source, batch.target]), batch.graph_of("atom")
    return Given(
        batch.features("atom"), edges, batch.features("bond"), graph_of, batch.n_graphs, walk_returns(batch, 16)
    )

"""Use any convolution of PyTorch Geometric as an encoder."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn, stack

from molgraph.base.parameters import refuse_unread
from molgraph.base.ranges import Layers, Probability, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.norms import make_norms
from molgraph.nn.pyg_layers import build_conv, edge_argument, find_conv, takes


@register(
    "encoder",
    "pyg_conv",
    summary="any convolution of PyTorch Geometric: a few times, with skips",
    paper="Fey and Lenssen 2019, ICLR workshop; GINEConv: Hu et al. 2020, ICLR",
    line=("atoms", "bonds", "its own", "skip + ReLU", "mean", "supervised"),
)
class PyGConv(AtomEncoder):
    """A convolution of PyG (Fey and Lenssen 2019), ``depth`` times with skips.

    ``h_0 = W x``, ``h_t = h_(t-1) + ReLU(norm(conv(h_(t-1))))``, the last one without ReLU. Bonds' features go where
    the convolution takes them (``edge_dim``, or a network over them). A convolution that needs more than atoms, bonds
    and their features (positions, types, a second state) is refused with PyG's words.

    Use it to try a convolution that has no file here. Known limits: rows that look alike are computed each for itself,
    so a model of molgraph's own is faster where there is one.

    Args:
        spec: what the graphs hold.
        conv: the class's name in ``torch_geometric.nn``, such as GCNConv, GINConv, GATv2Conv or TransformerConv.
        d_hidden: width of an atom's state.
        depth: convolutions, each with weights of its own.
        heads: attention heads, where the convolution has them; together they are ``d_hidden`` wide.
        dropout: probability of dropping one value of an atom's state while training.
        norm: a registered norm, after each convolution.
        readout: rows to graph, a registered readout.
        options: further settings, handed to the convolution.

    Raises:
        UsageError: an unknown norm or readout; PyG has no such convolution, or it cannot be built in this way.
        ValueError: fewer than 0 convolutions, heads that do not divide the width, or what is not read.
    """

    small = MappingProxyType({"d_hidden": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        conv: str = "GINEConv",
        d_hidden: Width = 128,
        depth: Layers = 3,
        heads: Width = 4,
        dropout: Probability = 0.0,
        norm: str = "none",
        readout: str = "mean",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__()
        if depth < 0:
            raise ValueError(f"depth must be 0 or more, got {depth}")
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        if not depth:
            refuse_unread(PyGConv, "depth=0", {"conv": conv, "heads": heads, "options": options})
        kind = find_conv(conv)
        if "heads" not in takes(kind):
            refuse_unread(PyGConv, conv, {"heads": heads})
        args = d_hidden, spec.width("bond"), heads, dict(options or {})
        self.convs = nn.ModuleList(build_conv(kind, *args) for _ in range(depth))
        self.edge = edge_argument(kind)
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.drop = nn.Dropout(dropout)
        self.read_by(readout, d_hidden)

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relation from atoms to graphs ahead."""
        relations.members(batch)

    def states(self, batch: GraphBatch) -> Float[Tensor, "n_atoms d"]:
        """The atoms' states after the last convolution."""
        edges = batch.once("edge_index", lambda: stack([batch.source, batch.target]))
        kwargs = {self.edge: batch.features("bond")} if self.edge else {}
        h, members = self.embed(batch.features("atom")), relations.members(batch)
        if not len(h):  # some convolutions take no empty graph
            return h
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            m = norm(conv(h, edges, **kwargs), members)
            h = h + self.drop(m.relu() if i + 1 < len(self.convs) else m)
        return h

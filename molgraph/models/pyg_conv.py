"""Use any convolution of PyTorch Geometric as an encoder."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn, stack

from molgraph.base.errors import UsageError, nearest
from molgraph.base.parameters import refuse_unread
from molgraph.base.ranges import Layers, Probability, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.norms import make_norms

TESTED = (  # by the tests; others of the same manner work too
    "CGConv", "GATConv", "GATv2Conv", "GCNConv", "GENConv", "GINConv", "GINEConv", "GraphConv", "NNConv", "PDNConv",
    "ResGatedGraphConv", "SAGEConv", "TAGConv", "TransformerConv",
)  # fmt: skip


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
    and their features (positions, types, a second state) is refused with its own words.

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
        ValueError: fewer than 0 convolutions, heads that do not divide the width, or of a convolution without any.
    """

    repeats = ("options",)
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
        given = d_hidden, spec.width("bond"), heads, dict(options or {})
        self.convs = nn.ModuleList(_build(conv, *given) for _ in range(depth))
        self.edge = _edge_argument(type(self.convs[0])) if depth else ""
        self.norms = make_norms(norm, [d_hidden] * depth)
        self.drop = nn.Dropout(dropout)
        self.read_by(readout, d_hidden)

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relation from atoms to graphs ahead."""
        relations.members(batch)

    def states(self, batch: GraphBatch) -> Float[Tensor, "n_atoms d"]:
        """The atoms' states after the last convolution."""
        edges = batch.once("edge_index", lambda: stack([batch.source, batch.target]))
        given = {self.edge: batch.features("bond")} if self.edge else {}
        h, members = self.embed(batch.features("atom")), relations.members(batch)
        for i, (conv, norm) in enumerate(zip(self.convs, self.norms, strict=True)):
            m = norm(self._convolve(conv, h, edges, given), members)
            h = h + self.drop(m.relu() if i + 1 < len(self.convs) else m)
        return h

    def _convolve(self, conv: nn.Module, h: Tensor, edges: Tensor, given: dict[str, Tensor]) -> Float[Tensor, "n d"]:
        try:
            return conv(h, edges, **given)
        except TypeError as error:
            words, hint = (
                f"{type(conv).__name__} asks for more than atoms and bonds",
                f"these work: {', '.join(TESTED)}",
            )
            raise UsageError(f"{words} ({error})", hint=hint) from error


def _build(name: str, d_hidden: int, d_bond: int, heads: int, options: dict[str, Any]) -> nn.Module:
    """One convolution from d_hidden to d_hidden, its arguments filled in by their names."""
    import torch_geometric.nn as pyg

    kind = getattr(pyg, name, None) if name.endswith("Conv") else None
    if not inspect.isclass(kind) or not issubclass(kind, nn.Module):
        known = [each for each in dir(pyg) if each.endswith("Conv")]
        raise UsageError(f"PyG has no convolution {name!r}", hint=nearest(name, known))
    asked = inspect.signature(kind.__init__).parameters
    if "heads" not in asked:
        refuse_unread(PyGConv, name, {"heads": heads})
    elif d_hidden % heads:
        raise ValueError(f"heads is {heads}, d_hidden {d_hidden}: heads must divide d_hidden")
    read, network = (d_bond, d_hidden**2) if name == "NNConv" else (d_hidden, d_hidden)
    have: dict[str, Any] = {
        **dict.fromkeys(("in_channels", "channels", "hidden_channels"), d_hidden),
        "out_channels": d_hidden // heads if "heads" in asked and options.get("concat", True) else d_hidden,
        "heads": heads,
        "nn": nn.Sequential(nn.Linear(read, d_hidden), nn.ReLU(), nn.Linear(d_hidden, network)),
    }
    if _edge_argument(kind):
        have |= {"edge_dim": d_bond, "dim": d_bond}
    arguments = {key: value for key, value in have.items() if key in asked} | options
    try:
        return kind(**arguments)
    except (TypeError, ValueError, AssertionError) as error:
        words = f"{name} cannot be built with {sorted(options) or 'its defaults'} ({error})"
        hint = f"these work: {', '.join(TESTED)}; options={{...}} hands a convolution what it asks for"
        raise UsageError(words, hint=hint) from error


def _edge_argument(kind: Any) -> str:
    """What a convolution calls features of the bonds; empty where it takes none (a weight a bond is no feature)."""
    asked = inspect.signature(kind.forward).parameters
    made = inspect.signature(kind.__init__).parameters
    return "edge_attr" if "edge_attr" in asked and (kind.__name__ == "NNConv" or {"edge_dim", "dim"} & {*made}) else ""

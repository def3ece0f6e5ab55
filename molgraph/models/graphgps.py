"""GraphGPS: message passing along bonds and attention over all atoms, with random-walk positional encodings."""

from __future__ import annotations

from functools import partial
from types import MappingProxyType
from typing import Annotated, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.atom_encoder import AtomEncoder, Pooled, SharedStates
from molgraph.nn.gps_layer import GPSLayer
from molgraph.nn.hop_span import HopSpan, hop_distances
from molgraph.nn.matrix_limit import MatrixGB, MatrixLimit
from molgraph.nn.removable import Axis, Heads, Units, head_counts
from molgraph.nn.size_groups import size_groups
from molgraph.nn.walks import walk_returns


@register(
    "encoder",
    "graphgps",
    systems=(
        SystemCard("graphgps", modules=("molgraph.nn.gps_layer",)),
        SystemCard(
            "adaptive-attention-span",
            left_out="sequences of tokens; spans that depend on the atom",
            off="-s params.span=all",
            beside=("all atoms",),
            command="molgraph train dataset:chembl2321810 -m graphgps -s params.span=adaptive",
            modules=("molgraph.nn.hop_span", "molgraph.nn.gps_layer", "molgraph.nn.attention"),
        ),
    ),
    summary="local messages and attention over all atoms",
    paper="Rampasek et al. 2022, NeurIPS; GINE: Hu et al. 2020, ICLR; walks: Dwivedi et al. 2022, ICLR",
    line=("atoms", "bonds; all atoms of the graph", "GINE; attention", "skip + perceptron", "mean", "supervised"),
)
class GraphGPS(AtomEncoder):
    """General, powerful, scalable graph transformer.

    Rampasek et al. 2022, "Recipe for a General, Powerful, Scalable Graph Transformer", equations 2 to 5: ``depth``
    times ``h <- norm(y + MLP(y))`` with ``y = norm(h + local(h, e)) + norm(h + attention(h))``, where
    ``local_v = MLP((1 + eps) h_v + sum_{u in N(v)} ReLU(h_u + W e_uv))`` and the attention has ``heads`` heads over all
    atoms of the graph. It begins with ``h_v = W [x_v, w_v]``, where ``w_v`` says where an atom stands: the chances that
    random walks of 1 to ``walk`` steps come back (Dwivedi et al. 2022).

    Use it where distant atoms act on each other, as no sum over neighbours sees. Known limits: attention takes time in
    proportion to atoms x atoms of a graph, and the walks as much memory; on small sets it was behind simpler models.

    Args:
        spec: what the graphs hold.
        d_hidden: width of an atom's state, a multiple of ``heads``.
        depth: layers, 1 or more.
        heads: attention heads.
        kept_heads: how many of them each layer has left, such as ``2,4,1,3``, as ``compress`` writes it; all if empty.
        walk: steps of the random walks; the paper's is 16 to 20.
        span: ``all``, or ``adaptive``: each head learns how many bonds away it looks (Sukhbaatar et al. 2019), and
            training says how many; the loss has a penalty ``span`` of 0.01 a bond.
        max_matrix_gb: the largest matrix with a row for each pair of nodes of one graph, in GB; a batch holds several.
        norm: a registered norm.
        dropout: probability of dropping a value while training.
        readout: rows to graph, a registered readout.

    Raises:
        ValueError: a depth below 1, or a width that the heads do not divide.
        UsageError: an unknown norm or readout, or a graph with a larger matrix.
    """

    small = MappingProxyType({"d_hidden": 8, "walk": 4})
    needs = ("atom", "bond", "bond.reverse")
    stacked = True
    limit: MatrixLimit

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 4,
        heads: Width = 4,
        kept_heads: str = "",
        walk: Annotated[int, Range(1, 100)] = 16,
        span: Literal["all", "adaptive"] = "all",
        max_matrix_gb: MatrixGB = 0.25,
        norm: str = "batch",
        dropout: Probability = 0.0,
        readout: str = "mean",
    ) -> None:
        super().__init__()
        if depth < 1 or d_hidden % heads:
            raise ValueError(
                f"depth is {depth}, d_hidden {d_hidden}, heads {heads}: 1 or more, and heads divide d_hidden"
            )
        self.walk, self.d_layers = walk, (d_hidden,) * depth
        words = "walks between all pairs of nodes", "choose a model without random walks"
        numbers = 3 + (2 * heads if span == "adaptive" else 0)  # a double and an index a pair, and masks
        self.limit = MatrixLimit("graphgps", numbers, max_matrix_gb, *words)
        self.embed = nn.Linear(spec.width("atom") + walk, d_hidden)
        counts, width = head_counts(kept_heads, depth, heads), d_hidden // heads
        self.layers = nn.ModuleList(
            GPSLayer(d_hidden, spec.width("bond"), (n, width), norm, dropout, adaptive=span == "adaptive")
            for n in counts
        )
        self.read_by(readout, d_hidden)

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations and the chances of the walks ahead."""
        super().prepare(batch)
        self.limit.check(batch)
        _ = size_groups(batch), walk_returns(batch, self.walk)
        if self.spans:
            hop_distances(batch)

    def attention_heads(self) -> tuple[Heads, ...]:
        """Those of each layer."""
        heads = []
        for i, layer in enumerate(self.layers):
            if isinstance(layer, GPSLayer):
                axis = Axis("query_key_value.weight", 0, times=3, size=layer.d_head)
                axes = [axis, axis._replace(name="query_key_value.bias"), Axis("attended.weight", 1, size=layer.d_head)]
                axes += [] if layer.span is None else [Axis("span.value", 0)]
                heads.append(Heads(Units(layer.heads, tuple(axes)).within(f"layers.{i}"), f"layers.{i}.attended"))
        return tuple(heads)

    @property
    def spans(self) -> list[HopSpan]:
        """Those of each layer; none unless they are adaptive."""
        return [layer.span for layer in self.layers if isinstance(layer, GPSLayer) and layer.span is not None]

    def pool(self, found: SharedStates) -> Pooled:
        """One state a graph, with the penalty of the spans."""
        graphs, penalties = super().pool(found)
        if not self.spans:
            return graphs, penalties
        return graphs, {**penalties, "span": torch.stack([span.penalty for span in self.spans]).mean()}

    def notes(self) -> tuple[str, ...]:
        """The bonds that each head of each layer sees."""
        seen = [" ".join(f"{z:.1f}" for z in span.z.tolist()) for span in self.spans]
        return (f"learned spans in bonds, by layer: {' | '.join(seen)}",) if seen else ()

    def states(self, batch: GraphBatch) -> list[Float[Tensor, "n_atoms d"]]:
        """The atoms' states after each layer, float [n_atoms, d]."""
        self.limit.check(batch)
        atoms, bonds = batch.features("atom"), batch.features("bond")
        h = self.embed(torch.cat([atoms, walk_returns(batch, self.walk).to(atoms.dtype)], dim=1))
        return self.through([partial(layer, bonds=bonds, batch=batch) for layer in self.layers], h)

"""A small message-passing encoder of inverted residual blocks: widen, sum neighbours channel by channel, narrow."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import INNER_LIMIT, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate


@register(
    "encoder",
    "inverted_residual",
    systems=(
        SystemCard(
            "mobilenetv2",
            left_out="images: strides, and a window of three by three pixels, whose place the neighbours take",
            off="gin",
            beside=("gin of the width between the bottlenecks",),
        ),
    ),
    summary="inverted residual blocks with linear bottlenecks: few weights, for large screens",
    paper="Sandler et al. 2018, CVPR",
    line=("atoms", "bonds", "gated, channel by channel", "widen, narrow, residual", "sum", "supervised"),
)
class InvertedResidual(AtomEncoder):
    """``h <- h + N ReLU6(norm(sum_u w(e_uv) a_u + c a_v))`` with ``a = ReLU6(norm(W h))``, ``expansion`` times as wide.

    Sandler et al. 2018, "MobileNetV2: Inverted Residuals and Linear Bottlenecks", table 1: a pointwise expansion, a
    depthwise convolution (here a sum over neighbours in which no channels mix, each weighed by the bond) and a linear
    projection back to a narrow state; there is no activation on the narrow state.

    Use it for large screens on a processor: it has a fifth of the weights of ``gin`` of its inner width.
    Known limits: those of ``gin``, and one number a channel is all that a bond says.

    Args:
        spec: what the graphs hold.
        d_hidden: width of the narrow states, which pass from block to block.
        expansion: how many times wider a block is inside.
        depth: blocks.
        norm: a registered norm, inside of blocks.
        readout: rows to graph, a registered readout.
    """

    small = MappingProxyType({"d_hidden": 8, "depth": 2, "expansion": 2})
    stacked = True

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 32,
        expansion: Annotated[int, Range(1, 64)] = 6,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 4,
        norm: str = "batch",
        readout: str = "sum",
    ) -> None:
        super().__init__()
        wide = expansion * d_hidden
        self.embed = nn.Linear(spec.width("atom"), d_hidden)
        self.widen = nn.ModuleList(nn.Linear(d_hidden, wide, bias=False) for _ in range(depth))
        self.gates = nn.ModuleList(nn.Linear(spec.width("bond"), wide) for _ in range(depth))
        self.own = nn.ParameterList(nn.Parameter(self.embed.weight.new_ones(wide)) for _ in range(depth))
        self.narrow = nn.ModuleList(nn.Linear(wide, d_hidden) for _ in range(depth))
        self.norms = make_norms(norm, [wide] * 2 * depth)
        self.d_layers = (d_hidden,) * depth
        self.read_by(readout, d_hidden)

    def states(self, batch: GraphBatch) -> list[Float[Tensor, "n_atoms d"]]:
        """The atoms' states after each block."""
        bonds, members, edges = relations.bonds(batch), relations.members(batch), batch.features("bond")

        def block(t: int, h: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
            a = F.relu6(self.norms[2 * t](self.widen[t](h), members))
            m = propagate(a, bonds, edge_rows=self.gates[t](edges).sigmoid(), message=_gated)
            return h + self.narrow[t](F.relu6(self.norms[2 * t + 1](m + self.own[t] * a, members)))

        layers = [lambda h, t=t: block(t, h) for t in range(len(self.widen))]
        return self.through(layers, self.embed(batch.features("atom")))


def _gated(source: Tensor, target: Tensor | None, gates: Tensor) -> Tensor:
    return source * gates

"""ProtoRes readout: residual blocks over the rows of a graph, with the running mean subtracted between blocks."""

from __future__ import annotations

from typing import Annotated

from torch import nn

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.readouts import GraphStates, Readout
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Sources, segment_mean


@register(
    "readout",
    "protores",
    systems=(
        SystemCard(
            "protores",
            left_out="the decoder of poses and its inverse kinematics, rotations and look-at constraints",
            off="-s params.readout=mean",
            beside=("the mean", "a perceptron of each row before the mean"),
            command="molgraph train dataset:chembl2321810 -m dmpnn -s 'params.readout=protores(blocks=2)'",
        ),
    ),
    summary="residual blocks that subtract the running mean of the set from each row",
    paper="Oreshkin et al. 2022, ICLR",
)
class ProtoRes(Readout):
    """The prototype of a set after some blocks.

    Oreshkin et al. 2022, "ProtoRes: Proto-Residual Network for Pose Authoring via Learned Inverse Kinematics", section
    3.2: from ``b_0 = h`` and ``p_0 = 0``, in block r
    ``x_r = ReLU(b_(r-1) - p_(r-1) / max(r - 1, 1))``, ``b_r = ReLU(L_r x_r + FC_r(x_r))`` and
    ``p_r = p_(r-1) + mean FC'_r(x_r)`` over the rows of the set; the last prototype is read. A set whose rows all come
    twice has the same state.

    Args:
        d_in: width of the rows, and of the output.
        blocks: residual blocks.
    """

    def __init__(self, d_in: int, blocks: Annotated[int, Range(1, 32)] = 3) -> None:
        super().__init__(d_in)
        self.skips = nn.ModuleList(nn.Linear(d_in, d_in) for _ in range(blocks - 1))
        self.rows = nn.ModuleList(Perceptron(d_in, d_in, d_in) for _ in range(blocks - 1))
        self.prototypes = nn.ModuleList(Perceptron(d_in, d_in, d_in) for _ in range(blocks))

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        b, set_of = h.index_select(0, relation.source), relation.target
        prototype = b.new_zeros(relation.n_target, b.shape[1])
        for r, share in enumerate(self.prototypes):
            x = (b - prototype.index_select(0, set_of) / max(r, 1)).relu()
            prototype = prototype + segment_mean(share(x), relation)
            if r < len(self.skips):  # the last block's rows are not read
                b = (self.skips[r](x) + self.rows[r](x)).relu()
        return prototype

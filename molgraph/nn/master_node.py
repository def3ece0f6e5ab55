"""Master node: a virtual node in each graph, connected to all its atoms (Gilmer et al. 2017)."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.updates import GRU


class MasterNode(nn.Module):
    """A node of a width of its own that is joined to all rows of its graph by edges of a special kind.

    Gilmer et al. 2017, section 5.1, "Virtual Graph Elements": rows hear ``A_out g`` beside their neighbours, and
    ``g <- GRU(g, sum_v A_in h_v)`` with weights of its own; ``g`` begins with zeros.

    Args:
        d: width of the rows.
        d_master: width of the node.
    """

    def __init__(self, d: int, d_master: int) -> None:
        super().__init__()
        self.d_master = d_master
        self.to_rows, self.from_rows = nn.Linear(d_master, d, bias=False), nn.Linear(d, d_master, bias=False)
        self.update = GRU(d_master, d_master)

    def start(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "g d_master"]:
        """The states of the graphs' nodes before the first round."""
        return h.new_zeros(members.n_target, self.d_master)

    def forward(
        self, g: Float[Tensor, "g d_master"], h: Float[Tensor, "n d"], members: Relation
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, "g d_master"]]:
        """The message to each row, float [n, d], and the nodes after the round, from what both were before it.

        Args:
            g: float [g, d_master], the nodes.
            h: float [n, d], the rows.
            members: from rows to graphs, one pair a row.
        """
        to_rows = propagate(self.to_rows(g), members.transpose)
        return to_rows, self.update(g, propagate(self.from_rows(h), members))

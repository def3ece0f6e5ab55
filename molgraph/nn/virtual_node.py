"""Virtual node that hears the mean of its graph's rows times the logarithm of their number."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation


class VirtualNode(nn.Module):
    """``g <- g + GELU(norm(W (g + mean_v h_v log n)))``, and then ``h <- h + W g`` in the rows of its graph.

    Kläser et al. 2024, arXiv:2404.14986, with the pooling ``logsum`` of the library Graphium: a sum would grow with the
    graph, a mean would forget its size ``n``. ``g`` begins with zeros.

    Args:
        d: width of the rows and of the node.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.update = nn.Sequential(nn.Linear(d, d), nn.LayerNorm(d), nn.GELU())
        self.to_atoms = nn.Linear(d, d)

    def forward(
        self, h: Float[Tensor, "n d"], node: Float[Tensor, "g _"], members: Relation
    ) -> tuple[Float[Tensor, "n d"], Float[Tensor, "g d"]]:
        """The rows and the nodes after it, from what both were before.

        Args:
            h: float [n, d], the rows.
            node: float [g, d], or [g, 1] of zeros before the first.
            members: from rows to graphs, one pair a row.
        """
        size = members.offsets.diff().clamp(min=1).to(h.dtype)
        pooled = propagate(h, members, reduce="mean") * size.log()[:, None]
        node = node + self.update(node + pooled)
        return h + propagate(self.to_atoms(node), members.transpose), node

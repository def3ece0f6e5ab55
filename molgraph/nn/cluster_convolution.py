"""One-dimensional convolution over the rows of a graph in their order: the last part of DGCNN."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.nn.readouts import GraphStates, Readout
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Sources

FEWEST = 10  # the second convolution reads 5 pairs of rows


class ClusterConvolution(Readout):
    """Zhang et al. 2018, "An End-to-End Deep Learning Architecture for Graph Classification", figure 2, its last part.

    A layer of 16 channels for each row, the maximum of each two rows, and a convolution of 32 channels over five of
    those. Every graph has ``k`` rows, such as its clusters.

    Args:
        d_in: width of the rows; the output is ``32 (k // 2 - 4)`` wide.
        k: rows of each graph, 10 or more.

    Raises:
        ValueError: a ``k`` below 10, which leaves nothing to convolve.
    """

    def __init__(self, d_in: int, k: int) -> None:
        super().__init__(d_in)
        if k < FEWEST:
            raise ValueError(f"k must be {FEWEST} or more, got {k}")
        self.k, self.d_out = k, 32 * (k // 2 - 4)
        self.each, self.convolve = nn.Linear(d_in, 16), nn.Conv1d(16, 32, 5)

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [g * k, d] to [g, 32 (k // 2 - 4)]."""
        return self.over(h.view(relation.n_target, self.k, h.shape[1]))

    def over(self, h: Float[Tensor, "g {self.k} d"]) -> Float[Tensor, "g {self.d_out}"]:
        """float [g, k, d] to [g, 32 (k // 2 - 4)]."""
        pairs = self.each(h).relu()[:, : self.k // 2 * 2].unflatten(1, (-1, 2)).amax(2)
        return self.convolve(pairs.transpose(1, 2)).relu().flatten(1)

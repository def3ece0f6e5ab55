"""One-dimensional convolution over pooled clusters: the head of DGCNN."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.nn.penalties import Penalties
from molgraph.nn.relation import Relation

LEAST_CLUSTERS = 10  # the second convolution reads 5 pairs of them


class ClusterConvolution(nn.Module):
    """Zhang et al. 2018, "An End-to-End Deep Learning Architecture for Graph Classification", figure 2, its last part.

    A linear map of each cluster to 16 channels, the maximum of each two, and 32 channels over five of those.

    Args:
        d_in: width of the clusters.
        k: clusters of each graph, 10 or more.

    Raises:
        ValueError: fewer clusters.
    """

    def __init__(self, d_in: int, k: int) -> None:
        super().__init__()
        if k < LEAST_CLUSTERS:
            raise ValueError(f"k is {k}: the released form convolves over {LEAST_CLUSTERS} clusters or more")
        self.k, self.d_out = k, 32 * (k // 2 - 4)
        self.each, self.over = nn.Conv1d(1, 16, d_in, d_in), nn.Conv1d(16, 32, 5)
        self.pool = nn.MaxPool1d(2)

    def forward(self, h: Float[Tensor, "g_k d"], members: Relation) -> tuple[Float[Tensor, "g d_out"], Penalties]:
        """float [g * k, d] to [g, 32 (k // 2 - 4)]."""
        flat = h.view(members.n_target, 1, self.k * h.shape[1])
        return self.over(self.pool(self.each(flat).relu())).relu().flatten(1), {}

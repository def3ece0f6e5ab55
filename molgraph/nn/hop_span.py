"""Adaptive attention span: each attention head learns how many bonds away it looks."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.data.batch import GraphBatch
from molgraph.nn.relations import once_a_batch
from molgraph.nn.size_groups import size_groups

LARGEST, START, RAMP = 16.0, 2.0, 2.0  # bonds: of a span at most and at first, and over which a mask falls to 0
COST = 0.01  # of a bond, in units of the loss
LEAST = 1e-6  # mask below which there is no gradient


class HopSpan(nn.Module):
    """``a_ir = m(d_ir) exp(s_ir) / sum_q m(d_iq) exp(s_iq)`` with ``m(d) = clamp((R + z - d) / R, 0, 1)``.

    Sukhbaatar et al. 2019, "Adaptive Attention Span in Transformers", equations 3 to 5, with the bonds of a shortest
    path between two atoms as the distance d; the paper has the tokens between two. Each head learns its span z, and the
    loss has a penalty of the spans' mean (equation 6).

    Args:
        heads: attention heads.
    """

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.value = nn.Parameter(torch.full((heads,), START / LARGEST))

    @property
    def z(self) -> Float[Tensor, " heads"]:
        """float [heads], in bonds; a value that was moved out of the range has the gradient of the nearest within."""
        return LARGEST * (self.value + (self.value.clamp(0, 1) - self.value).detach())

    @property
    def penalty(self) -> Float[Tensor, ""]:
        """``COST`` times the mean span."""
        return COST * LARGEST * self.value.clamp(min=0).mean()

    def forward(self, distances: Sequence[Float[Tensor, "_ _ _"]]) -> list[Float[Tensor, "_ _ _ _"]]:
        """``log m``, which is added to scores, float [graphs, heads, n, n], for each of some [graphs, n, n]."""
        z, found = self.z[:, None, None], []
        for distance in distances:
            mask = ((RAMP + z - distance.unsqueeze(1)) / RAMP).clamp(0, 1)
            found.append(torch.where(mask > 0, mask.clamp(min=LEAST).log(), -torch.inf))
        return found


@once_a_batch
def hop_distances(batch: GraphBatch) -> tuple[Float[Tensor, "_ _ _"], ...]:
    """The bonds of a shortest path between any two atoms of a graph, float [graphs, n, n] for each of the size groups.

    Infinite for atoms without a path, beyond the largest span, and between padding and others.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> hop_distances(collate(featurize(["CCO"]), [0]))[0].tolist()
        [[[0.0, 1.0, 2.0], [1.0, 0.0, 1.0], [2.0, 1.0, 0.0]]]
    """
    groups, found, first = size_groups(batch), [], 0
    ends = groups.place[torch.stack([batch.target, batch.source])]
    for rows in groups.rows:
        graphs, n = rows.shape
        own = ends[:, (ends[0] >= first) & (ends[0] < first + rows.numel())] - first
        first += rows.numel()
        near = torch.zeros(graphs, n, n, device=rows.device)
        near[own[0] // n, own[0] % n, own[1] % n] = 1
        reach = torch.eye(n, device=rows.device).repeat(graphs, 1, 1)
        distance = torch.where(reach > 0, 0.0, torch.inf)
        for bonds in range(1, int(LARGEST + RAMP)):
            reach = ((near @ reach + reach) > 0).float()
            reached = (reach > 0) & distance.isinf()
            if not reached.any():
                break
            distance[reached] = bonds
        found.append(distance)
    return tuple(found)

"""Deep Graph Infomax: tell a graph's rows from those of a corrupted graph by their score with the graph's vector."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F


def jsd_corrupted(
    local: Float[Tensor, "n d"],
    corrupted: Float[Tensor, "n d"],
    global_: Float[Tensor, "g d"],
    graph_of: Int[Tensor, " n"],
) -> Float[Tensor, " g"]:
    """Negative Jensen-Shannon bound of each graph, with the rows of its corrupted copy as negatives.

    Velickovic et al. 2019, "Deep Graph Infomax", equation 1, the sum of both expectations: the mean over the rows ``u``
    of graph i of ``softplus(-T(h_u, H_i)) + softplus(T(h'_u, H_i))``, with ``T(h, H) = h . H``.

    Returns:
        float32 or float64 [g], 2 log 2 where all scores are 0; 0 for a graph without rows.

    Example:
        >>> jsd_corrupted(torch.zeros(3, 4), torch.zeros(3, 4), torch.zeros(2, 4), torch.tensor([0, 0, 1]))
        tensor([1.3863, 1.3863])
    """
    dtype = torch.promote_types(local.dtype, torch.float32)
    with torch.autocast(local.device.type, enabled=False):
        summary = global_.to(dtype).index_select(0, graph_of)
        right, wrong = (summary * local.to(dtype)).sum(dim=1), (summary * corrupted.to(dtype)).sum(dim=1)
        counts = torch.bincount(graph_of, minlength=len(global_)).clamp(min=1)
        losses = F.softplus(-right) + F.softplus(wrong)
        return losses.new_zeros(len(global_)).index_add(0, graph_of, losses) / counts

"""Rows of graphs of different sizes as one padded tensor with a mask."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def to_dense(
    rows: Float[Tensor, "n d"], offsets: Int[Tensor, " g_1"], most: int | None = None
) -> tuple[Float[Tensor, "g length d"], Bool[Tensor, "g length"]]:
    """Put the rows of each graph side by side, zeros after the last one.

    Args:
        rows: float [n, d], graph after graph.
        offsets: int64 [g + 1].
        most: rows of a graph that are kept, the first ones; None keeps all.

    Returns:
        float [g, length, d], and bool [g, length]: where a row stands.

    Example:
        >>> x, mask = to_dense(torch.ones(3, 1), torch.tensor([0, 1, 3]))
        >>> x[..., 0].tolist(), mask.tolist()
        ([[1.0, 0.0], [1.0, 1.0]], [[True, False], [True, True]])
    """
    counts = offsets.diff()
    length = int(counts.max()) if len(counts) else 0
    length = length if most is None else min(length, most)
    place = torch.arange(length, device=rows.device)
    mask = place < counts.unsqueeze(1)
    index = (offsets[:-1].unsqueeze(1) + place)[mask]
    out = rows.new_zeros(len(counts), length, rows.shape[1])
    out[mask] = rows.index_select(0, index)
    return out, mask

"""Attention within windows of a sequence, block by block, so that time and memory are linear in the length."""

from __future__ import annotations

from typing import TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

KeysOrValues: TypeAlias = Float[Tensor, "n heads _ e"]
Pair: TypeAlias = tuple[KeysOrValues, KeysOrValues]


def windows(x: Float[Tensor, "n heads t e"], block: int, width: int) -> Float[Tensor, "n heads b w e"]:
    """Overlapping windows of ``width`` places, one every ``block`` places; the last ones are filled up with zeros.

    Example:
        >>> windows(torch.arange(1.0, 6).view(1, 1, 5, 1), block=2, width=3).squeeze().tolist()
        [[1.0, 2.0, 3.0], [3.0, 4.0, 5.0]]
    """
    more = -(x.shape[2] - width + block) % block
    return F.pad(x, (0, 0, 0, more)).unfold(2, width, block).transpose(3, 4)


def in_blocks(x: Float[Tensor, "n heads t e"], block: int, lead: int = 0) -> Float[Tensor, "n heads b s e"]:
    """Blocks of places one after the other; ``lead`` zeros stand before the first place, zeros behind the last."""
    return F.pad(x, (0, 0, lead, -(lead + x.shape[2]) % block)).unflatten(2, (-1, block))


def places_of(
    start: int, n_blocks: int, block: int, memory: int, device: torch.device
) -> tuple[Int[Tensor, "b s 1"], Int[Tensor, "b 1 w"]]:
    """Places of the queries of each block, and of its keys, ``memory`` of which stand before it (below 0: none).

    Blocks begin at multiples of ``block``; the first is that of the place ``start``.
    """
    first = start - start % block + block * torch.arange(n_blocks, device=device)[:, None]
    queries, keys = (first + torch.arange(low, block, device=device) for low in (0, -memory))
    return queries[:, :, None], keys[:, None]


def window_attention(
    q: Float[Tensor, "n heads t e"],
    k: Float[Tensor, "n heads kept e"],
    v: Float[Tensor, "n heads kept e"],
    start: int,
    block: int,
    memory: int,
    farthest: int | None = None,
) -> Float[Tensor, "n heads t e"]:
    """Causal attention of each block of queries to its own places and the ``memory`` places before the block.

    Args:
        q: float [n, heads, t, e], the queries from the place ``start`` on.
        k, v: float [n, heads, memory + start % block + t, e]: keys and values of the same places, and before them of
            those that the first block sees; of places below 0 anything.
        start: place of the first query.
        block: queries that share their keys.
        memory: keys before the block.
        farthest: places back that a query sees at most; all of its keys if not given.

    Returns:
        float [n, heads, t, e].
    """
    lead, t = start % block, q.shape[2]
    q = in_blocks(q, block, lead)
    at, of = places_of(start, q.shape[2], block, memory, q.device)
    seen = (of <= at) & (of >= 0)
    if farthest is not None:
        seen &= at - of <= farthest
    k, v = (windows(each, block, memory + block) for each in (k, v))
    return F.scaled_dot_product_attention(q, k, v, attn_mask=seen).flatten(2, 3)[:, :, lead : lead + t]


def with_recent(state: Pair | None, k: KeysOrValues, v: KeysOrValues, memory: int) -> Pair:
    """Keys and values of a piece behind those that are kept; at the start ``memory`` zeros stand before them."""
    if state is None:
        return F.pad(k, (0, 0, memory, 0)), F.pad(v, (0, 0, memory, 0))
    return torch.cat([state[0], k], dim=2), torch.cat([state[1], v], dim=2)


def recent(k: KeysOrValues, v: KeysOrValues, end: int, block: int, memory: int) -> Pair:
    """Of keys and values up to the place ``end``, those that the next query's block sees."""
    first = k.shape[2] - memory - end % block
    return k[:, :, first:], v[:, :, first:]

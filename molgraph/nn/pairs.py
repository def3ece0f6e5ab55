"""Pairs of row numbers in: checked, sorted by one of their ends, and counted."""

from __future__ import annotations

import torch
from jaxtyping import Int
from torch import Tensor


def check_pairs(source: Int[Tensor, " p"], target: Int[Tensor, " q"], n_source: int, n_target: int) -> None:
    """Refuse pairs that name a row outside its set.

    Args:
        source, target: int64 [p], row numbers.
        n_source, n_target: sizes of the two sets.

    Raises:
        IndexError: a row outside its set; the message holds the first such pair.
        ValueError: not one target for each source.

    Example:
        >>> check_pairs(torch.tensor([0, 5]), torch.tensor([1, 0]), 2, 2)
        Traceback (most recent call last):
        IndexError: pair 1 goes from row 5 to row 0, but there are 2 sources and 2 targets, numbered from 0
    """
    if source.ndim != 1 or source.shape != target.shape:
        raise ValueError(
            f"pairs are two rows of numbers of one length, got source {[*source.shape]} and target {[*target.shape]}"
        )
    wrong = (source < 0) | (source >= n_source) | (target < 0) | (target >= n_target)
    if wrong.any():
        k = int(wrong.nonzero()[0])
        raise IndexError(
            f"pair {k} goes from row {int(source[k])} to row {int(target[k])}, "
            f"but there are {n_source} sources and {n_target} targets, numbered from 0"
        )


def sort_pairs(
    ends: Int[Tensor, " p"], others: Int[Tensor, " p"], n: int
) -> tuple[Int[Tensor, " p"], Int[Tensor, " {n}+1"]]:
    """Sort pairs by their one end; equal ends keep their order.

    Args:
        ends, others: int64 [p], the end to sort by and the other one.
        n: size of the set that ``ends`` counts.

    Returns:
        The other ends in the new order, int64 [p], and the offsets over ``ends``, int64 [n + 1].

    Example:
        >>> [t.tolist() for t in sort_pairs(torch.tensor([2, 0, 2]), torch.tensor([5, 6, 7]), 3)]
        [[6, 5, 7], [0, 1, 1, 3]]
    """
    counts = torch.bincount(ends, minlength=n)
    return others[torch.argsort(ends, stable=True)], torch.cat([counts.new_zeros(1), counts.cumsum(0)])


def repeat_rows(offsets: Int[Tensor, " ends"], p: int) -> Int[Tensor, " {p}"]:
    """The row that each of ``p`` pairs belongs to: offsets int64 [n + 1] to int64 [p], ascending."""
    rows = torch.arange(offsets.shape[0] - 1, device=offsets.device)
    return torch.repeat_interleave(rows, offsets.diff(), output_size=p)

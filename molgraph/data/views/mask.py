"""Mask the features of random atoms of each graph, or random tokens of each sequence."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.ranges import Share
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.view import View


@register("view", "mask", summary="hides the features of some atoms, or tokens", paper="Hu et al. 2020, ICLR")
class Mask(View):
    """``int(p n) + 1`` of the n atoms (or tokens, or nodes) of each graph lose all their features.

    Hu et al. 2020, "Strategies for Pre-training Graph Neural Networks": a row of zeros, which no atom has, is the mask.
    Bonds stay as they are.

    Args:
        p: share that is hidden.
    """

    kinds = ("molecule", "sequence", "graph", "geometry")

    def __init__(self, *, p: Share = 0.1) -> None:
        self.p = p

    def __call__(self, seen: GraphBatch, rng: np.random.Generator) -> GraphBatch:
        """The batch with hidden rows."""
        level = "atom" if "atom" in seen.levels else "token"
        return hidden(seen, level, chosen_rows(seen[level].offsets.numpy(), self.p, rng))


def hidden(batch: GraphBatch, level: str, rows: Tensor) -> GraphBatch:
    """The batch with a row of zeros, the last one of the table, in place of the features of some rows of a level."""
    entry = batch[level]
    assert entry.table is not None
    return batch.with_level(
        level, code=entry.code.index_fill(0, rows, len(entry.table)), table=F.pad(entry.table, (0, 0, 0, 1))
    )


def chosen_rows(offsets: np.ndarray, share: float, rng: np.random.Generator) -> Tensor:
    """int64, ascending: the rows to hide, ``int(share n) + 1`` of the n of each graph, all alike likely.

    Example:
        >>> rows = chosen_rows(np.array([0, 20, 21, 21]), 0.15, np.random.default_rng(0))
        >>> int((rows < 20).sum()), int(rows[-1])
        (4, 20)
    """
    counts = np.diff(offsets)
    order = np.lexsort((rng.random(offsets[-1]), np.arange(len(counts)).repeat(counts)))  # shuffled within each graph
    place = np.arange(offsets[-1]) - offsets[:-1].repeat(counts)
    return torch.from_numpy(np.sort(order[place < (counts * share).astype(np.int64).repeat(counts) + 1]))

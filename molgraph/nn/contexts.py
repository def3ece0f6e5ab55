"""Vocabularies of the contexts of atoms and bonds in a corpus, and the layers that predict a context from a state."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.feature_layout import ATOM_BLOCKS
from molgraph.data.graph_store import GraphStore
from molgraph.nn.encoder import Rows
from molgraph.nn.gtransformer import LongRange

BONDS = slice(0, 5)  # columns of a bond's features: none, single, double, triple, aromatic
CHUNK = 1_024  # graphs that are counted at once
_RNG = np.random.default_rng(20)
_ELEMENT, _BOND, _NEIGHBOUR = (
    torch.from_numpy(_RNG.integers(-(2**62), 2**62, shape)) for shape in (ATOM_BLOCKS[0], 8, (8, ATOM_BLOCKS[0]))
)


def context_keys(batch: GraphBatch) -> tuple[Int[Tensor, " n_atoms"], Int[Tensor, " n_bonds"]]:
    """The context of each atom and of each directed bond as a number, the same for the same context.

    Rong et al. 2020, section 4.2, with one hop: an atom's context is its element and how many neighbours of each
    element it has by each kind of bond, as in ``C_N-DOUBLE1_O-SINGLE1``. A bond's is its kind, the elements of its
    ends, and the kinds of the bonds at each end. Numbers are sums of random ones for each part, in 64 bits, so they do
    not depend on the order of atoms.
    """
    atoms, bonds = batch["atom"], batch["bond"]
    assert atoms.table is not None and bonds.table is not None
    element = atoms.table[:, : ATOM_BLOCKS[0]].argmax(dim=1)[atoms.code]
    kind = bonds.table[:, BONDS].argmax(dim=1)[bonds.code]
    element_keys, zeros = _ELEMENT.to(element.device)[element], torch.zeros_like(element)
    neighbours = _NEIGHBOUR.to(element.device)[kind, element[batch.source]]
    around = zeros.index_add(0, batch.target, _BOND.to(element.device)[kind])
    ends = _mixed(element_keys + around)
    of_bonds = _BOND.to(element.device)[kind] + ends[batch.source] + ends[batch.target]
    return element_keys + zeros.index_add(0, batch.target, neighbours), of_bonds


def _mixed(x: Tensor) -> Tensor:
    """Another number for each, so that sums of two say which two they are."""
    x = (x ^ (x >> 31)) * 0x5851F42D4C957F2D
    return x ^ (x >> 29)


class Contexts(nn.Module):
    """The commonest contexts of a corpus, and layers that predict them from the states of two views.

    Those of bonds go through a feed-forward network beside the features of the bond and of its source first.

    Args:
        d: width of a state.
        d_features: width of a bond's features and its source's.
        most: contexts of atoms, and of bonds, that are told apart; all others are one more.
    """

    LEVELS = ("atom", "bond")
    atom_keys: Int[Tensor, " most"]
    bond_keys: Int[Tensor, " most"]

    def __init__(self, d: int, d_features: int, most: int) -> None:
        super().__init__()
        self.most = most
        for level in self.LEVELS:
            self.register_buffer(f"{level}_keys", torch.full((most,), torch.iinfo(torch.int64).max))
        self.of_bonds = nn.ModuleList(LongRange(d, d_features, 0.0) for _ in range(2))
        self.layers = nn.ModuleDict(
            {level: nn.ModuleList(nn.Linear(d, most + 1) for _ in range(2)) for level in self.LEVELS}
        )

    def measure(self, store: GraphStore) -> None:
        """Count the contexts of a corpus, chunk by chunk, and keep the commonest."""
        counts = [Counter[int](), Counter[int]()]
        for first in range(0, len(store), CHUNK):
            batch = collate(store, np.arange(first, min(first + CHUNK, len(store))))
            for count, keys in zip(counts, context_keys(batch), strict=True):
                unique_keys, n = torch.unique(keys, return_counts=True)
                count.update(dict(zip(unique_keys.tolist(), n.tolist(), strict=True)))
        for level, count in zip(self.LEVELS, counts, strict=True):
            common = sorted(count.items(), key=lambda pair: (-pair[1], pair[0]))[: self.most]
            keys = getattr(self, f"{level}_keys")
            keys[: len(common)] = torch.tensor(sorted(key for key, _ in common), dtype=torch.int64)

    def labels(self, level: str, keys: Int[Tensor, " n"]) -> Int[Tensor, " n"]:
        """The number of each context in the vocabulary; ``most`` for one that it lacks."""
        known = getattr(self, f"{level}_keys")
        place = torch.searchsorted(known, keys).clamp(max=self.most - 1)
        return torch.where(known[place] == keys, place, self.most)

    def views(self, batch: GraphBatch, rows: Sequence[Rows]) -> dict[str, list[Float[Tensor, "n d"]]]:
        """The states of atoms and of bonds in both views, from an encoder's rows."""
        atoms, bonds = (level.h.chunk(2, dim=1) for level in rows)
        x = torch.cat([batch.features("atom").index_select(0, batch.source), batch.features("bond")], dim=1)
        return {"atom": [*atoms], "bond": [out(h, x) for out, h in zip(self.of_bonds, bonds, strict=True)]}

    def forward(self, level: str, views: Sequence[Float[Tensor, "n d"]]) -> list[Float[Tensor, "n _"]]:
        """The scores of the contexts, from each view."""
        layers: Any = self.layers[level]
        return [layer(h) for layer, h in zip(layers, views, strict=True)]

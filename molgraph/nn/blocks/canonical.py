"""Positional features of atoms from RDKit's canonical atom ranks."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.chem.atom_order import canonical_ranks
from molgraph.data.batch import GraphBatch
from molgraph.nn.blocks.walks import Positions


@register(
    "block",
    "canonical",
    tags=("positions",),
    summary="the place of each atom in a canonical order: no two atoms of a graph are alike",
    paper="Loukas 2020, ICLR",
    systems=(
        SystemCard(
            "gnn-depth-width-bounds",
            left_out="lower bounds of depth times width for problems on graphs such as colouring",
            off="-s params.positions=none",
            beside=("nodes that are alike", "random identities"),
            command="molgraph train dataset:esol -m gin -s params.positions=canonical",
        ),
    ),
)
class Canonical(Positions):
    """Sines and cosines of each atom's place in its graph's canonical order.

    Loukas 2020, "What graph neural networks cannot learn: depth vs width", section 3: with an identity for each node,
    message passing of enough layers and width can compute whatever can be computed. The order is RDKit's canonical
    ranks of the bare graph (``CanonicalRankAtoms``, ties broken), so that it is the same however a graph is written.

    Args:
        columns: features, half sines and half cosines of falling wavelength.
    """

    def __init__(self, columns: Annotated[int, Range(2, 64)] = 8) -> None:
        super().__init__()
        self.columns = columns

    def features(self, batch: GraphBatch) -> Float[Tensor, "n_atoms columns"]:
        """Float32 [n_atoms, columns]."""
        ranks, offsets = [], batch["atom"].offsets.tolist()
        code, graph = batch["atom"].code.tolist(), batch.graph_of("atom")
        ends = torch.stack([batch.source, batch.target], dim=1)[batch.source < batch.target]
        owner = graph.index_select(0, ends[:, 0]).tolist() if len(ends) else []
        bonds: list[list[list[int]]] = [[] for _ in range(batch.n_graphs)]
        for i, pair in zip(owner, ends.tolist(), strict=True):
            bonds[i].append(pair)
        for i, start in enumerate(offsets[:-1]):
            ranks += canonical_ranks(code[start : offsets[i + 1]], [(a - start, b - start) for a, b in bonds[i]])
        waves = np.arange(self.columns // 2)
        angle = np.array(ranks, float)[:, None] / 100.0 ** (2 * waves / self.columns)
        both = np.concatenate([np.sin(angle), np.cos(angle), 0 * angle[:, : self.columns % 2]], axis=1)
        return torch.from_numpy(both.astype(np.float32)).reshape(-1, self.columns)

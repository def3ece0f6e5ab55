"""Add random-walk return probabilities to the features of atoms: positional channels for any encoder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Annotated

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn.block import BlockOption
from molgraph.nn.encoder import Encoder
from molgraph.nn.walks import walk_returns


class Positions(BlockOption):
    """The base class of positional features: ``columns`` further features of each atom, from ``features``."""

    key = "positions"
    columns: int

    @classmethod
    def missing(cls, encoder: type[Encoder], spec: InputSpec) -> str:
        """Features of atoms, and bonds."""
        lacking = spec.missing(("atom", "bond"))
        return f"reads graphs without {' and '.join(f'{level}s' for level in lacking)}" if lacking else ""

    def features(self, batch: GraphBatch) -> Float[Tensor, "n_atoms columns"]:
        """The positional features."""
        raise NotImplementedError

    def widen(self, spec: InputSpec) -> InputSpec:
        """Atoms with ``columns`` more features."""
        widths: Mapping[str, int] = {**spec.widths, "atom": spec.width("atom") + self.columns}
        return replace(spec, widths=widths)

    def change(self, batch: GraphBatch) -> GraphBatch:
        """The batch with the positional features behind those of its atoms; atoms alike in both share a code."""
        return batch.once((type(self).__name__, self.columns), lambda: with_features(batch, self.features(batch)))


def with_features(batch: GraphBatch, features: Float[Tensor, "n_atoms k"]) -> GraphBatch:
    """The batch with further features of its atoms, float [n_atoms, k], behind those that they have.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> batch = collate(featurize(["CCO"]), np.arange(1))
        >>> with_features(batch, torch.ones(3, 2)).features("atom").shape[1] - batch.features("atom").shape[1]
        2
    """
    level = batch["atom"]
    keys = np.column_stack([level.code.numpy(force=True), features.numpy(force=True).round(6)])
    _, first, code = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    put = partial(torch.as_tensor, device=level.offsets.device)
    every = torch.cat([batch.features("atom"), put(features)], dim=1)
    return batch.with_level("atom", code=put(code.reshape(-1)), table=every.index_select(0, put(first)))


@register(
    "block",
    "walks",
    tags=("positions",),
    systems=(
        SystemCard(
            "coordconv",
            left_out="coordinates of pixels: a graph has none, and random walks take their place",
            off="-s params.positions=none",
            beside=("the encoder without positions",),
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.positions=walks(8)'",
            modules=("molgraph.nn.walks", "molgraph.nn.block"),
        ),
    ),
    summary="chances that random walks return: tells rings of different sizes apart",
    paper="Liu et al. 2018, NeurIPS 31; walks: Dwivedi et al. 2022, ICLR",
)
class Walks(Positions):
    """The chances that a random walk of 1 to ``steps`` bonds ends where it began, beside the features of each atom.

    Liu et al. 2018, "An Intriguing Failing of Convolutional Neural Networks and the CoordConv Solution": coordinate
    channels beside the input; a network that gives them zero weights is the plain one. In graphs the coordinates are
    structural: the diagonals of ``(A D^-1)^k``, k = 1 to ``steps``. Message passing then tells graphs apart that the
    Weisfeiler-Leman test does not, such as decalin and bicyclopentyl.

    Args:
        steps: longest walk, in bonds.
    """

    def __init__(self, steps: Annotated[int, Range(1, 64)] = 8) -> None:
        super().__init__()
        self.columns = steps

    def features(self, batch: GraphBatch) -> Float[Tensor, "n_atoms columns"]:
        """Float32 [n_atoms, steps]."""
        return walk_returns(batch, self.columns)

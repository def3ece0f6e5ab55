"""Write each molecule as a random SMILES: from a random atom, along random branches."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.base.ranges import Count
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.base.table import Entities
from molgraph.chem.atom_order import shuffled_smiles
from molgraph.data.view import View


@register(
    "view",
    "random_smiles",
    summary="writes each SMILES anew at random, for models of tokens",
    paper="Bjerrum 2017, arXiv:1703.07076",
    systems=(
        SystemCard(
            "drq",
            left_out="reinforcement learning: the targets of labelled rows are measured, and not means over views",
            off="--views random_smiles",
            beside=("one view",),
            modules=("molgraph.train.view_mean", "molgraph.train.samples"),
        ),
    ),
    command='molgraph train dataset:esol -m tokens --views "random_smiles(4)" --epochs 5',
)
class RandomSmiles(View):
    """The same molecule, its atoms in a random order.

    Bjerrum 2017, "SMILES Enumeration as Data Augmentation for Neural Network Modeling of Molecules". A prediction reads
    canonical SMILES; of a random one, tokens that no canonical SMILES of the training part has are rows of zeros.
    ``predict --views 8`` reads eight random SMILES of each molecule, and gives their mean and standard deviation.

    Kostrikov et al. 2020, "Image augmentation is all you need", equation 3: with n > 1 the loss of a row is the mean
    over n of its views, which come together in a batch.

    Args:
        n: views of each row in a batch; a step takes n times as long.
    """

    sees = "column"
    graph_invariant = True

    def __init__(self, *, n: Count = 1) -> None:
        self.n = n

    def __call__(self, seen: Entities, rng: np.random.Generator) -> Entities:
        """The column of new writings; what RDKit cannot read stays as it is."""
        values = seen.values.copy()
        for i, text in enumerate(values):
            values[i] = shuffled_smiles(text, rng)
        return replace(seen, values=values)

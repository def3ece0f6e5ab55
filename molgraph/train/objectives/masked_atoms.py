"""Masked atoms: hide the features of some atoms of each molecule and predict their elements."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.feature_layout import ATOM_BLOCKS, FEATURISER
from molgraph.data.views.mask import chosen_rows, hidden
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

N_ELEMENTS = ATOM_BLOCKS[0]


@register(
    "objective",
    "masked-atoms",
    systems=(
        SystemCard("attribute-masking"),
        SystemCard(
            "bert",
            left_out="tokens and the transformer, atoms kept or drawn anew among the masked, the next sentence",
            off="infograph",
            beside=("the most common element",),
            modules=("molgraph.data.views.mask",),
            part=True,
        ),
    ),
    summary="predict the elements of masked atoms",
    paper="Hu et al. 2020, ICLR",
)
class MaskedAtoms(Objective):
    """Attribute masking, for pretraining an encoder of molecules.

    Hu et al. 2020, "Strategies for Pre-training Graph Neural Networks": ``int(rate n) + 1`` of the n atoms of each
    molecule lose all their features (a row of zeros, which no atom has, is their mask), and a linear layer on an
    atom's state predicts its element: ``-log softmax(W h_v + b)_element(v)``, the mean over
    masked atoms; the encoder's penalties are added.

    Args:
        network: its one encoder is trained; it must give the states of atoms.
        inputs: the one column of molecules that it reads.
        rate: share of the atoms that are masked.

    Raises:
        UsageError: the network reads something else, or its encoder gives no states of atoms.
    """

    labelled = False
    unused_parameters = True  # those of a readout

    def __init__(self, network: Network, inputs: Sequence[Input], *, rate: Share = 0.15) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "masked-atoms masks the atoms of one column of molecules", FEATURISER)
        self.rate = rate
        self.head = nn.Linear(network.encoder.d_rows, N_ELEMENTS)

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch with masked atoms; ``y`` holds their elements, in the order of the atoms."""
        (part,) = batch.parts
        atoms = part.batch["atom"]
        assert atoms.table is not None
        rows = chosen_rows(atoms.offsets.numpy(), self.rate, rng)
        made = copy(batch)
        made.y = elements(atoms.table)[atoms.code[rows]]
        made.parts = (part._replace(batch=hidden(part.batch, "atom", rows)),)
        return made

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum of the cross-entropies of the masked atoms."""
        (part,) = batch.parts
        assert batch.y is not None and batch.weights is not None
        atoms = part.batch["atom"]
        assert atoms.table is not None
        rows = torch.eq(atoms.code, len(atoms.table) - 1).nonzero().squeeze(1)
        encoded = network.encoder(part.batch, rows=True)
        (h,) = (each.h for each in encoded.rows if each.level == "atom")
        losses = F.cross_entropy(self.head(h.index_select(0, rows)).float(), batch.y, reduction="none")
        weights = batch.weights[part.batch.graph_of("atom")[rows], 0]
        return Loss((losses * weights).sum(), int((weights > 0).sum())).with_penalties(encoded.penalties)


def elements(table: Tensor) -> Tensor:
    """int64 [n]: the place of each feature row's element among ``N_ELEMENTS``: 0 for H, ..., the last for others.

    Example:
        >>> from molgraph.data.featurize import featurize
        >>> store = featurize(["CO"])
        >>> elements(torch.from_numpy(store.tables["atom"]))[store.levels["atom"].arrays["code"].astype(int)].tolist()
        [5, 7]
    """
    return table[:, :N_ELEMENTS].argmax(dim=1)

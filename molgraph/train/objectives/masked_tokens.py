"""Masked tokens: hide some tokens of each text and predict them from both sides."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from molgraph.base.ranges import Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.views.mask import chosen_rows, hidden
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.objectives.masked_atoms import CHOSEN, ORIGINAL, bert_masks
from molgraph.train.samples import Sample
from molgraph.train.text_to_text import PADDING, padded_codes, token_encoder


@register(
    "objective",
    "masked-tokens",
    systems=(
        SystemCard(
            "bert",
            left_out="the next sentence",
            off="-s params.objective.replace=false",
            beside=("the most common token", "the encoder without training"),
            command="molgraph pretrain dataset:nci -m tokens -s params.sequence=convolution --objective "
            "masked-tokens -o encoder.mgm",
            modules=("molgraph.train.objectives.masked_atoms", "molgraph.data.views.mask", "molgraph.models.tokens"),
        ),
    ),
    summary="predict masked tokens of SMILES, SELFIES or proteins (BERT), for tokens",
    paper="Devlin et al. 2019, NAACL",
)
class MaskedTokens(Objective):
    """The masked language model, for pretraining an encoder of tokens.

    Devlin et al. 2019, "BERT: Pre-training of Deep Bidirectional Transformers for Language Understanding", section
    3.1: ``int(rate n) + 1`` of the n tokens of each text are chosen, of which 80% are masked (a row of zeros), 10% are
    random tokens of the vocabulary and 10% stay; a linear layer on the states predicts them all, ``-sum_i log p(x_i |
    corrupted x)``. Layers that read from the left alone (``s4``, ``gru``) guess from that side: choose ones that read
    both.

    Args:
        network: its encoder is ``tokens``.
        inputs: the one column that it reads.
        rate: share of the tokens that are predicted.
        replace: whether some of the chosen tokens are not masked.

    Raises:
        UnsupportedError: another encoder, or several columns.
    """

    labelled = False
    unused_parameters = True  # those of a readout

    def __init__(self, network: Network, inputs: Sequence[Input], *, rate: Share = 0.15, replace: bool = True) -> None:
        super().__init__()
        encoder = token_encoder(network, inputs, "masked-tokens hides tokens")
        self.rate, self.replace = rate, replace
        self.head = nn.Linear(encoder.d_tokens, 1 + inputs[0].spec.width("token"))

    def corrupt(self, batch: Sample, rng: np.random.Generator) -> Sample:
        """The batch with masked tokens; the level has which are chosen, and the codes before."""
        (part,) = batch.parts
        own = part.batch["token"]
        assert own.table is not None
        rows = chosen_rows(own.offsets.numpy(), self.rate, rng)
        masks, others = bert_masks(rows, self.replace, rng)
        drawn = torch.from_numpy(rng.integers(len(own.table) - own.table.shape[1], len(own.table), size=len(others)))
        graphs = hidden(part.batch, "token", masks)
        code = graphs["token"].code.index_copy(0, others, drawn)
        chosen = torch.zeros(len(own), dtype=torch.bool).index_fill(0, rows, True)
        made = copy(batch)
        graphs = graphs.with_level("token", code=code, **{CHOSEN: chosen, ORIGINAL: own.code})
        made.parts = (part._replace(batch=graphs),)
        return made

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum of the cross-entropies of the chosen tokens."""
        graphs = batch.parts[0].batch
        assert batch.weights is not None
        states, mask = network.encoder.states(graphs)
        own, sizes = graphs["token"], graphs["token"].offsets.diff().tolist()
        labels = torch.where(own.arrays[CHOSEN], own.arrays[ORIGINAL], PADDING)
        labels = padded_codes(labels.split(sizes))[:, : states.shape[1]] if len(own) else mask.long() - 1
        losses = F.cross_entropy(
            self.head(states).float().transpose(1, 2), labels, ignore_index=PADDING, reduction="none"
        )
        weights = batch.weights[:, :1] * (labels != PADDING)
        return Loss((losses * weights).sum(), int((weights > 0).sum()))

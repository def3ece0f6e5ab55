"""Language models of 1,000 molecules of the NCI list by sequence layer, and their NLL of molecules held out."""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from molgraph.chem.tokens import tokens_of
from molgraph.data.sources.builtin import nci
from molgraph.data.table import make_table
from molgraph.generate.language import LanguageGenerator
from molgraph.nn.sequences.janet import JANETCell

SEEDS = (0, 1)
N_TRAIN, N_TEST, EPOCHS, D_EMBEDDING = 1000, 300, 12, 32
WIDTHS = {"mogrifier": 50}  # of as many weights as an LSTM of 64
DEPTHS = {"on_lstm": 2}  # layers, where not one
RNN = "rnn"  # janet whose forget gate is shut


@cache
def molecules() -> list[str]:
    """Neutral molecules of one part, the training ones first."""
    texts = [
        str(text) for text in nci().smiles if not {*"[.%"} & {*str(text)} and 12 <= len(tokens_of(str(text))) <= 60
    ]
    return [texts[i] for i in np.random.default_rng(0).permutation(len(texts))[: N_TRAIN + N_TEST]]


def held_out() -> list[list[str]]:
    """The tokens of each molecule held out whose tokens the training molecules have."""
    known = {token for text in molecules()[:N_TRAIN] for token in tokens_of(text)}
    return [tokens for text in molecules()[N_TRAIN:] if {*(tokens := tokens_of(text))} <= known]


def shut(cell: Any, x: Tensor, h: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """``h_t = tanh(W_c x_t + U_c h_(t-1) + b_c)``, a JANET cell that forgets all."""
    recur, states = cell.recur.weight.t(), []
    h = x.new_zeros(len(x), len(recur)) if h is None else h
    for row in cell.enter(x).unbind(1):
        h = torch.addmm(row, h, recur).chunk(2, dim=1)[1].tanh()
        states.append(h)
    return torch.stack(states, dim=1), h


@cache
def trained(sequence: str, seed: int) -> LanguageGenerator:
    """At equal epochs."""
    how: dict[str, Any] = {
        "d_embedding": D_EMBEDDING,
        "d_hidden": WIDTHS.get(sequence, 64),
        "n_layers": DEPTHS.get(sequence, 1),
    }
    how |= {"epochs": EPOCHS, "batch_size": 32, "learning_rate": 5e-3, "threads": 1, "seed": seed}
    model = LanguageGenerator(sequence="janet" if sequence == RNN else sequence, **how)
    with patch.object(JANETCell, "forward", shut) if sequence == RNN else nullcontext():
        return model.fit(make_table(molecules()[:N_TRAIN]))


@cache
def nll(sequence: str, seed: int) -> float:
    """Nats of a token of molecules held out, ends included."""
    texts = held_out()
    model = trained(sequence, seed)
    with patch.object(JANETCell, "forward", shut) if sequence == RNN else nullcontext():
        total = model.log_prob(["".join(text) for text in texts]).sum()
    return float(-total / sum(len(text) + 1 for text in texts))

"""Observational dropout: a language model that reads its own samples in the place of some tokens while it trains."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.chem.identity import canonical_smiles
from molgraph.data.table import make_table
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.next_token import EDGE, LanguageNetwork, NextToken, shifted
from molgraph.generate.own_inputs import OwnInputs, with_own_inputs
from molgraph.train.objective import StepState
from tests.systems.effect import Effect
from tests.systems.smiles_nll import SEEDS, molecules

N_TOKENS, N, T = 12, 400, 40


class Counting(nn.Module):
    """Scores of a model that is sure of the next number: after a comes a + 1, after the last the first."""

    def forward(self, tokens: Tensor, state: Any = None, condition: Tensor | None = None) -> tuple[Tensor, Any]:
        return 100.0 * nn.functional.one_hot(tokens % (N_TOKENS - 1) + 1, N_TOKENS).float(), state


@pytest.mark.system("observational-dropout", rung="exact")
def test_a_share_of_tokens_is_what_the_model_says_after_its_own_inputs(off: str) -> None:
    torch.manual_seed(0)
    tokens = torch.randint(1, N_TOKENS, (N, T))
    tokens[:, 0] = EDGE
    read = with_own_inputs(Counting(), tokens, 0.0 if off else 0.25)
    predicted = read[:, :-1] % (N_TOKENS - 1) + 1
    kept, said = read[:, 1:] == tokens[:, 1:], read[:, 1:] == predicted
    assert (kept | said).all() and (read[:, 0] == EDGE).all()
    by_chance = 1 / (N_TOKENS - 1)  # that the token is what the model says
    assert abs((~kept).float().mean() / (1 - by_chance) - 0.25) < 0.01


@pytest.mark.system("observational-dropout", rung="exact")
def test_all_observed_is_teacher_forcing_and_none_is_the_model_alone(off: str) -> None:
    torch.manual_seed(0)
    network = LanguageNetwork(N_TOKENS, 8, 16, 1, 0.0)
    lengths = torch.randint(2, T, (N,))
    code, offsets = torch.randint(1, N_TOKENS, (int(lengths.sum()),)), nn.functional.pad(lengths.cumsum(0), (1, 0))
    level = {"token": SimpleNamespace(code=code, offsets=offsets)}
    batch: Any = SimpleNamespace(parts=[SimpleNamespace(batch=level)], weights=None, extra=None)
    given, _ = shifted(code, offsets)
    plain, judged = NextToken()(network, batch, StepState(0, 1, 0)), StepState(0, 1, 0, training=False)
    share = 0.5 if off else 0.0
    assert with_own_inputs(network, given, share).equal(given)
    assert OwnInputs(share)(network, batch, StepState(0, 1, 0)).total.equal(plain.total)
    assert OwnInputs(0.9)(network, batch, judged).total.equal(plain.total)
    assert not OwnInputs(0.9)(network, batch, StepState(0, 1, 0)).total.equal(plain.total)
    network.scores.weight.data[3], network.scores.bias.data[3] = 0, 1e3  # sure of one token
    assert (with_own_inputs(network, given, 1.0)[:, 1:] == 3).all()


def valid(share: float, seed: int) -> float:
    """The share of molecules among 500 draws after equal epochs."""
    how: dict[str, Any] = {"d_embedding": 32, "d_hidden": 96, "n_layers": 1, "epochs": 12, "batch_size": 32}
    made = LanguageGenerator(**how, learning_rate=5e-3, threads=1, seed=seed, own_inputs=share, max_length=80)
    texts = made.fit(make_table(molecules())).sample(500, seed=1)
    return float(np.mean([not each.reason for each in canonical_smiles(texts)]))


@pytest.mark.system(
    "observational-dropout",
    rung="works",
    null="fewer valid draws after equal epochs, also with a share that grows from 0",
)
def test_molecules_are_more_often_valid_than_by_teacher_forcing(off: str, effect: Effect) -> None:
    own, plain = ([valid(share, seed) for seed in SEEDS] for share in (0.0 if off else 0.25, 0.0))
    lead = [a - b for a, b in zip(own, plain, strict=True)]
    effect("share of valid draws above teacher forcing", lead, at_least=0.01, beside={"own": own, "plain": plain})

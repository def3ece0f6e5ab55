"""The VAE of token sequences: its loss by hand, exact resume, both alphabets, properties, flows and the bank."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from molgraph.base.contracts import State, Target
from molgraph.base.errors import DamagedModelError, UnknownNameError, UnsupportedError
from molgraph.chem.quality import measure
from molgraph.data.table import make_table
from molgraph.generate.chemvae import ChemVAE
from molgraph.generate.vae_objective import SequenceELBO
from molgraph.train.objective import StepState
from tests.generate.test_language import corpus, goes_on_exactly
from tests.tiny import series

VALID = StepState(0, 10, 0, training=False)


def small(**params: Any) -> ChemVAE:
    """A VAE that trains in a blink."""
    return ChemVAE(**{**ChemVAE.small, "threads": 1, **params})


@pytest.mark.slow
@pytest.mark.parametrize("stop_after", [1, 7])
@pytest.mark.parametrize("options", [{}, {"prior": "acn", "posterior": "radial"}])
def test_a_killed_training_goes_on_exactly(
    stop_after: int, options: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    goes_on_exactly(small, options, SequenceELBO, stop_after, tmp_path, monkeypatch)


def test_epochs_of_the_warm_up_are_not_the_best() -> None:
    options = {"epochs": 8, "patience": 1, "warmup_start": 0.7, "warmup_slope": 30.0, "learning_rate": 0.02}
    made = small(**options).fit(corpus(), corpus(16, 100))
    assert made.curves is not None and made.best_epoch is not None
    assert made.best_epoch >= 7 <= len(made.curves), "patience waits for the weight of the divergence"
    assert made.curves["train_kl"].iloc[4] > made.curves["train_kl"].iloc[-1]


def test_what_selfies_cannot_write_is_a_row_with_a_reason() -> None:
    table = make_table(["CCO", "ClI(Cl)c1ccccc1", "CCN"])
    made = small(tokens="selfies").fit(table)
    found = made.encode(table)
    assert [bool(why) for why in found.reason] == [False, True, False] and "SELFIES" in found.reason[1]
    assert "1 (too long, or with tokens" in made.notes[0]


def test_properties_are_learned_in_their_units_from_rdkit_or_the_table() -> None:
    smiles = [f"{'C' * i}{end}" for i in range(1, 25) for end in ("O", "N", "")]
    length = np.array([[len(text) * 100.0] for text in smiles])
    table = make_table(smiles, targets=(Target("length"),), y=length)
    options = {"encoder": "gru", "epochs": 30, "learning_rate": 0.02, "property_weight": 50.0, "beta": 0.01}
    made = small(properties=["logp", "length"], **options).fit(table)
    found = made.predicted(made.encode(table).mean)
    for column, truth in enumerate((measure("logp", smiles).value, length[:, 0])):
        assert np.corrcoef(found[:, column], truth)[0, 1] > 0.9
        assert abs(found[:, column].mean() - truth.mean()) < 0.5 * truth.std()
    again = ChemVAE.from_state(made.state())
    np.testing.assert_allclose(again.predicted(np.zeros((1, 4))), made.predicted(np.zeros((1, 4))))
    with pytest.raises(UnknownNameError, match="'logq'"):
        small(properties=["logq"]).fit(table)
    with pytest.raises(UnsupportedError, match="properties"):
        small(epochs=1).fit(table).predicted(np.zeros((1, 4)))


def test_samples_of_the_associative_prior_begin_with_codes_of_its_bank() -> None:
    made = small(prior="acn(bank_size=20)", epochs=3).fit(corpus())
    prior = made.ready().network.bottleneck.prior
    assert prior.bank.shape == (20, 4) and bool((prior.bank.norm(dim=1) > 0.05).any()), "refreshed by training"
    assert made.sample(7)[:3] == made.sample(3) and len(made.sample(0)) == 0
    centre = made.encode(make_table([series(1).smiles[0]])).mean[0]
    given = prior.given(torch.from_numpy(centre[None]).float())
    drawn = made.around(centre, 3000)
    np.testing.assert_allclose(drawn.mean(axis=0), given.mean[0].detach(), atol=0.15)


@pytest.mark.parametrize(
    "change",
    [
        {"tokens": []},
        {"tokens": ["C", "C"]},
        {"n_rows": -1},
        {"n_rows": 10**9},
        {"scales": [[0.0, 0.0]]},
        {"scales": [[float("nan"), 1.0]]},
        {"tokens": 5},
    ],
)
def test_vocabularies_that_no_training_made_are_refused(change: dict[str, Any]) -> None:
    state = small(epochs=1, properties=["logp"], prior="acn").fit(make_table(["CCO", "CCN"])).state()
    meta = json.loads(json.dumps({**state.meta, "curves": []}))
    meta["vocabulary"] |= change
    with pytest.raises(DamagedModelError):
        ChemVAE.from_state(State(state.arrays, meta))

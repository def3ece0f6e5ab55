"""A language model that is asked for properties learns the goals that molecules reached, and writes what was asked."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from molgraph.chem.quality import measure
from molgraph.generate.conditions import wanted
from tests.systems.effect import Effect
from tests.systems.small_language import LIBRARY, model, values


@pytest.mark.system("goalgail", rung="exact")
def test_the_goal_of_a_molecule_is_what_it_reached(off: str) -> None:
    """The rows that are learned have the molecules' own properties, and the layer is affine in them."""
    made = model(("logp", "qed"))
    assert made.values is not None
    goal = made.values if not off else np.random.default_rng(0).permutation(made.values)
    for place, name in enumerate(("logp", "qed")):
        np.testing.assert_allclose(goal[:, place], measure(name, LIBRARY).value, rtol=1e-5, atol=1e-6)


@pytest.mark.system("goalgail", rung="exact")
def test_a_condition_is_added_to_the_vector_of_every_token(off: str) -> None:
    made = model(("logp", "qed"))
    network, tokens = made.ready().network, torch.randint(1, 9, (3, 7))
    y = torch.tensor([[1.0, 0.5], [4.0, 0.2], [0.0, 0.9]])
    c = network.conditions
    vector = (y - c.mean) / c.sd @ c.linear.weight.T + c.linear.bias
    x = network.embedding(tokens) + (0 if off else vector[:, None])
    by_hand = network.scores(network.sequence(x, None, None)[0])
    torch.testing.assert_close(network(tokens, None, c(y))[0], by_hand)


def correlations(asked: np.ndarray, name: str, condition: tuple[str, ...]) -> tuple[float, float, float]:
    """Spearman's of asked and reached values of valid draws, with goals that are shuffled, and how many are valid."""
    made, goals, got = model(condition), list[float](), list[float]()
    for seed, value in enumerate(asked):
        with wanted(made, {name: float(value)} if condition else None):
            found = values(made.sample(25, seed), name)
        ok = np.isfinite(found)
        goals += [float(value)] * int(ok.sum())
        got += found[ok].tolist()
    mixed = np.random.default_rng(0).permutation(goals)
    return float(spearmanr(goals, got)[0]), float(spearmanr(mixed, got)[0]), len(got) / (25 * len(asked))


@pytest.mark.system("goalgail", rung="works")
def test_what_is_asked_for_is_what_is_written(off: str, effect: Effect) -> None:
    """500 draws at 20 values of logP."""
    rho, mixed, valid = correlations(np.linspace(0, 4, 20), "logp", () if off else ("logp", "qed"))
    assert abs(mixed) < 0.1
    beside = {"shuffled goals": [mixed], "share of valid": [valid]}
    effect("Spearman's correlation of asked and reached logP", [rho], at_least=0.7, beside=beside)

"""A bonus that a network computes from the history of a search: trained on searches, and taken to others."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from scipy.stats import t

from molgraph.base.seeds import generator
from molgraph.data.sources import builtin
from molgraph.generate.optimised import best_so_far
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.rewards.history_bonus import POOL, HistoryBonus, prints, simulate, trained_bonus
from molgraph.generate.rewards.novelty import Tanimoto
from molgraph.generate.rewards.reward import make_rewards
from molgraph.generate.run_search import run_search
from molgraph.generate.searches.search import builtin_molecules, make_search
from tests.systems.effect import Effect


@functools.cache
def calls(target: str, reward: str, budget: int) -> tuple[tuple[str, ...], np.ndarray]:
    """The molecules that a search scores by similarity to a target, and the best score after each call."""
    made = OracleCalls(read_oracle(f"similarity({target})"), budget)
    run_search(None, made, make_search("graph-ga"), rewards=make_rewards(reward), diversity=0.0)
    return tuple(made.scored), np.nan_to_num(best_so_far(made))


@pytest.mark.system("lifetime-learned-intrinsic-reward", rung="exact")
def test_without_weight_the_search_is_the_same(off: str) -> None:
    weight = 1 if off else 0
    with_term = calls("CC(=O)Nc1ccc(O)cc1", f"learned(weight={weight}, steps=2)", 120)
    plain = calls("CC(=O)Nc1ccc(O)cc1", "", 120)
    assert with_term[0] == plain[0] and with_term[1].tobytes() == plain[1].tobytes()


@pytest.mark.system("lifetime-learned-intrinsic-reward", rung="works")
def test_searches_for_other_targets_score_higher_over_their_lifetime(off: str, effect: Effect) -> None:
    """In the searches that it is trained on, with 100 targets among 512 molecules that it has not met.

    The mean over the steps of the expected score, in standard deviations; the twin's network is not trained.
    """
    every, rng = builtin_molecules(), np.random.default_rng(1)
    met = {every[i] for i in generator(0, "learned bonus").permutation(len(every))[:POOL]}
    smiles = rng.permutation([text for text in every if text not in met])[:POOL].tolist()
    bits = Tanimoto().describe(smiles)
    score = torch.from_numpy(Tanimoto().compare(bits, bits)).float()[:100]
    score = (score - score.mean(dim=1, keepdim=True)) / score.std(dim=1, keepdim=True)
    torch.manual_seed(3)
    untrained = HistoryBonus()
    network = untrained if off else trained_bonus(100, 32, 1.0)

    def lifetime(network: HistoryBonus, weight: float) -> list[float]:
        means = []
        for seed in range(3):
            torch.manual_seed(seed)
            with torch.inference_mode():
                means.append(float(simulate(network, prints(smiles), score, weight).mean()))
        return means

    plain = lifetime(network, 0.0)
    beside = {"no bonus": plain, "a bonus that is not trained": lifetime(untrained, 1.0)}
    effect("mean score of a lifetime", lifetime(network, 1.0), at_least=float(np.mean(plain)) + 0.2, beside=beside)


@pytest.mark.system(
    "lifetime-learned-intrinsic-reward",
    rung="works",
    null="four targets do not tell the gain over no term from nothing, nor did two that it was set up on",
)
def test_a_genetic_search_is_better_over_1000_calls(off: str, effect: Effect) -> None:
    """Four targets of another list, one run each: the mean over 1,000 calls of the best similarity so far."""
    targets = [str(builtin.chembl2321810().smiles[row]) for row in (10, 40, 70, 100)]

    def area(reward: str) -> np.ndarray:
        curves = (calls(target, reward, 1000)[1] for target in targets)
        return np.array([np.append(curve, np.full(1000 - len(curve), curve[-1])).mean() for curve in curves])

    rewards = {"with": "learned(weight=0)" if off else "learned", "no term": "", "novelty": "novelty(threshold=0.4)"}
    found = {name: area(reward) for name, reward in rewards.items()}
    gain = found["with"] - found["no term"]
    lower = float(gain.mean() - t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain)))
    beside = {"gain": gain.tolist(), **{name: each.tolist() for name, each in found.items()}}
    effect("lower end of the gain in mean best similarity", [lower], at_least=0.005, beside=beside)

"""Trials that every registered reward term meets, with its small settings and the built-in molecules."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from molgraph.base.registry import entry, names
from molgraph.chem.identity import canonical_smiles
from molgraph.data.sources import builtin
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.rewards.reward import Reward


@functools.cache
def model() -> LanguageGenerator:
    """A small generator, every text of which is a molecule."""
    made = LanguageGenerator(**LanguageGenerator.small, tokens="selfies", threads=1)
    return made.fit(builtin.chembl2321810().take(np.arange(40)))


@functools.cache
def batches() -> list[tuple[list[str], np.ndarray]]:
    """Six batches of molecules with scores, some without; the last has molecules of the first again."""
    texts = [each.smiles for each in canonical_smiles(builtin.nci().smiles[:200]) if not each.reason]
    rng, made = np.random.default_rng(0), []
    for start in range(0, 60, 12):
        score = rng.random(12)
        score[3] = np.nan
        made.append((texts[start : start + 12], score))
    return [*made, (texts[:4] + texts[60:64] + texts[:4], rng.random(12))]


def begun(name: str, *, generator: LanguageGenerator | None = None, seed: int = 1) -> Reward:
    cls = entry("reward", name).value
    reward: Reward = cls(**cls.small)
    reward.begin(generator, scale=0.5, seed=seed, examples=["CCO", "CCN", "c1ccccc1O", "CC(=O)Nc1ccccc1"])
    return reward


def adjusted(reward: Reward, last: int | None = None) -> list[np.ndarray]:
    return [reward.adjust(smiles, score) for smiles, score in batches()[:last]]


@pytest.mark.parametrize("name", names("reward"))
class TestEveryReward:
    def test_is_described(self, name: str) -> None:
        found = entry("reward", name)
        assert issubclass(found.value, Reward) and found.summary and found.paper and found.value.__doc__

    def test_gives_a_score_for_each_score_and_none_for_none(self, name: str) -> None:
        for (_, score), out in zip(batches(), adjusted(begun(name)), strict=True):
            assert out.shape == score.shape and out.dtype == np.float64
            assert np.array_equal(np.isnan(out), np.isnan(score))
        empty = begun(name).adjust([], np.zeros(0))
        assert empty.shape == (0,)

    def test_leaves_the_scores_of_the_oracle_as_they_were(self, name: str) -> None:
        before = [score.copy() for _, score in batches()]
        adjusted(begun(name))
        assert all(np.array_equal(a, score, equal_nan=True) for a, (_, score) in zip(before, batches(), strict=True))

    def test_the_same_molecules_and_seed_give_the_same_scores(self, name: str) -> None:
        np.random.seed(3)  # noqa: NPY002 - the global state on purpose
        first = adjusted(begun(name, generator=model()))
        np.random.seed(4)  # noqa: NPY002
        again = begun(name, generator=model())
        assert [out.tobytes() for out in adjusted(again)] == [out.tobytes() for out in first]

    def test_begins_anew(self, name: str) -> None:
        reward = begun(name)
        first = adjusted(reward)
        reward.begin(None, scale=0.5, seed=1, examples=["CCO", "CCN", "c1ccccc1O", "CC(=O)Nc1ccccc1"])
        assert [out.tobytes() for out in adjusted(reward)] == [out.tobytes() for out in first]

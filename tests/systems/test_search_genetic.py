"""A genetic algorithm on SELFIES: every offspring is a molecule, and what selection and the discriminator gain."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from molgraph.chem.identity import canonical_smiles
from molgraph.chem.quality import measure
from molgraph.chem.selfies_edits import TOKENS, mutate_tokens, random_tokens
from molgraph.chem.smiles import why_unreadable
from molgraph.chem.tokens import alphabet
from molgraph.generate.discriminator import Discriminator
from molgraph.generate.searches.search import make_search
from tests.systems.effect import Effect

SEEDS = range(5)


def random_smiles(n: int, seed: int) -> list[str]:
    """Molecules of random SELFIES."""
    rng, join = np.random.default_rng(seed), alphabet("selfies").join
    return [text for text, why in canonical_smiles([join(random_tokens(rng)) for _ in range(n)]) if not why]


def bred(
    seed: int, generations: int, n: int = 50, *, shuffled: bool = False, **params: Any
) -> tuple[dict[str, float], float]:
    """The scores of a run by penalised logP, and the unique share of the population in its last ten generations."""
    search, rng = make_search("ga", initial=0, **params), np.random.default_rng(seed)
    search.begin(seed=seed)
    scores, unique = dict[str, float](), list[float]()
    for step in range(generations):
        smiles = search.ask(n, step).smiles
        fresh = [text for text in dict.fromkeys(smiles) if text not in scores]
        scores.update(zip(fresh, measure("penalized_logp_zinc", fresh).value.tolist(), strict=True))
        seen = np.array([scores[text] for text in smiles])
        search.tell(smiles, rng.permutation(seen) if shuffled else seen)
        members = [one.smiles for one in search.members]  # type: ignore[attr-defined]
        unique.append(len({*members}) / len(members))
    return scores, float(np.mean(unique[-10:]))


@pytest.mark.system("ga-d", rung="exact")
def test_every_mutation_of_selfies_is_a_molecule_and_of_smiles_is_none(off: str) -> None:
    """The twin mutates the characters of SMILES."""
    rng, known, readable = np.random.default_rng(0), random_smiles(100, 1), []
    for tokens, _ in alphabet("selfies").split(known):
        if off:
            text = list("".join(alphabet("selfies").join(tokens)))
            text[rng.integers(len(text))] = rng.choice(list("CNOSF=#()12"))
            readable.append(not why_unreadable("".join(text)))
            continue
        for _ in range(5):
            tokens = mutate_tokens(tokens, rng)
            text = alphabet("selfies").join(tokens)
            readable.append(not text or not why_unreadable(text))
    assert all(readable)


@pytest.mark.system("ga-d", rung="exact")
def test_places_and_tokens_of_mutations_are_uniform(off: str) -> None:
    """Replacing and inserting have equal chances; the twin replaces alone."""
    rng, lengths, kinds = np.random.default_rng(0), Counter[int](), Counter[str]()
    for _ in range(4000):
        edited = mutate_tokens(["x"] * 20, rng)
        new = [token for token in edited if token != "x"]
        lengths[20 if off else len(edited) - len(new)] += 1
        kinds[new[0] if len(new) == 1 else "benzene"] += 1
    assert lengths[20] / 4000 == pytest.approx(0.5 + 0.5 / 21, abs=0.03)  # at the end there is no token to replace
    assert {*kinds} == {*TOKENS, "benzene"} and max(kinds.values()) < 1.4 * 4000 / len(kinds)


@pytest.mark.system("ga-d", rung="exact")
def test_beta_is_on_once_the_best_stagnates(off: str) -> None:
    """Nigam et al. 2020, section 4.1: 0, and 1,000 after five generations without a change of the best."""
    search: Any = make_search("ga", initial=0, beta=0.0 if off else "adaptive")
    search.begin(seed=0)
    best = [1, 2, 2, 2, 2, 2, 2, 2, 3, 3]
    assert [search.weight(float(score)) for score in best] == [0, 0, 0, 0, 0, 0, 1000, 1000, 0, 0]


@pytest.mark.system("ga-d", rung="works")
def test_the_discriminator_tells_drug_like_molecules_from_random_selfies(off: str, effect: Effect) -> None:
    """Area under the curve on molecules that it has not seen; the twin does not train."""
    real = [text for text, why in canonical_smiles(reference_molecules(160)) if not why]
    fake, areas = random_smiles(160, 3), []
    for seed in range(3):
        judge = Discriminator(real[:80], seed=seed)
        for step in range(0 if off else 5):
            judge.learn(fake[:80], step)
        above = judge.probability(real[80:])[:, None] > judge.probability(fake[80:])[None]
        areas.append(float(above.mean()))
    effect("area under the curve of D on new molecules", areas, at_least=0.9)


def reference_molecules(n: int) -> list[str]:
    """Reference molecules of the built-in list."""
    search = make_search("ga", initial=0)
    search.begin(seed=0)
    return search.draws(n, 0)


@pytest.mark.system("ga-d", rung="works")
def test_penalised_logp_exceeds_that_of_random_selfies(off: str, effect: Effect) -> None:
    """The best of a run above the best of as many random SELFIES; the twin's scores are shuffled in each generation."""
    gains, bests, random = [], [], []
    for seed in SEEDS:
        scores, _ = bred(seed, 50, population=50, epochs=1, shuffled=bool(off))
        bests.append(max(scores.values()))
        random.append(float(np.nanmax(measure("penalized_logp_zinc", random_smiles(len(scores), seed)).value)))
        gains.append(bests[-1] - random[-1])
    effect("penalised logP above random SELFIES", gains, at_least=3.0, beside={"search": bests, "random": random})


@pytest.mark.system("ga-d", rung="works")
def test_a_population_that_stagnates_becomes_diverse_again(off: str, effect: Effect) -> None:
    """Molecules of 12 tokens, whose best are soon reached."""
    small: Any = {"population": 40, "max_tokens": 12}
    plain = [bred(seed, 40, 20, beta=0.0, **small)[1] for seed in SEEDS]
    unique = [bred(seed, 40, 20, beta=0.0 if off else "adaptive", **small)[1] for seed in SEEDS]
    gains = [a - b for a, b in zip(unique, plain, strict=True)]
    beside = {"share": unique, "share at beta 0": plain}
    effect("unique share of the last 10 generations above beta 0", gains, at_least=0.03, beside=beside)

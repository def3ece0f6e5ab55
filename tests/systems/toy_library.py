"""A library of 576 small molecules, a language model of it, and a score by which one scaffold is slightly the best."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from molgraph.chem.identity import canonical_smiles
from molgraph.chem.scaffold import scaffolds
from molgraph.data.table import make_table
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.rewards.reward import Reward
from molgraph.generate.searches.policy import LanguageSearch

RINGS = ("c1ccccc1", "c1ccncc1", "c1ccsc1", "C1CCCCC1", "C1CCNCC1", "C1CCOCC1", "c1ccc2ccccc2c1", "c1ccc2[nH]ccc2c1",
         "c1ccoc1", "C1CCC1", "c1cnccn1", "C1CCCC1")  # fmt: skip
GROUPS = ("C", "CC", "CCC", "CC(C)", "CO", "CN", "F", "Cl", "N", "O", "NC(=O)", "CNC(=O)", "CCNC(=O)", "OC(=O)", "N#C",
          "CS")  # fmt: skip
LIBRARY = [f"{group}{link}{ring}" for ring in RINGS for group in GROUPS for link in ("", "C", "CC")]


@functools.cache
def model() -> LanguageGenerator:
    """A recurrent network that writes the library."""
    made = LanguageGenerator(d_embedding=16, d_hidden=64, n_layers=1, max_length=40, epochs=30, batch_size=32,
                             learning_rate=5e-3, threads=1)  # fmt: skip
    return made.fit(make_table(LIBRARY))


def score(smiles: Sequence[str]) -> np.ndarray:
    """1 of amides and 0.2 of others, less up to 0.05 by the scaffold's place; NaN of what is no molecule."""
    texts = [each.smiles for each in canonical_smiles(list(smiles))]
    keys = [str(key) for key in scaffolds(texts).values]
    places = {str(key): i for i, key in enumerate(scaffolds(RINGS).values)}
    loss = np.array([0.05 * places.get(key, len(RINGS)) / len(RINGS) for key in keys])
    return np.array([np.nan if not t else 1.0 if "C(N" in t or "NC(=O)" in t or "C(=O)N" in t or "(N)=O" in t else 0.2
                     for t in texts]) - loss  # fmt: skip


def trained(
    search: LanguageSearch,
    rewards: Sequence[Reward] = (),
    *,
    steps: int,
    n: int = 64,
    seed: int = 0,
    examples: Sequence[str] = (),
    plain: float | None = None,
) -> None:
    """Train a search on the toy's score, without a budget: molecules that were met before are scored again.

    ``examples`` are those of the terms; where ``plain`` is given, it is the score of every molecule.
    """
    for reward in rewards:
        reward.begin(model(), seed=seed, examples=examples)
    search.begin(model(), seed=seed)
    for step in range(steps):
        texts = search.ask(n, step).smiles
        found = canonical_smiles(texts)
        known = [i for i, each in enumerate(found) if not each.reason]
        values = score([found[i].smiles for i in known]) if plain is None else np.full(len(known), plain)
        for reward in rewards:
            values = reward.adjust([found[i].smiles for i in known], values)
        told = np.full(len(texts), np.nan)
        told[known] = values
        search.tell(texts, told)


def written(search: LanguageSearch, n: int = 1000, seed: int = 1) -> list[str]:
    """``n`` texts of the agent."""
    with search.agent.at_work():
        return search.agent.texts(search.agent.draw(n, seed))


def drawn(search: LanguageSearch, n: int = 1000, seed: int = 1) -> tuple[float, int]:
    """Mean score of ``n`` texts of the agent, one that is no molecule 0, and their distinct scaffolds."""
    texts = written(search, n, seed)
    values = score(texts)
    good = [text for text, value in zip(texts, values, strict=True) if value > 0.5]
    return float(np.nan_to_num(values).mean()), len({*scaffolds(good).values})

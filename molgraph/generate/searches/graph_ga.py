"""Breed better molecules by crossing and mutating the graphs of the best ones so far."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.chem.crossover import cross
from molgraph.chem.graph_edits import mutate
from molgraph.chem.standardise import standardise_smiles
from molgraph.generate.searches.search import Proposals, Search

TRIES = 5  # children for each place, at most


@register("search", "graph-ga", summary="genetic algorithm on molecular graphs; needs no model",
          paper="Jensen 2019, Chem. Sci. 10:3567")  # fmt: skip
class GraphGA(Search):
    """``child = mutate(cross(a, b))``, parents of the best molecules so far with chances by their scores.

    The population is the ``population`` best molecules told, so that none of the best is ever lost; it begins with the
    starts and the molecules whose scores are known, else with draws of the generator, without one of a built-in list.
    Children go through the run's standardiser, and promise the mean of their parents' scores. Of the paper's, sizes
    differ: its limit is drawn around the mean of ZINC for each child, and its rings have six atoms at most, here seven.

    Args:
        population: molecules that may become parents; fewer than the paper's 100, for budgets of some hundred calls.
        initial: draws that are scored before the first child; none where there are starts or known molecules.
        mutation_rate: share of the children of two parents that are mutated.
        max_atoms: heavy atoms of a child, at most.
    """

    name = "graph-ga"
    small = MappingProxyType({"population": 10, "initial": 10})

    def __init__(
        self,
        *,
        population: Annotated[int, Range(2, 100_000)] = 30,
        initial: Annotated[int, Range(2, 100_000)] = 60,
        mutation_rate: Annotated[float, Range(0.0, 1.0)] = 0.5,
        max_atoms: Annotated[int, Range(3, 500)] = 50,
    ) -> None:
        self.population, self.initial = population, initial
        self.mutation_rate, self.max_atoms = mutation_rate, max_atoms
        self.scores: dict[str, float] = {}

    def begin(self, *args: Any, **how: Any) -> None:
        """As ``Search.begin``."""
        self.scores = {}
        super().begin(*args, **how)
        if self.starts or self.n_known:
            self.initial = 0

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Keep the scores."""
        self.scores.update((text, float(s)) for text, s in zip(smiles, score, strict=True) if np.isfinite(s))

    def forget(self) -> None:
        """Begin with the molecules that are known next."""
        self.scores, self.initial = {}, 0

    def ask(self, n: int, step: int) -> Proposals:
        """Children of the population; draws before there is one."""
        rng, children = generator(self.seed, self.name, step), dict[str, float]()
        if len(self.scores) < max(self.initial, 1):
            return Proposals(self.draws(n, step), np.zeros(n))
        parents = sorted(self.scores, key=lambda text: -self.scores[text])[: self.population]
        fitness = np.array([self.scores[text] for text in parents])
        fitness = fitness - fitness.min() + 0.01 * (np.ptp(fitness) or 1.0)
        chance = dict(zip(parents, (fitness / fitness.sum()).tolist(), strict=True))
        how: dict[str, Any] = {
            "mutation_rate": self.mutation_rate,
            "max_atoms": self.max_atoms,
            "standardiser": self.standardiser,
        }
        for child, pair in breed(chance, n, rng, known=self.scores, **how).items():
            children[child] = sum(self.scores[text] for text in pair) / len(pair)
        return Proposals([*children], np.array([*children.values()]))


def breed(
    chance: Mapping[str, float],
    n: int,
    rng: np.random.Generator,
    *,
    mutation_rate: float = 0.5,
    max_atoms: int = 50,
    standardiser: str = "standard",
    known: Container[str] = (),
) -> dict[str, tuple[str, ...]]:
    """Up to ``n`` new molecules by crossing and mutating others: each with its parents, one or two.

    Args:
        chance: of each molecule to become a parent; they sum to 1.
        n: children that are wanted; some tries give none.
        rng: random numbers.
        mutation_rate: share of the children of two parents that are mutated.
        max_atoms: heavy atoms of a child, at most.
        standardiser: the preset that children go through.
        known: molecules that are no children.
    """
    children = dict[str, tuple[str, ...]]()
    parents, chances = [*chance], np.array([*chance.values()])
    for _ in range(TRIES * n):
        a, b = (parents[i] for i in rng.choice(len(parents), 2, p=chances))
        child = cross(a, b, rng, max_atoms=max_atoms)
        pair = (a, b) if child else (a,)
        if not child or rng.random() < mutation_rate:
            child = mutate(child or a, rng, max_atoms=max_atoms)
        (text,) = standardise_smiles([child], standardiser).values
        if text and text not in known:
            children.setdefault(text, pair)
        if len(children) == n:
            break
    return children

"""Genetic algorithm on SELFIES, with a discriminator against stagnation."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import HUGE, Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.selfies_edits import mutate_tokens
from molgraph.chem.standardise import standardise_smiles
from molgraph.chem.tokens import alphabet
from molgraph.generate.discriminator import Discriminator
from molgraph.generate.searches.search import Proposals, Search

METHANE = "[C]"


class Member(NamedTuple):
    """A molecule of the population: its SELFIES tokens, of which some may say nothing, and its SMILES."""

    tokens: list[str]
    smiles: str


@register(
    "search",
    "ga",
    summary="genetic algorithm on SELFIES, with a discriminator against stagnation; needs no model",
    paper="Nigam et al. 2020, ICLR",
    systems=(
        SystemCard(
            "ga-d",
            left_out="the paper's 51 properties: the discriminator reads the descriptors of this library; the limit of "
            "81 is of tokens",
            off="'ga(beta=0, population=10)'",
            beside=("random SELFIES", "beta 0"),
            command="molgraph optimise --search 'ga(beta=50, population=10)' --objective penalized_logp -o found.csv",
            modules=("molgraph.generate.discriminator", "molgraph.chem.selfies_edits"),
        ),
    ),
)
class SelfiesGA(Search):
    """``F(m) = J(m) + beta D(m)``: offspring by one mutation each take the places of members of low fitness.

    Nigam et al. 2020, equation 1 and section 3.1. J is the score and D the probability, by a discriminator that is
    trained in each generation, that m belongs to reference molecules: draws of the generator, without one of a built-in
    list. A member is replaced with a logistic probability in the rank of its fitness, by a mutation of a member that
    stays. With ``beta=adaptive`` beta is 0 while the best score of the population changes, and ``strong`` once it
    has been the same for ``patience`` generations, so that families of molecules that are around for long make room.
    There is no crossover. The population begins with the starts and the molecules whose scores are known, otherwise
    with draws of the generator, without one of a built-in list; in the paper with methane (``initial=0``).

    Args:
        beta: weight of the discriminator, a number in the unit of the scores or ``adaptive``.
        population: molecules of the population.
        initial: draws that are scored before the first offspring; none where there are starts or known molecules.
        patience: generations without change after which the adaptive beta is on.
        strong: the adaptive beta where it is on.
        max_tokens: SELFIES tokens of a molecule.
        epochs: passes of the discriminator in each generation.

    Raises:
        BadValueError: beta is neither a number from 0 nor ``adaptive``.
    """

    name = "ga"
    needs = ("selfies",)
    small = MappingProxyType({"population": 10, "initial": 10, "epochs": 1})
    batch_size = 50
    chooses = False

    def __init__(
        self,
        *,
        beta: float | str = "adaptive",
        population: Annotated[int, Range(2, 100_000)] = 100,
        initial: Annotated[int, Range(0, 100_000)] = 60,
        patience: Count = 5,
        strong: Positive = 1000.0,
        max_tokens: Annotated[int, Range(2, 1000)] = 81,
        epochs: Count = 10,
    ) -> None:
        if beta != "adaptive" and (isinstance(beta, str) or not 0 <= beta <= HUGE):
            raise BadValueError(f"beta is {beta!r}", hint="a number from 0, or adaptive")
        self.beta, self.population, self.patience, self.strong = beta, population, patience, strong
        self.initial = initial
        self.max_tokens, self.epochs = max_tokens, epochs
        self.scores: dict[str, float] = {}
        self.members: list[Member] = []
        self.best: list[float] = []
        self.judge: Discriminator | None = None

    def begin(self, *args: Any, **how: Any) -> None:
        """As ``Search.begin``."""
        self.scores, self.members, self.best, self.judge = {}, [], [], None
        super().begin(*args, **how)
        self.members += self.written(self.starts)
        if self.starts or self.n_known:
            self.initial = 0

    def learn_known(self, smiles: Sequence[str], score: np.ndarray) -> int:
        """Take the best of molecules whose scores are known into the population."""
        self.tell(smiles, score)
        best = sorted((text for text in dict.fromkeys(smiles) if text in self.scores), key=lambda t: -self.scores[t])
        self.members = self.written(best[: self.population])
        return len(self.members)

    def written(self, smiles: Sequence[str]) -> list[Member]:
        """The molecules that SELFIES can write."""
        rows = zip(smiles, alphabet("selfies").split(smiles), strict=True)
        return [Member(tokens, text) for text, (tokens, reason) in rows if tokens and not reason]

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Keep the scores."""
        self.scores.update((text, float(s)) for text, s in zip(smiles, score, strict=True) if np.isfinite(s))

    def ask(self, n: int, step: int) -> Proposals:
        """The offspring of a generation: one mutation each of members that stay."""
        if len(self.scores) < self.initial:
            drawn = self.draws(n, step)
            self.members += self.written(drawn)
            return Proposals(drawn, np.zeros(len(drawn)))
        rng = generator(self.seed, self.name, step)
        alive = [one for one in self.members if one.smiles in self.scores]
        kept = self.survivors(alive, n, rng, step) if alive else []
        born = [] if alive else [Member([METHANE], "C")]
        while len(born) < n:
            parents = kept or born[:1]
            born += self.offspring([parents[i] for i in rng.integers(len(parents), size=n - len(born))], rng)
        self.members = kept + born
        return Proposals([one.smiles for one in born], np.zeros(len(born)))

    def survivors(self, alive: list[Member], n: int, rng: np.random.Generator, step: int) -> list[Member]:
        """Members that stay where ``n`` more come; rank r of m goes by ``1 / (1 + exp((m / 2 - r) / (m / 20)))``."""
        score = np.array([self.scores[one.smiles] for one in alive])
        beta, fitness = self.weight(float(score.max())), score
        if self.beta:
            promise = self.likeness([one.smiles for one in alive], step)
            fitness = score + beta * promise
        m, gone = len(alive), min(max(len(alive) + n - self.population, 0), len(alive) - 1)
        rank = np.empty(m)
        rank[np.argsort(-fitness, kind="stable")] = np.arange(m)
        chance = 1 / (1 + np.exp((m / 2 - rank) / (m / 20)))
        out = set(rng.choice(m, gone, replace=False, p=chance / chance.sum()).tolist()) if gone else set()
        return [one for row, one in enumerate(alive) if row not in out]

    def weight(self, best: float) -> float:
        """beta of this generation, by the best score of the population in the last ones."""
        self.best = [*self.best, best][-self.patience - 1 :]
        if isinstance(self.beta, str):
            same = len(self.best) > self.patience and len({*self.best}) == 1
            return self.strong if same else 0.0
        return float(self.beta)

    def likeness(self, smiles: list[str], step: int) -> np.ndarray:
        """float64 [n]: ``D(m)`` after the training of this generation."""
        if self.judge is None:
            reference = [text for text, reason in canonical_smiles(self.draws(4 * self.population, 0)) if not reason]
            self.judge = Discriminator(reference, epochs=self.epochs, seed=derive(self.seed, "judge"))
        self.judge.learn(smiles, step)
        return self.judge.probability(smiles)

    def offspring(self, parents: Sequence[Member], rng: np.random.Generator) -> list[Member]:
        """A mutation of each parent, after the preset; what is no molecule, such as an empty text, is left out."""
        tokens = [mutate_tokens(one.tokens, rng, self.max_tokens) for one in parents]
        join, split = alphabet("selfies").join, alphabet("selfies").split
        raw = [text for text, _ in canonical_smiles([join(row) for row in tokens])]
        prepared = [text or "" for text in standardise_smiles(raw, self.standardiser).values]
        born = []
        for child, before, after in zip(tokens, raw, prepared, strict=True):
            if not after:
                continue
            whole = child if after == before else split([after])[0][0]
            born += [Member(whole, str(after))] if whole else []
        return born

"""Reward term: a memory of molecules unlike each other; a molecule near one of them earns nothing."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal, Protocol

import numpy as np

from molgraph.base.ranges import Count, NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.scaffold import scaffolds
from molgraph.chem.tanimoto import BitTable
from molgraph.generate.rewards.comparator import Comparator, random_walks
from molgraph.generate.rewards.reward import Reward
from molgraph.generate.searches.search import builtin_molecules
from molgraph.train.runtime import torch_settings


class Similarity(Protocol):
    """Describes molecules, and compares two lists of descriptions."""

    @abstractmethod
    def describe(self, smiles: Sequence[str]) -> np.ndarray:
        """[n, d], a row for each molecule."""

    @abstractmethod
    def compare(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """float64 [n, m], from 0 to 1."""


class Tanimoto:
    """Tanimoto similarity of Morgan fingerprints (radius 2, 2,048 bits), of molecules or of their scaffolds.

    Args:
        of_scaffolds: whether of Bemis-Murcko scaffolds; a molecule without rings is its own.
    """

    def __init__(self, of_scaffolds: bool = False) -> None:
        self.of_scaffolds = of_scaffolds

    def describe(self, smiles: Sequence[str]) -> np.ndarray:
        """uint8 [n, 2048]."""
        if self.of_scaffolds:
            smiles = [str(key) or text for key, text in zip(scaffolds(smiles).values, smiles, strict=True)]
        return morgan(smiles).x

    def compare(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """As RDKit has them, to the last bit."""
        table = BitTable(b)
        rows = BitTable(a, like=table)
        shared = np.asarray(rows.shared(table), dtype=np.float64)
        return shared / np.maximum(np.add.outer(rows.size, table.size) - shared, 1.0)


@register(
    "reward",
    "novelty",
    summary="molecules near one that was met before score no more, by similarity or by a learned comparator",
    paper="Savinov et al. 2019, ICLR; arXiv:1810.02274",
    systems=(
        SystemCard(
            "episodic-curiosity",
            left_out="a comparator that is trained while the search goes on",
            off="''",
            beside=("no term", "Tanimoto similarity in the comparator's place"),
            command="molgraph optimise --search graph-ga --oracle qed --reward 'novelty(0.4, bonus=1)' -o found.csv",
            modules=("molgraph.generate.rewards.comparator",),
        ),
    ),
)
class Novelty(Reward):
    """A molecule is new where its distance ``1 - F`` from the memory is above a threshold (Savinov et al. 2019, 2.1).

    ``F = percentile of C(x, m) over the memory``. A new molecule enters the memory and keeps its score, with the bonus
    ``alpha (1 - F)`` in units of the oracle's scale; any other has the lowest score so far. With the highest
    similarity for ``F`` and no limit of the memory, the memory is the list of leaders of sphere exclusion
    (RDKit's ``LeaderPicker``). A full memory loses a random molecule for each that enters. Molecules met again are
    near themselves, so that no molecule scores twice while it is remembered.

    Args:
        threshold: distance above which a molecule is new, 0 to 1.
        bonus: alpha.
        similarity: ``tanimoto`` of Morgan fingerprints; ``scaffold``: that of Bemis-Murcko scaffolds; ``comparator``:
            the probability that two molecules are at most ``k`` edits apart, learned from walks of random edits.
        percentile: of the similarities, 100 for the highest; the paper's comparator, which errs, has 90.
        capacity: molecules that are remembered.
        episode: molecules after which the memory is emptied, as it is in the paper after each episode; 0 for never.
        k: edits within which the comparator takes molecules for near.
        walks: of random edits, from the generator's molecules or the built-in list's, that the comparator learns from.
    """

    small = MappingProxyType({"capacity": 20, "walks": 4})

    def __init__(
        self,
        *,
        threshold: Annotated[float, Range(0.0, 1.0)] = 0.4,
        bonus: NotNegative = 0.0,
        similarity: Literal["tanimoto", "scaffold", "comparator"] = "tanimoto",
        percentile: Annotated[float, Range(0.0, 100.0)] = 100.0,
        capacity: Count = 10_000,
        episode: Annotated[int, Range(0, 1 << 20)] = 0,
        k: Annotated[int, Range(1, 20)] = 3,
        walks: Count = 300,
    ) -> None:
        self.threshold, self.bonus, self.similarity, self.percentile = threshold, bonus, similarity, percentile
        self.capacity, self.episode, self.k, self.walks = capacity, episode, k, walks

    def begin(self, *args: Any, **how: Any) -> None:
        """Empty the memory; train the comparator where there is one."""
        super().begin(*args, **how)
        self.worst, self.rng = 0.0, random_numbers(self.seed, "memory")
        self.judge: Similarity = self.comparator() if self.similarity == "comparator" else self.fixed()
        self.empty()

    def empty(self) -> None:
        """Forget all molecules."""
        self.memory, self.remembered, self.met = self.judge.describe([]), list[str](), 0

    def fixed(self) -> Tanimoto:
        """The similarity that needs no training."""
        return Tanimoto(of_scaffolds=self.similarity == "scaffold")

    def comparator(self) -> Comparator:
        """The comparator, trained on walks from the generator's molecules."""
        rng = random_numbers(self.seed, "walks")
        if self.generator is None:
            pool = builtin_molecules()
            starts = [pool[row] for row in rng.permutation(len(pool))[: self.walks]]
        else:
            drawn = canonical_smiles(self.generator.sample(2 * self.walks, derive(self.seed, "starts")))
            starts = [molecule.smiles for molecule in drawn if not molecule.reason][: self.walks]
        with torch_settings(None, derive(self.seed, "weights")):
            comparator = Comparator(self.k)
        return comparator.fit(random_walks(starts, 4 * self.k, rng), seed=self.seed)

    def adjust(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """The scores, those of molecules near the memory lowered."""
        out, rows = score.copy(), np.flatnonzero(np.isfinite(score)).tolist()
        self.worst = min([self.worst, *score[rows].tolist()])
        if self.episode and self.met >= self.episode:
            self.empty()
        self.met += len(rows)
        described = self.judge.describe([smiles[row] for row in rows])
        every, texts = np.concatenate([self.memory, described]), [*self.remembered, *(smiles[row] for row in rows)]
        alike, members = self.judge.compare(described, every), [*range(len(self.memory))]
        for i, row in enumerate(rows):
            near = float(np.percentile(alike[i, members], self.percentile)) if members else 0.0
            if members and 1 - near <= self.threshold:
                out[row] = self.worst
                continue
            out[row] += self.bonus * self.scale * (1 - near)
            if len(members) < self.capacity:
                members.append(len(self.memory) + i)
            else:
                members[int(self.rng.integers(self.capacity))] = len(self.memory) + i
        self.memory, self.remembered = every[members], [texts[member] for member in members]
        return out

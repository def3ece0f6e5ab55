"""Plan edits of molecules by Monte Carlo tree search, with a value that is learned from the scores."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.ranges import Count, NotNegative, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.graph_edits import mutate
from molgraph.chem.standardise import standardise_smiles
from molgraph.generate.edit_tree import EditTree
from molgraph.generate.kernel_value import KernelValue
from molgraph.generate.searches.search import Proposals, Search

LONGEST = 5  # times the simulations, where they reach too few new molecules
CROWD = 4  # proposals for each that is asked for


@register(
    "search",
    "mcts",
    summary="tree search over edits of the molecular graph; needs no model",
    paper="Schrittwieser et al. 2020, Nature 588:604; Silver et al. 2018, Science 362:1140",
    systems=(
        SystemCard(
            "muzero",
            left_out="the learned dynamics, which RDKit replaces exactly, and the policy network: the prior over edits "
            "is uniform",
            off="mcts(simulations=30,exploration=0)",
            beside=("random edits",),
            command="molgraph optimise --search 'mcts(simulations=30)' --objective qed -o found.csv",
            modules=("molgraph.generate.edit_tree", "molgraph.generate.kernel_value"),
        ),
    ),
)
class TreeSearch(Search):
    """pUCT in a tree of edits (``molgraph.generate.edit_tree``) whose leaves are valued without a call of the oracle.

    Schrittwieser et al. 2020, appendix B. Each batch runs ``simulations`` in the tree, which grows from one batch to
    the next. A new molecule has the value that is learned from the scores so far (``molgraph.generate.kernel_value``).
    The molecules with the highest values are proposed, and their scores replace the values on all paths to them. The
    root's children are the starts and the best molecules so far, or draws where there are none.

    Args:
        simulations: of a batch.
        depth: edits of a path.
        width: edits that are looked at for each molecule, drawn at random once.
        roots: of the best molecules so far, those that paths begin at, beside the starts.
        exploration: ``c_1`` of pUCT.
        ridge: of the value's regression.
        initial: draws that are scored first; none where there are starts or known molecules.
        max_atoms: heavy atoms of a molecule, at most.
    """

    name = "mcts"
    small = MappingProxyType({"simulations": 30, "width": 6, "initial": 10})

    def __init__(
        self,
        *,
        simulations: Count = 200,
        depth: Annotated[int, Range(1, 100)] = 4,
        width: Annotated[int, Range(1, 1000)] = 12,
        roots: Count = 5,
        exploration: NotNegative = 1.25,
        ridge: Positive = 0.1,
        initial: Annotated[int, Range(2, 100_000)] = 40,
        max_atoms: Annotated[int, Range(3, 500)] = 50,
    ) -> None:
        self.simulations, self.depth, self.width, self.roots = simulations, depth, width, roots
        self.exploration, self.ridge, self.initial, self.max_atoms = exploration, ridge, initial, max_atoms
        self.scores: dict[str, float] = {}

    def begin(self, *args: Any, **how: Any) -> None:
        """As ``Search.begin``."""
        self.scores, self.value = {}, KernelValue(self.ridge)
        self.tree = EditTree(self.edits, self.evaluate, depth=self.depth, exploration=self.exploration)
        super().begin(*args, **how)
        if self.starts or self.n_known:
            self.initial = 0

    def edits(self, smiles: str) -> list[str]:
        """Molecules that are one edit away, at most ``width``; the same each time."""
        rng = generator(self.seed, "edits", smiles)
        made = [mutate(smiles, rng, max_atoms=self.max_atoms) for _ in range(self.width)]
        prepared = standardise_smiles([text for text in made if text], self.standardiser).values
        return [text for text in dict.fromkeys(map(str, filter(None, prepared))) if text != smiles]

    def evaluate(self, smiles: str) -> float:
        """The score of a molecule, or what is predicted of it."""
        score = self.scores.get(smiles)
        return float(self.value([smiles])[0]) if score is None else score

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Keep the scores, and back them up; what has none is as bad as the worst."""
        worst = min(self.scores.values(), default=0.0)
        for text, number in zip(smiles, np.asarray(score, dtype=np.float64).tolist(), strict=True):
            value = number if np.isfinite(number) else worst
            self.scores[text] = value
            self.tree.learn(text, value)

    def ask(self, n: int, step: int) -> Proposals:
        """The new molecules of the tree with the highest values; draws before there are scores."""
        if len(self.scores) < max(self.initial, 1):
            return Proposals(self.draws(n, step), np.zeros(n))
        self.value.fit([*self.scores], [*self.scores.values()])
        best = sorted(self.scores, key=lambda text: -self.scores[text])[: self.roots]
        self.tree.add_roots([*self.starts, *best])
        for done in range(LONGEST * self.simulations):
            if done >= self.simulations and done % 10 == 0 and len(self.candidates()) >= n:
                break
            if self.tree.simulate() is self.tree.root:
                break
        new = self.candidates()
        promise = self.value(new)
        order = np.argsort(-promise, kind="stable")[: CROWD * n]
        return Proposals([new[row] for row in order], promise[order])

    def candidates(self) -> list[str]:
        """Molecules of the tree that have no score."""
        return [text for text in self.tree.nodes if text not in self.scores]

"""Search edits of molecules by Monte Carlo tree search, with a value learned from the scores."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, NotNegative, Positive, Probability, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.graph_edits import draft_edits, finished, mutate
from molgraph.chem.smiles import quiet
from molgraph.chem.standardise import standardise_smiles
from molgraph.generate.edit_plan import Planner
from molgraph.generate.edit_tree import EditTree
from molgraph.generate.kernel_value import KernelValue
from molgraph.generate.searches.search import Proposals, Search
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model

LONGEST = 5  # times the simulations, where they reach too few new molecules
CROWD = 4  # proposals for each that is asked for
DRAFTS = 5  # times the width, edits that a model of edits chooses from


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
            off="'mcts(exploration=0, simulations=30)'",
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

    With ``value``, a model of edits (featuriser ``edit``), ``DRAFTS`` times as many edits are drawn, and those with the
    ``width`` highest predicted changes are built. A new molecule has the score of the one before and the predicted
    change, and in the tree the gains that are planned ``ahead`` of it as well (``molgraph.generate.edit_plan``).

    Args:
        simulations: of a batch.
        depth: edits of a path.
        width: edits that are looked at for each molecule, drawn at random once.
        roots: of the best molecules so far, those that paths begin at, beside the starts.
        exploration: ``c_1`` of pUCT.
        ridge: of the value's regression.
        initial: draws that are scored first; none where there are starts or known molecules.
        max_atoms: heavy atoms of a molecule, at most.
        value: a model that predicts the change of the score by an edit, or its file; none for edits drawn at random.
        ahead: d, edits that are planned with it; 1 for none.
        branch: b, edits of a molecule by which it is planned.
        discount: gamma, of a planned edit.

    Raises:
        UnsupportedError: the model reads no edits.
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
        value: str | Model | None = None,
        ahead: Annotated[int, Range(1, 5)] = 2,
        branch: Annotated[int, Range(1, 100)] = 3,
        discount: Probability = 0.9,
    ) -> None:
        self.simulations, self.depth, self.width, self.roots = simulations, depth, width, roots
        self.exploration, self.ridge, self.initial, self.max_atoms = exploration, ridge, initial, max_atoms
        self.value, self.ahead, self.branch, self.discount = value, ahead, branch, discount
        self.scores: dict[str, float] = {}

    def begin(self, *args: Any, **how: Any) -> None:
        """As ``Search.begin``."""
        self.scores, self.kernel = {}, KernelValue(self.ridge)
        self.before: dict[str, tuple[str, float]] = {}  # the molecule before, and the predicted change
        self.tree = EditTree(self.edits, self.planned, depth=self.depth, exploration=self.exploration)
        self.planner = Planner(lambda _: 0.0, self.drafts, self.rewards, self.build, self.discount, self.branch)
        self.model  # noqa: B018 - a wrong file is refused now
        super().begin(*args, **how)
        if self.starts or self.n_known:
            self.initial = 0

    @cached_property
    def model(self) -> Model | None:
        """The model of edits."""
        if self.value is None:
            return None
        model = self.value if isinstance(self.value, Model) else load_model(Path(self.value))
        model.check_predicts()
        if [kind for kind, _ in model.columns_read] != ["reaction"]:
            hint = "molgraph train EDITS.csv --reaction 'from>>to' -s params.featuriser=edit"
            raise UnsupportedError(f"a {model.kind} that reads no edits is no value of edits", hint=hint)
        return model

    def drafts(self, smiles: str) -> list[tuple[str, Any]]:
        """Edits at random whose products are not built; the same each time."""
        return draft_edits(smiles, DRAFTS * self.width, generator(self.seed, "edits", smiles))

    def rewards(self, smiles: str, drafts: Sequence[tuple[str, Any]]) -> np.ndarray:
        """float64 [k], the change of the score by each edit, as the model predicts it; what it cannot read is last."""
        assert self.model is not None
        changes = self.model.predict([text for text, _ in drafts]).value[:, 0].astype(np.float64)
        return np.where(np.isfinite(changes), changes, -np.inf)

    def build(self, smiles: str, draft: tuple[str, Any]) -> str | None:
        """The product of an edit; None where it is no molecule."""
        with quiet():
            candidate = finished(draft[1], self.max_atoms)
        text = standardise_smiles([candidate], self.standardiser).values[0] if candidate else None
        return str(text) if text and text != smiles else None

    def edits(self, smiles: str) -> list[str]:
        """Molecules that are one edit away, at most ``width``; the same each time."""
        if self.model is not None:
            best = self.planner.best_options(smiles, self.width)
            for reward, text in best:
                self.before.setdefault(text, (smiles, reward))
            return [*dict.fromkeys(text for _, text in best)]
        rng = generator(self.seed, "edits", smiles)
        mutants = [mutate(smiles, rng, max_atoms=self.max_atoms) for _ in range(self.width)]
        prepared = standardise_smiles([text for text in mutants if text], self.standardiser).values
        return [text for text in dict.fromkeys(map(str, filter(None, prepared))) if text != smiles]

    def evaluate(self, smiles: str) -> float:
        """The score of a molecule, or what is predicted of it: that of the one before and the change by the edit."""
        gain, seen = 0.0, set[str]()
        while smiles not in self.scores and smiles in self.before and smiles not in seen:
            seen.add(smiles)
            smiles, reward = self.before[smiles]
            gain += reward
        score = self.scores.get(smiles)
        return gain + (float(self.kernel([smiles])[0]) if score is None else score)

    def planned(self, smiles: str) -> float:
        """The score, or what is predicted, and the gains of the edits that follow as they are planned.

        The rewards of a path add up to the gain of its last molecule, and ``V`` of a molecule is 0: it may be kept.
        """
        if self.model is None or self.ahead == 1:
            return self.evaluate(smiles)
        return self.evaluate(smiles) + max(self.planner.value_of(smiles, self.ahead), 0.0)

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
        self.kernel.fit([*self.scores], [*self.scores.values()])
        best = sorted(self.scores, key=lambda text: -self.scores[text])[: self.roots]
        self.tree.add_roots([*self.starts, *best])
        for done in range(LONGEST * self.simulations):
            if done >= self.simulations and done % 10 == 0 and len(self.candidates()) >= n:
                break
            if self.tree.simulate() is self.tree.root:
                break
        new = self.candidates()
        promise = self.kernel(new) if self.model is None else np.array([self.evaluate(text) for text in new])
        order = np.argsort(-promise, kind="stable")[: CROWD * n]
        return Proposals([new[row] for row in order], promise[order])

    def candidates(self) -> list[str]:
        """Molecules of the tree that have no score."""
        return [text for text in self.tree.nodes if text not in self.scores]

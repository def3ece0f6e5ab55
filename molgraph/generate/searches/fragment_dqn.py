"""Assemble molecules of BRICS fragments by Q-learning."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import Count, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.brics_assembly import attach, binds, brics_fragments, close, closed, heavy_atoms, open_labels
from molgraph.chem.fingerprints import morgan
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.read import read_table
from molgraph.generate.fragment_q import QNetwork, Transition
from molgraph.generate.searches.search import Proposals, Search

BITS = 1024
DRAWS = 300  # molecules whose fragments are taken where no table is named
LEAST = 0.01  # share of random actions at the end


class Place(NamedTuple):
    """A molecule in the making: its SMILES with open positions, and those before each of its attachments."""

    smiles: str
    before: tuple[str, ...]


@register(
    "search",
    "fragment_dqn",
    summary="Q-learning that assembles BRICS fragments of known molecules; needs no model",
    paper="Tang et al. 2022, Biomolecules 12:746; Mnih et al. 2015, Nature 518:529",
    systems=(
        SystemCard(
            "adqn-fbdd",
            left_out="covalent docking and the refinement by hand; rewards of unfinished molecules: a call is spent on "
            "the last molecule of an episode alone",
            off="fragment_dqn(updates=0)",
            beside=("random assembly",),
            command="molgraph optimise --search fragment_dqn --objective qed -o found.csv",
            modules=("molgraph.generate.fragment_q", "molgraph.chem.brics_assembly"),
        ),
    ),
)
class FragmentDQN(Search):
    """Episodes of ``steps`` actions on a molecule with open BRICS positions, chosen by ``Q(s, a)``, or at random.

    Tang et al. 2022, section 2.2: an action adds a fragment, deletes the last one or adds none. A fragment is bound to
    the molecule's first open position by one of its own, where BRICS binds their labels; adding none closes the
    position with hydrogen. Every state is a molecule once its positions are closed. Q reads the state that an action
    leads to: its ECFP4 of 1,024 bits, open positions among its atoms, and the steps left. The reward is the score of
    the molecule at the end, scaled by those so far. Q is learned from replayed episodes
    (``molgraph.generate.fragment_q``); the share of random actions falls from 1 to 0.01 over ``explore`` episodes.

    An episode begins at the largest fragment of one of the starts, without them at any fragment.

    Args:
        fragments: a table of molecules, best known actives, whose fragments are attached; draws if not given.
        steps: actions of an episode.
        explore: episodes after which actions are random no more often than 0.01.
        choices: attachments among which each step chooses, drawn at random.
        updates: of the network for each molecule that was scored.
        gamma: discount of a step.
        width: of the network's hidden layers.
        most: fragments, the most frequent ones.
        max_atoms: heavy atoms of a molecule, at most.

    Raises:
        BadValueError: the table has no BRICS fragments with open positions.
    """

    name = "fragment_dqn"
    small = MappingProxyType({"steps": 3, "choices": 6, "updates": 1, "width": 8, "most": 60})
    batch_size = 10
    chooses = False

    def __init__(
        self,
        *,
        fragments: str = "",
        steps: Annotated[int, Range(1, 100)] = 8,
        explore: Count = 100,
        choices: Count = 16,
        updates: Annotated[int, Range(0, 10_000)] = 8,
        gamma: Probability = 1.0,
        width: Width = 128,
        most: Annotated[int, Range(2, 10_000)] = 200,
        max_atoms: Annotated[int, Range(3, 500)] = 50,
    ) -> None:
        self.fragments, self.steps, self.explore, self.choices = fragments, steps, explore, choices
        self.updates, self.gamma, self.width, self.most, self.max_atoms = updates, gamma, width, most, max_atoms

    def begin(self, *args: Any, **how: Any) -> None:
        """As ``Search.begin``; takes the molecules of the table apart."""
        self.played, self.episodes = 0, defaultdict[str, list[list[Transition]]](list)
        self.bits: dict[str, np.ndarray] = {}
        self.fresh, self.low, self.high = 0, np.inf, -np.inf
        super().begin(*args, **how)
        named = read_table(Path(self.fragments)).smiles if self.fragments else self.draws(DRAWS, 0)
        texts = [str(text) for text in named]
        self.library = brics_fragments(texts, self.most)
        if not self.library:
            words = f"the molecules of {self.fragments or 'the draws'} have no BRICS fragments"
            raise BadValueError(words, hint="name a table of larger molecules: fragments=actives.smi")
        self.actions = [(text, place) for text in self.library for place in range(len(open_labels(text)))]
        self.label = np.array([open_labels(text)[place] for text, place in self.actions])
        fragments = [max(parts, key=heavy_atoms) for text in self.starts if (parts := brics_fragments([text]))]
        self.first = fragments or self.library
        self.q = QNetwork(BITS + self.steps, gamma=self.gamma, width=self.width, seed=derive(self.seed, "network"))

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Keep the episodes that ended at these molecules, with their rewards."""
        known = np.asarray(score, dtype=np.float64)[np.isfinite(score)]
        if len(known):
            self.low, self.high = min(self.low, float(known.min())), max(self.high, float(known.max()))
        width = self.high - self.low if self.high > self.low else 1.0
        for text, number in zip(smiles, np.asarray(score, dtype=np.float64).tolist(), strict=True):
            reward = (number - self.low) / width if np.isfinite(number) else 0.0
            for episode in self.episodes.pop(text, ()):
                self.q.add([*episode[:-1], episode[-1]._replace(reward=reward)])
                self.fresh += 1

    def ask(self, n: int, step: int) -> Proposals:
        """The last molecules of ``n`` episodes, after learning from those before."""
        self.q.learn(self.updates * self.fresh, step)
        self.fresh = 0
        rng, texts = generator(self.seed, self.name, step), list[str]()
        self.episodes.clear()
        while len(texts) < n:
            text, episode = self.play(rng)
            (text,) = map(str, standardise_smiles([text], self.standardiser).values)
            self.episodes[text].append(episode)
            texts.append(text)
            self.played += 1
        return Proposals(texts, np.zeros(n))

    def play(self, rng: np.random.Generator) -> tuple[str, list[Transition]]:
        """An episode: its last molecule and its transitions, without a reward."""
        place, episode = Place(self.first[rng.integers(len(self.first))], ()), list[Transition]()
        random = max(LEAST, 1 - self.played / self.explore) if self.updates else 1.0
        nexts = self.nexts(place, rng)
        for left in reversed(range(self.steps)):
            states = self.features(nexts, left)
            chosen = int(rng.integers(len(nexts)) if rng.random() < random else self.q.values(states).argmax())
            place = nexts[chosen]
            nexts = self.nexts(place, rng) if left else []
            episode.append(Transition(states[chosen], 0.0, self.features(nexts, left - 1)))
        return closed(place.smiles), episode

    def features(self, places: Sequence[Place], left: int) -> np.ndarray:
        """uint8 [n, BITS + steps]: fingerprints, and as many ones as steps are left."""
        for text in {one.smiles for one in places} - {*self.bits}:
            self.bits[text] = morgan([text], n_bits=BITS).x[0]
        out = np.zeros((len(places), BITS + self.steps), np.uint8)
        for row, one in enumerate(places):
            out[row, :BITS] = self.bits[one.smiles]
        out[:, BITS : BITS + max(left, 0)] = 1
        return out

    def nexts(self, place: Place, rng: np.random.Generator) -> list[Place]:
        """The states that actions lead to: closing, deleting, and ``choices`` attachments at most."""
        labels = open_labels(place.smiles)
        shut = (close(place.smiles) or place.smiles) if labels else place.smiles
        out = [Place(shut, place.before), *([Place(place.before[-1], place.before[:-1])] if place.before else [])]
        if labels:
            able = np.flatnonzero([binds(labels[0], int(label)) for label in self.label])
            for row in rng.permutation(able)[: self.choices]:
                smiles = attach(place.smiles, *self.actions[row])
                if smiles and heavy_atoms(smiles) <= self.max_atoms:
                    out.append(Place(smiles, (*place.before, place.smiles)))
        return out

"""Decode latent vectors to junction trees, all of a batch step by step together, each with a way to put it together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.chem.fragments.assembly import Assembly
from molgraph.chem.fragments.vocabulary import Vocabulary
from molgraph.models.jtvae.network import JTVAENetwork

LABELS_TRIED = 20  # for a new node, before its parent is taken to have no further child


@dataclass(frozen=True)
class Limits:
    """What bounds the decoding of a molecule.

    Args:
        nodes, atoms: of a molecule.
        attempts: attachments that a search for another way to put it together may make.
        seconds: after which the trees of a batch grow no more, and are put together in the way that is known.
    """

    nodes: int = 80
    atoms: int = 100
    attempts: int = 300
    seconds: float = 60.0


@dataclass
class DrawnTree:
    """A tree as it is drawn.

    Args:
        rng: of this molecule alone.
        codes, parent: of its nodes.
        made: one way to put it together; without the check of chemistry there may be none, and it ends early.
        path: the nodes from the root to where the walk is.
    """

    rng: np.random.Generator
    codes: list[int]
    parent: list[int]
    made: Assembly
    path: list[int] = field(default_factory=lambda: [0])

    def grow(self, code: int) -> None:
        """Add a child to the node where the walk is, and go there."""
        self.codes.append(code)
        self.parent.append(self.path[-1])
        self.path.append(len(self.codes) - 1)


class TreeDecoder:
    """Draws trees.

    Args:
        network: trained.
        vocabulary: of its labels.
        temperature: of each decision.
        check: take only labels that can be attached without giving an atom too many bonds.
        limits: of a molecule.
    """

    def __init__(
        self, network: JTVAENetwork, vocabulary: Vocabulary, *, temperature: float, check: bool, limits: Limits
    ) -> None:
        self.network, self.vocabulary = network, vocabulary
        self.temperature, self.check, self.limits = temperature, check, limits
        self._compatible: dict[int, np.ndarray] = {}
        codes = torch.arange(len(vocabulary), device=network.embedding.weight.device)
        self.x = network.embedding(codes)
        self.inputs = network.tree_decoder.inputs(self.x)

    def decode(self, z_tree: Float[Tensor, "n half"], rngs: Sequence[np.random.Generator]) -> list[DrawnTree]:
        """A tree for each row of float [n, d_half]."""
        self.until = time.monotonic() + self.limits.seconds
        network, gru, d = self.network, self.network.tree_decoder, self.x.shape[1]
        n, device = len(z_tree), z_tree.device
        scores = network.label_scores(z_tree.new_zeros(n, d), z_tree, torch.arange(n, device=device))
        trees = []
        for rng, row in zip(rngs, self._likely(scores), strict=True):
            code = drawn(row, rng)
            trees.append(DrawnTree(rng, [code], [-1], Assembly(self.vocabulary.labels[code])))
        depth = 8
        state = z_tree.new_zeros(
            n, depth, 4, d
        )  # of each node on the path: from its parent, gated, from children, gated
        active = list(range(n))
        while active:
            deepest = max(len(trees[k].path) for k in active)
            if deepest >= depth:
                state = torch.cat([state, torch.zeros_like(state)], dim=1)
                depth *= 2
            rows = torch.tensor(active, device=device)
            level = torch.tensor([len(trees[k].path) - 1 for k in active], device=device)
            ids = torch.tensor([trees[k].codes[trees[k].path[-1]] for k in active], device=device)
            here = state[rows, level]
            expand = network.expand_scores(self.x[ids], here[:, 0] + here[:, 2], z_tree, rows)
            chance = torch.sigmoid(expand.double() / self.temperature).cpu().numpy()
            grows = np.array(
                [self._may_grow(trees[k]) and trees[k].rng.random() < p for k, p in zip(active, chance, strict=True)]
            )
            if grows.any():
                mine = torch.from_numpy(np.flatnonzero(grows)).to(device)
                sent = gru.update(
                    self.inputs[ids[mine]], torch.cat([here[mine, 0] + here[mine, 2], here[mine, 1] + here[mine, 3]], 1)
                )
                likely = self._likely(network.label_scores(sent, z_tree, rows[mine]))
                for j, i in enumerate(mine.tolist()):
                    grows[i] = self._add_child(trees[active[i]], likely[j])
                kept = torch.from_numpy(grows[mine.cpu().numpy()]).to(device)
                mine, sent = mine[kept], sent[kept]
                child = torch.tensor(
                    [trees[active[i]].codes[-1] for i in mine.tolist()], device=device, dtype=torch.int64
                )
                heard = gru.heard(sent, self.inputs[child])
                state[rows[mine], level[mine] + 1] = torch.stack([sent, heard[:, d:], *[torch.zeros_like(sent)] * 2], 1)
            back = torch.from_numpy(np.flatnonzero(~grows & (level.cpu().numpy() > 0))).to(device)
            if len(back):
                sent = gru.update(self.inputs[ids[back]], torch.cat([here[back, 2], here[back, 3]], 1))
                above = torch.tensor(
                    [trees[active[i]].codes[trees[active[i]].path[-2]] for i in back.tolist()], device=device
                )
                heard = gru.heard(sent, self.inputs[above])
                state[rows[back], level[back] - 1, 2:] += torch.stack([sent, heard[:, d:]], 1)
            for k, grown in zip(active, grows, strict=True):
                if not grown:
                    trees[k].path.pop()
            active = [k for k in active if trees[k].path]
        return trees

    def _may_grow(self, tree: DrawnTree) -> bool:
        small = len(tree.codes) < self.limits.nodes and len(tree.made.types) < self.limits.atoms
        return small and time.monotonic() < self.until

    def _likely(self, scores: Tensor) -> np.ndarray:
        """float64 [n, labels]: chances of the labels."""
        return (scores.double() / self.temperature).softmax(dim=1).cpu().numpy()

    def _add_child(self, tree: DrawnTree, likely: np.ndarray) -> bool:
        """Draw the label of a new child of the node where the walk is; False where none fits."""
        node = tree.path[-1]
        if not self.check:
            tree.grow(drawn(likely, tree.rng))
            return True
        likely = likely * self._fitting(tree.codes[node])
        for _ in range(LABELS_TRIED):
            if likely.sum() <= 0:
                return False
            code = drawn(likely, tree.rng)
            label = self.vocabulary.labels[code]
            if ways := tree.made.overlaps(node, label, longest=self.vocabulary.longest):
                tree.made.attach(node, label, ways[-1])  # two rings rather share a bond than an atom
                tree.grow(code)
                return True
            likely[code] = 0
        return False

    def _fitting(self, code: int) -> np.ndarray:
        """bool [labels]: those that have a type of atom in common with a label."""
        if code not in self._compatible:
            atoms = {*self.vocabulary.labels[code].atoms}
            self._compatible[code] = np.array([not atoms.isdisjoint(label.atoms) for label in self.vocabulary.labels])
        return self._compatible[code]


def drawn(likely: np.ndarray, rng: np.random.Generator) -> int:
    """The place of one of some chances, which need not sum to 1."""
    upto = likely.cumsum()
    return int(np.searchsorted(upto, rng.random() * upto[-1], side="right").clip(max=len(likely) - 1))

"""The surroundings of an attachment as small graphs, each distinct one once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from molgraph.base.packed import offsets_of
from molgraph.chem.fragments.assembly import Assembly
from molgraph.chem.fragments.atom_types import MOST_BONDS, AtomType
from molgraph.chem.fragments.cluster_label import ClusterLabel
from molgraph.chem.fragments.junction_tree import Overlap
from molgraph.chem.fragments.vocabulary import Vocabulary
from molgraph.data.batch import BatchLevel, GraphBatch
from molgraph.data.graph_store import GraphStore, InputSpec, Level
from molgraph.data.table import OK

PARENT, CHILD, SHARED, OTHER = range(4)  # where an atom is: in the node, in the new cluster, in both, in neighbours
ROUNDS = 6  # of messages that two graphs have to look alike for
D_BOND = 3
_MASK = (1 << 61) - 1


class AttachmentGraphs:
    """The graphs of candidate attachments, numbered; a graph that looks like an earlier one has its number.

    A candidate's graph has the atoms of the node, those of the neighbours that it has so far, and those of the new
    cluster at its place. Features: the atom's type among those of the vocabulary, which cluster it is in, and the bonds
    that it has in the whole molecule so far.

    Args:
        vocabulary: of the clusters.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        kinds = sorted({kind for label in vocabulary.labels for kind in label.atoms})
        self.kinds: dict[AtomType, int] = {kind: k for k, kind in enumerate(kinds)}
        self.spec = InputSpec(
            "attachments.1", {"atom": len(kinds) + 4 + MOST_BONDS + 1, "bond": D_BOND}, {"bond.reverse": ()}
        )
        self._of_signature: dict[tuple, int] = {}
        self._of_hash: dict[int, int] = {}
        self._atoms: list[np.ndarray] = []  # codes of each graph's atoms
        self._bonds: list[np.ndarray] = []  # [bonds, 3]: source, target, order; sorted by target, then source

    def __len__(self) -> int:
        return len(self._atoms)

    def clear(self) -> None:
        """Forget all graphs; their numbers mean nothing then."""
        for kept in (self._of_signature, self._of_hash, self._atoms, self._bonds):
            kept.clear()

    def to_store(self) -> GraphStore:
        """The graphs and their hashes, which ``from_store`` takes."""
        atoms, bonds = (offsets_of([len(array) for array in kept]) for kept in (self._atoms, self._bonds))
        levels = {
            "atom": Level(atoms, {"code": np.concatenate([np.zeros(0, np.int64), *self._atoms])}),
            "bond": Level(bonds, {"row": np.concatenate([np.zeros((0, 4), np.int64), *self._bonds])}),
        }
        status, reason = np.full(len(self), OK, object), np.full(len(self), "", object)
        hashes = np.array([*self._of_hash], np.int64)
        return GraphStore(levels, {}, status, reason, self.spec.featuriser, {"hash": hashes})

    @classmethod
    def from_store(cls, vocabulary: Vocabulary, store: GraphStore) -> AttachmentGraphs:
        """The graphs under the numbers that they had."""
        graphs, atom, bond = cls(vocabulary), store.levels["atom"], store.levels["bond"]
        graphs._atoms = np.split(atom.arrays["code"], atom.offsets[1:-1])[: len(store)]
        graphs._bonds = np.split(bond.arrays["row"], bond.offsets[1:-1])[: len(store)]
        graphs._of_hash = {digest: k for k, digest in enumerate(store.extra["hash"].tolist())}
        return graphs

    def number(self, made: Assembly, parent: int, label: ClusterLabel, overlap: Overlap) -> int:
        """The number of the graph of an attachment that is not made yet."""
        parent_label, atoms = made.labels[parent], made.atoms[parent]
        near = tuple(sorted((neighbour.key, places) for neighbour, places, _ in _neighbours(made, parent)))
        used = tuple(made.used[atom] for atom in atoms)
        signature = (parent_label.key, label.key, overlap, near, used)
        if (number := self._of_signature.get(signature)) is None:
            code, bonds = self._graph(made, parent, label, overlap)
            digest = _digest(code, bonds)
            if (number := self._of_hash.get(digest)) is None:
                number = self._of_hash[digest] = len(self._atoms)
                self._add(code, bonds)
            self._of_signature[signature] = number
        return number

    def collate(self, numbers: np.ndarray) -> GraphBatch:
        """The graphs of those numbers side by side."""
        atoms, bonds = [self._atoms[k] for k in numbers], [self._bonds[k] for k in numbers]
        first = offsets_of([len(array) for array in atoms])
        joined = np.concatenate([np.zeros((0, 4), np.int64), *bonds])
        shift = np.repeat(first[:-1], [len(array) for array in bonds])
        starts = offsets_of([len(array) for array in bonds])
        put = torch.from_numpy
        bond = {
            "source": put(joined[:, 0] + shift),
            "target": put(joined[:, 1] + shift),
            "reverse": put(joined[:, 3] + np.repeat(starts[:-1], np.diff(starts))),
            "code": put(joined[:, 2] - 1),
        }
        code = np.concatenate([np.zeros(0, np.int64), *atoms])
        codes, code = np.unique(code, return_inverse=True)
        levels = {
            "atom": BatchLevel(put(first), {"code": put(code)}, self._features(codes)),
            "bond": BatchLevel(put(starts), bond, torch.eye(D_BOND)),
        }
        return GraphBatch(len(numbers), levels)

    def _features(self, codes: np.ndarray) -> torch.Tensor:
        """Feature rows of atoms' codes."""
        kind, place = np.divmod(codes, 4 * (MOST_BONDS + 1))
        where, used = np.divmod(place, MOST_BONDS + 1)
        out = np.zeros((len(codes), self.spec.width("atom")), np.float32)
        rows = np.arange(len(codes))
        out[rows, kind] = 1
        out[rows, len(self.kinds) + where] = 1
        out[rows, len(self.kinds) + 4 + used] = 1
        return torch.from_numpy(out)

    def _graph(
        self, made: Assembly, parent: int, label: ClusterLabel, overlap: Overlap
    ) -> tuple[list[int], dict[tuple[int, int], int]]:
        """Codes of the atoms, and orders of the bonds, of a candidate's graph."""
        atoms = made.atoms[parent]
        place = {atom: k for k, atom in enumerate(atoms)}
        where, kinds = [PARENT] * len(atoms), list(made.labels[parent].atoms)
        used = [min(made.used[atom], MOST_BONDS) for atom in atoms]
        bonds = {(i, j): order for i, j, order in made.labels[parent].bonds}
        clusters = [(cluster, held, OTHER) for cluster, _, held in _neighbours(made, parent)]
        shared = {p: atoms[a] for a, p in overlap}
        clusters.append((label, tuple(shared.get(p, -1 - p) for p in range(len(label))), CHILD))
        for cluster, held, mark in clusters:
            for p, atom in enumerate(held):
                if atom not in place:
                    place[atom] = len(kinds)
                    kinds.append(cluster.atoms[p])
                    where.append(mark)
                    used.append(0)
                elif mark == CHILD:
                    where[place[atom]] = SHARED
            for i, j, order in cluster.bonds:
                a, b = place[held[i]], place[held[j]]
                bonds[min(a, b), max(a, b)] = order
        base = 4 * (MOST_BONDS + 1)
        code = [
            self.kinds[kind] * base + mark * (MOST_BONDS + 1) + n
            for kind, mark, n in zip(kinds, where, used, strict=True)
        ]
        return code, bonds

    def _add(self, code: Sequence[int], bonds: dict[tuple[int, int], int]) -> None:
        both = sorted((j, i, order) for (a, b), order in bonds.items() for i, j in ((a, b), (b, a)))
        number = {(i, j): k for k, (j, i, _) in enumerate(both)}
        rows = [(i, j, order, number[j, i]) for j, i, order in both]
        self._atoms.append(np.array(code, np.int64))
        self._bonds.append(np.array(rows, np.int64).reshape(-1, 4))


def _neighbours(made: Assembly, node: int) -> list[tuple[ClusterLabel, Overlap, tuple[int, ...]]]:
    """The label of each neighbour that a node has so far, the atoms that they share, and the neighbour's atoms."""
    atoms = {atom: place for place, atom in enumerate(made.atoms[node])}
    out = []
    for other in made.near[node]:
        held = made.atoms[other]
        out.append((made.labels[other], tuple((atoms[a], p) for p, a in enumerate(held) if a in atoms), held))
    return out


def _digest(code: Sequence[int], bonds: dict[tuple[int, int], int]) -> int:
    """A hash that graphs share which messages along bonds cannot tell apart."""
    near: list[list[tuple[int, int]]] = [[] for _ in code]
    for (i, j), order in bonds.items():
        near[i].append((j, order))
        near[j].append((i, order))
    colour = [_mixed(element + 1) for element in code]
    for _ in range(ROUNDS):
        colour = [
            _mixed(3 * value + sum(_mixed(colour[j] * 4 + order) for j, order in near[k]))
            for k, value in enumerate(colour)
        ]  # fmt: skip
    return _mixed(sum(map(_mixed, colour)) + len(code))


def _mixed(x: int) -> int:
    x = (x * 0x9E3779B97F4A7C15 + 0x7F4A7C15) & ((1 << 64) - 1)
    x ^= x >> 29
    return (x * 0xBF58476D1CE4E5B9 ^ (x >> 32)) & _MASK

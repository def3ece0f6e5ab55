"""Build the vocabulary of junction-tree clusters of a corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from molgraph.chem.fragments.atom_types import AtomType, most_bonds
from molgraph.chem.fragments.cluster_label import LARGEST, ClusterLabel, canonical_label, sorted_bonds
from molgraph.chem.fragments.junction_tree import Decomposed, decompose
from molgraph.chem.organic import is_doubtful, why_no_molecule
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

MOST_LABELS = 100_000
_ELEMENTS, _CHARGES, _HYDROGENS, _ISOTOPES = range(1, 119), range(-8, 9), range(-1, 9), range(400)


@dataclass(frozen=True)
class Vocabulary:
    """Cluster labels, the most frequent first.

    Args:
        labels: distinct.
        counts: how often each occurs in the corpus.
        longest: atoms that two neighbouring rings share at most.

    Example:
        >>> trees, vocabulary = read_corpus(["CCO", "CO"])
        >>> len(vocabulary), vocabulary.counts, len(trees[0].tree)
        (2, (2, 1), 2)
    """

    labels: tuple[ClusterLabel, ...]
    counts: tuple[int, ...]
    longest: int = 2

    def __len__(self) -> int:
        return len(self.labels)

    @cached_property
    def code(self) -> dict[ClusterLabel, int]:
        """The place of each label."""
        return {label: k for k, label in enumerate(self.labels)}

    @cached_property
    def keys(self) -> frozenset[str]:
        """Hashes of the labels."""
        return frozenset(label.key for label in self.labels)

    def trees(self, smiles: Sequence[str], *, workers: int | None = None) -> list[Decomposed]:
        """The junction tree of each SMILES, or the reason why it has none with these labels."""
        results = _decomposed(smiles, None, workers)
        outside = [k for k, result in enumerate(results) if self._reason(result)]
        broken = _decomposed([smiles[k] for k in outside], self.keys, workers)
        for k, result in zip(outside, broken, strict=True):
            reason = self._reason(result)
            results[k] = Decomposed(None, reason) if reason else result
        return results

    def _reason(self, found: Decomposed) -> str:
        if found.tree is None:
            return found.reason
        unknown = [label for label in found.tree.labels if label not in self.code]
        if unknown:
            return f"outside the vocabulary: {described(unknown[0])}"
        if any(len(overlap) > self.longest for overlap in found.tree.overlaps):
            return "outside the vocabulary: rings that share more atoms than any of the corpus"
        return ""

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        labels = [[[list(kind) for kind in item.atoms], [list(bond) for bond in item.bonds]] for item in self.labels]
        return {"labels": labels, "counts": list(self.counts), "longest": self.longest}

    @classmethod
    def from_json(cls, values: Any) -> Vocabulary:
        """From plain values that anybody may have written; what is no vocabulary raises ``ValueError`` or the like."""
        items = values["labels"]
        if not 0 < len(items) <= MOST_LABELS:
            raise ValueError(f"a vocabulary of {len(items):,} clusters")
        labels = tuple(_label(*item) for item in items)
        counts, longest = tuple(int(n) for n in values["counts"]), int(values["longest"])
        if len({*labels}) != len(labels) or len(counts) != len(labels) or not 2 <= longest <= LARGEST:
            raise ValueError("labels that are not distinct, or not a count for each")
        return cls(labels, counts, longest)


def read_corpus(
    smiles: Sequence[str], *, min_count: int = 1, workers: int | None = None
) -> tuple[list[Decomposed], Vocabulary]:
    """Decompose the molecules of a corpus, and count their clusters.

    Args:
        smiles: one a molecule.
        min_count: clusters that occur less often are left out of the vocabulary: rings that share more than a bond
            are taken one by one where all of them are known; other molecules with such clusters have no tree.
        workers: processes; those of the machine if not given.

    Returns:
        The tree of each molecule, or a reason, and the vocabulary of those trees.
    """
    trees = _decomposed(smiles, None, workers)
    if min_count > 1:
        counts = _counted(trees)
        common = {label.key for label, n in counts.items() if n >= min_count}
        rare = [k for k, item in enumerate(trees) if item.tree and any(x.key not in common for x in item.tree.labels)]
        for k, item in zip(rare, _decomposed([smiles[k] for k in rare], common, workers), strict=True):
            left = [] if item.tree is None else [x for x in item.tree.labels if x.key not in common]
            trees[k] = Decomposed(None, f"a rare cluster: {described(left[0])}") if left else item
    counts = _counted(trees)
    labels = sorted(counts, key=lambda label: (-counts[label], label.key))
    overlaps = [len(overlap) for item in trees if item.tree for overlap in item.tree.overlaps]
    return trees, Vocabulary(tuple(labels), tuple(counts[x] for x in labels), max([2, *overlaps]))


def described(label: ClusterLabel) -> str:
    """A label in words, for messages.

    Example:
        >>> described(canonical_label((AtomType(6), AtomType(8)), ((0, 1, 2),))[0])
        'a bond C=O'
    """
    from molgraph.chem.fragments.assembly import Assembly

    kind = "a ring" if label.is_ring else "a bond" if len(label) == 2 else "an atom"
    return f"{kind} {Assembly(label).smiles() or label.key}"


def _decomposed(smiles: Sequence[str], known: Collection[str] | None, workers: int | None) -> list[Decomposed]:
    label = "junction trees" if len(smiles) > 1000 else ""
    return map_molecules(partial(_tree, known), smiles, _refused, label=label, workers=workers)


def _tree(known: Collection[str] | None, text: str) -> Decomposed:
    mol, reason = parse_smiles(text)
    if mol is not None and is_doubtful(text):
        reason = why_no_molecule(mol)
    return Decomposed(None, reason) if mol is None or reason else decompose(mol, known)


def _refused(_: str, reason: str) -> Decomposed:
    return Decomposed(None, reason)


def _counted(found: Iterable[Decomposed]) -> Counter[ClusterLabel]:
    return Counter(label for item in found if item.tree for label in item.tree.labels)


def _label(atoms: Sequence[Sequence[int]], bonds: Sequence[Sequence[int]]) -> ClusterLabel:
    """A label of a file; ``ValueError`` where it is none in canonical order."""
    if not 0 < len(atoms) <= LARGEST or len(bonds) > 2 * LARGEST:
        raise ValueError("a cluster that is too large")
    kinds = tuple(AtomType(*map(int, kind)) for kind in atoms)
    ranges = (_ELEMENTS, _CHARGES, _HYDROGENS, _ISOTOPES)
    if any(value not in range_ for kind in kinds for value, range_ in zip(kind, ranges, strict=True)):
        raise ValueError("an atom that there is none of")
    pairs = sorted_bonds((int(i), int(j), int(order)) for i, j, order in bonds)
    if any(not 0 <= i < j < len(kinds) or order not in (1, 2, 3) for i, j, order in pairs):
        raise ValueError("a bond that there is none of")
    label = canonical_label(kinds, pairs)[0]
    if (label.atoms, label.bonds) != (kinds, pairs) or any(
        n > most_bonds(kind) for n, kind in zip(label.valence, kinds, strict=True)
    ):
        raise ValueError("a cluster that is not in canonical order, or an atom with too many bonds")
    return label

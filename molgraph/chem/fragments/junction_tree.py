"""Split a molecule into the clusters of its junction tree: rings, bonds outside rings, and atoms where bonds branch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.fragments.atom_ranks import canonical_order
from molgraph.chem.fragments.atom_types import ORDERS, AtomType, atom_types
from molgraph.chem.fragments.cluster_label import ClusterLabel, canonical_label, sorted_bonds

Overlap = tuple[tuple[int, int], ...]  # (place in the parent's label, place in the child's), sorted
MOST_ATOMS = 400


@dataclass(frozen=True)
class JunctionTree:
    """The clusters of a molecule as a rooted tree, parents before children, each subtree in one piece.

    Args:
        labels: the label of each node.
        parent: the parent of each node; -1 for the first, the root.
        overlaps: the atoms that each node shares with its parent; none for the root.
        atoms: the atoms of the molecule at each place of each node's label, as ``decompose`` numbered them.
        n_atoms: of the molecule.
    """

    labels: tuple[ClusterLabel, ...]
    parent: tuple[int, ...]
    overlaps: tuple[Overlap, ...]
    atoms: tuple[tuple[int, ...], ...]
    n_atoms: int

    def __len__(self) -> int:
        return len(self.labels)


class Decomposed(NamedTuple):
    """A junction tree, or the reason why a molecule has none."""

    tree: JunctionTree | None
    reason: str = ""


def decompose(mol: Chem.Mol, known: Collection[str] | None = None) -> Decomposed:
    """The junction tree of a molecule, stereochemistry left out (Jin et al. 2018, section 2.1).

    Clusters are rings, where rings that share more than a bond are one; bonds outside rings; and single atoms where
    at least three clusters meet, two of them bonds. The tree is a maximum spanning tree of the clusters by the number
    of shared atoms, in which the clusters of each atom are connected; rings for which there is no such tree are one
    cluster too. Bonds have the orders of a Kekulé structure.

    Args:
        mol: sanitised, its hydrogens implicit.
        known: keys of labels; of rings whose joint label is not among them the single rings are taken where those
            are, if there is a tree of them.
    """
    if reason := why_not(mol):
        return Decomposed(None, reason)
    mol = Chem.Mol(mol)
    Chem.RemoveStereochemistry(mol)
    mol = Chem.RenumberAtoms(mol, canonical_order(mol))
    rings = [{*ring} for ring in mol.GetRingInfo().AtomRings()]
    Chem.Kekulize(mol, clearAromaticFlags=True)
    graph = _Graph(mol, atom_types(mol))
    try:
        return Decomposed(graph.tree(graph.clusters(rings, known)))
    except ValueError as error:
        return Decomposed(None, str(error))


def why_not(mol: Chem.Mol) -> str:
    """Why a molecule has no junction tree; empty where it may have one."""
    if not 0 < mol.GetNumAtoms() <= MOST_ATOMS:
        return f"{mol.GetNumAtoms():,} atoms, where 1 to {MOST_ATOMS} have a junction tree"
    if len(Chem.GetMolFrags(mol)) > 1:
        return "several molecules in one (a salt or mixture): take one with --standardise desalt"
    if any(not atom.GetAtomicNum() for atom in mol.GetAtoms()):
        return "a dummy atom"
    odd = {str(b.GetBondType()) for b in mol.GetBonds() if b.GetBondType() not in ORDERS and not b.GetIsAromatic()}
    return f"a bond of the kind {min(odd).lower()}" if odd else ""


class _Graph:
    """A kekulised molecule as lists."""

    def __init__(self, mol: Chem.Mol, types: list[AtomType]) -> None:
        self.types = types
        self.order: dict[tuple[int, int], int] = {}
        self.ring_bonds: set[tuple[int, int]] = set()
        for bond in mol.GetBonds():
            i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
            pair = (i, j) if i < j else (j, i)
            self.order[pair] = ORDERS[bond.GetBondType()]
            if bond.IsInRing():
                self.ring_bonds.add(pair)

    def clusters(self, rings: Sequence[set[int]], known: Collection[str] | None) -> list[tuple[int, ...]]:
        """Atoms of each cluster."""
        bonds = [pair for pair in self.order if pair not in self.ring_bonds]
        merged = []
        for members in self._systems(rings):
            whole = [*{frozenset(atoms) for atoms in _merged([rings[k] for k in members], self.order)}]
            if known is not None:
                whole = self._broken(whole, [rings[k] for k in members], known)
            merged += whole
        clusters = [tuple(sorted(ring)) for ring in merged] + bonds
        if not clusters:
            return [(0,)]
        at: list[list[int]] = [[] for _ in self.types]
        for k, cluster in enumerate(clusters):
            for atom in cluster:
                at[atom].append(k)
        n_rings = len(merged)
        branching = [
            (atom,)
            for atom, held in enumerate(at)
            if len(held) > 2 and sum(k >= n_rings for k in held) >= 2
        ]  # fmt: skip
        return clusters + branching

    def _systems(self, rings: Sequence[set[int]]) -> list[list[int]]:
        """Numbers of the rings that share atoms, directly or through others."""
        systems: list[tuple[set[int], list[int]]] = []
        for k, ring in enumerate(rings):
            touching = [s for s in systems if s[0] & ring]
            systems = [s for s in systems if not s[0] & ring]
            systems.append((ring.union(*(s[0] for s in touching)), [k, *(n for s in touching for n in s[1])]))
        return [members for _, members in systems]

    def _broken(
        self, whole: list[frozenset[int]], rings: list[set[int]], known: Collection[str]
    ) -> list[frozenset[int]]:
        """The clusters of a ring system, those that are not known replaced by their single rings where these are."""
        if len(rings) == len(whole) or all(self.label(tuple(sorted(c)))[0].key in known for c in whole):
            return whole
        single = [frozenset(ring) for ring in rings]
        parts = []
        for cluster in whole:
            inner = [ring for ring in single if ring <= cluster]
            unknown = self.label(tuple(sorted(cluster)))[0].key not in known
            better = unknown and all(self.label(tuple(sorted(ring)))[0].key in known for ring in inner)
            parts += inner if better and _is_junction(inner) else [cluster]
        return parts if _is_junction(parts) else whole

    def label(self, atoms: tuple[int, ...]) -> tuple[ClusterLabel, tuple[int, ...]]:
        """The label of a cluster, and its atoms at the label's places."""
        place = {atom: k for k, atom in enumerate(atoms)}
        bonds = []
        for x, i in enumerate(atoms):
            for j in atoms[x + 1 :]:
                if (i, j) in self.order:
                    bonds.append((place[i], place[j], self.order[i, j]))
        label, places = canonical_label(tuple(self.types[a] for a in atoms), sorted_bonds(bonds))
        return label, tuple(atoms[k] for k in places)

    def tree(self, clusters: list[tuple[int, ...]]) -> JunctionTree:
        """The rooted tree of clusters; the root is the first cluster of the first atom."""
        near = _spanning_tree(clusters)
        root = min(range(len(clusters)), key=lambda k: (min(clusters[k]), -len(clusters[k]), clusters[k]))
        order, parent, waiting = [], [], [(root, -1)]
        while waiting:
            node, above = waiting.pop()
            order.append(node)
            parent.append(above)
            mine = len(order) - 1
            up = -1 if above < 0 else order[above]
            children = sorted((k for k in near[node] if k != up), key=lambda k: (clusters[k], k), reverse=True)
            waiting += [(child, mine) for child in children]
        labels, atoms, overlaps = [], [], []
        for k, node in enumerate(order):
            label, places = self.label(clusters[node])
            labels.append(label)
            atoms.append(places)
            shared: Overlap = ()
            if k:
                above_places = {atom: place for place, atom in enumerate(atoms[parent[k]])}
                shared = tuple(sorted((above_places[a], p) for p, a in enumerate(places) if a in above_places))
            overlaps.append(shared)
        return JunctionTree(tuple(labels), tuple(parent), tuple(overlaps), tuple(atoms), len(self.types))


def _merged(rings: Sequence[set[int]], order: dict[tuple[int, int], int]) -> list[set[int]]:
    """Rings of a system, those that share more than an atom or a bond put together, until they have a junction tree."""
    out = [{*ring} for ring in rings]
    while True:
        pair = next(
            (
                (i, j)
                for i in range(len(out))
                for j in range(i + 1, len(out))
                if _more_than_a_bond(out[i] & out[j], order)
            ),
            None,
        )
        if pair is None:
            torn = _torn_atom(out)
            if torn is None:
                return out
            held = [k for k, ring in enumerate(out) if torn in ring]
            pair = (held[0], held[1])
            for k in held[2:]:
                out[held[1]] |= out[k]
            out = [ring for k, ring in enumerate(out) if k not in held[2:]]
        i, j = pair
        out[i] |= out.pop(j)


def _more_than_a_bond(shared: set[int], order: dict[tuple[int, int], int]) -> bool:
    return len(shared) > 2 or (len(shared) == 2 and tuple(sorted(shared)) not in order)


def _torn_atom(clusters: Sequence[Collection[int]]) -> int | None:
    """An atom whose clusters are not connected in the spanning tree of all; None where there is no such atom."""
    near = _spanning_tree([tuple(sorted(c)) for c in clusters])
    for atom in sorted(set().union(*clusters)):
        held = {k for k, c in enumerate(clusters) if atom in c}
        seen, waiting = set(), [min(held)]
        while waiting:
            k = waiting.pop()
            seen.add(k)
            waiting += [n for n in near[k] if n in held and n not in seen]
        if seen != held:
            return atom
    return None


def _is_junction(clusters: Sequence[Collection[int]]) -> bool:
    return _torn_atom(clusters) is None


def _spanning_tree(clusters: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Neighbours of each cluster in a maximum spanning tree by shared atoms; branching atoms come before other ones."""
    at: dict[int, list[int]] = {}
    for k, cluster in enumerate(clusters):
        for atom in cluster:
            at.setdefault(atom, []).append(k)
    shared: dict[tuple[int, int], int] = {}
    for held in at.values():
        for x, i in enumerate(held):
            for j in held[x + 1 :]:
                shared[i, j] = shared.get((i, j), 0) + 1
    # a branching atom's own cluster goes first among those that share one atom
    edges = sorted(shared, key=lambda e: (-shared[e], min(len(clusters[e[0]]), len(clusters[e[1]])) > 1, e))
    head = [*range(len(clusters))]

    def find(k: int) -> int:
        while head[k] != k:
            head[k] = head[head[k]]
            k = head[k]
        return k

    near: list[list[int]] = [[] for _ in clusters]
    for i, j in edges:
        a, b = find(i), find(j)
        if a != b:
            head[a] = b
            near[i].append(j)
            near[j].append(i)
    return near

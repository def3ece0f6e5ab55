"""Put a molecule together cluster by cluster, and list the ways in which a further cluster can be attached."""

from __future__ import annotations

from functools import cache

from rdkit import Chem

from molgraph.chem.fragments.atom_types import AtomType, make_atom, most_bonds
from molgraph.chem.fragments.cluster_label import ClusterLabel
from molgraph.chem.fragments.junction_tree import JunctionTree, Overlap
from molgraph.chem.smiles import quiet

BOND_TYPES = {1: Chem.BondType.SINGLE, 2: Chem.BondType.DOUBLE, 3: Chem.BondType.TRIPLE}


class Assembly:
    """A molecule that grows by clusters; ``attach`` can be taken back by ``undo``.

    Args:
        root: the label of the first cluster.

    Example:
        >>> from rdkit import Chem
        >>> from molgraph.chem.fragments.junction_tree import decompose
        >>> tree = decompose(Chem.MolFromSmiles("CO")).tree
        >>> Assembly(tree.labels[0]).smiles()
        'CO'
    """

    def __init__(self, root: ClusterLabel) -> None:
        self.types: list[AtomType] = list(root.atoms)
        self.used: list[int] = list(root.valence)  # sum of bond orders of each atom
        self.bonds: list[tuple[int, int, int]] = list(root.bonds)
        self.labels: list[ClusterLabel] = [root]
        self.atoms: list[tuple[int, ...]] = [tuple(range(len(root)))]  # of each node, at its label's places
        self.nodes: list[list[int]] = [[0] for _ in root.atoms]  # that hold each atom
        self.near: list[list[int]] = [[]]  # neighbours of each node
        self._before: list[tuple[int, int, tuple[tuple[int, int], ...]]] = []

    def attach(self, parent: int, label: ClusterLabel, overlap: Overlap) -> int:
        """Add a cluster that shares atoms with a node; the new node's number."""
        held, node = self.atoms[parent], len(self.labels)
        shared = {place: held[above] for above, place in overlap}
        undone = tuple((atom, self.used[atom]) for atom in shared.values())
        self._before.append((len(self.types), len(self.bonds), undone))
        atoms = []
        for place, kind in enumerate(label.atoms):
            if place in shared:
                atoms.append(shared[place])
                self.nodes[shared[place]].append(node)
                continue
            atoms.append(len(self.types))
            self.types.append(kind)
            self.used.append(0)
            self.nodes.append([node])
        for i, j, order in label.bonds:
            if not (i in shared and j in shared):
                self.bonds.append((atoms[i], atoms[j], order))
                self.used[atoms[i]] += order
                self.used[atoms[j]] += order
        self.labels.append(label)
        self.atoms.append(tuple(atoms))
        self.near[parent].append(node)
        self.near.append([parent])
        return node

    def undo(self) -> None:
        """Take the last attachment back."""
        n_atoms, n_bonds, used = self._before.pop()
        for atom in self.atoms.pop():
            if atom < n_atoms:
                self.nodes[atom].pop()
        self.labels.pop()
        self.near[self.near.pop()[0]].pop()
        del self.types[n_atoms:], self.used[n_atoms:], self.nodes[n_atoms:], self.bonds[n_bonds:]
        for atom, value in used:
            self.used[atom] = value

    def overlaps(self, parent: int, label: ClusterLabel, *, longest: int = 2) -> list[Overlap]:
        """The ways to attach a cluster to a node, one of each that the node's own symmetry makes equal.

        Args:
            parent: the node.
            label: of the new cluster.
            longest: atoms that two rings may share.
        """
        parent_label, atoms = self.labels[parent], self.atoms[parent]
        candidates = [match for match in matches(parent_label, label, longest) if self._fits(parent, label, match)]
        if len(candidates) < 2 or len(parent_label.automorphisms) == 1:
            return candidates
        fixed = [place for place, atom in enumerate(atoms) if len(self.nodes[atom]) > 1]
        kept = [moved for moved in parent_label.automorphisms if all(moved[place] == place for place in fixed)]
        if len(kept) == 1:
            return candidates
        out: dict[Overlap, Overlap] = {}
        for overlap in candidates:
            least = min(_least_child(label, tuple((moved[a], p) for a, p in overlap)) for moved in kept)
            out.setdefault(least, overlap)
        return list(out.values())

    def _fits(self, parent: int, label: ClusterLabel, overlap: Overlap) -> bool:
        """Whether the new cluster's atoms have room for its bonds, and the tree would be a junction tree."""
        atoms = self.atoms[parent]
        for (above, place), shared in zip(overlap, _inner_orders(label, overlap), strict=True):
            atom = atoms[above]
            if self.used[atom] + label.valence[place] - shared > most_bonds(self.types[atom]):
                return False
        if len(overlap) > 1:
            return True
        nodes = self.nodes[atoms[overlap[0][0]]]
        branching = [node for node in nodes if len(self.labels[node]) == 1]
        if len(label) == 1:
            return not branching
        if branching:
            return parent in branching
        bonds = sum(len(self.labels[node]) == 2 for node in nodes) + (len(label) == 2)
        return len(nodes) < 2 or bonds < 2

    def mol(self) -> Chem.Mol | None:
        """The molecule as RDKit takes it; None where it does not."""
        mol = Chem.RWMol()
        for kind in self.types:
            mol.AddAtom(make_atom(kind))
        for i, j, order in self.bonds:
            mol.AddBond(i, j, BOND_TYPES[order])
        with quiet():
            failed = Chem.SanitizeMol(mol, catchErrors=True)
        return None if failed != Chem.SanitizeFlags.SANITIZE_NONE else mol.GetMol()

    def smiles(self) -> str:
        """Canonical SMILES; empty where RDKit takes no such molecule."""
        mol = self.mol()
        return "" if mol is None else Chem.MolToSmiles(mol)


def assemble(tree: JunctionTree) -> Assembly:
    """Put a tree together by its own labels and overlaps."""
    assembly = Assembly(tree.labels[0])
    for node in range(1, len(tree)):
        assembly.attach(tree.parent[node], tree.labels[node], tree.overlaps[node])
    return assembly


@cache
def matches(parent: ClusterLabel, child: ClusterLabel, longest: int) -> tuple[Overlap, ...]:
    """The overlaps of two labels: equal atoms, equal bonds between them; the child's symmetry taken out.

    One atom of each; a bond of each, or a path of up to ``longest`` atoms, of two rings.
    """
    overlaps: set[Overlap] = set()
    for a, kind in enumerate(parent.atoms):
        overlaps |= {_least_child(child, ((a, p),)) for p, other in enumerate(child.atoms) if other == kind}
    if parent.is_ring and child.is_ring:
        grown: set[tuple[tuple[int, int], ...]] = {
            ((a, p),) for a, kind in enumerate(parent.atoms) for p, other in enumerate(child.atoms) if other == kind
        }
        for _ in range(1, min(longest, len(parent) - 1, len(child) - 1)):
            grown = {longer for path in grown for longer in _longer(parent, child, path)}
            overlaps |= {_least_child(child, tuple(sorted(path))) for path in grown}
    return tuple(sorted(overlaps, key=lambda each: (len(each), each)))


def _longer(
    parent: ClusterLabel, child: ClusterLabel, path: tuple[tuple[int, int], ...]
) -> list[tuple[tuple[int, int], ...]]:
    """Paths that go on by a bond which both labels have."""
    (a, p), taken, used = path[-1], {a for a, _ in path}, {p for _, p in path}
    return [
        (*path, (b, q))
        for b in range(len(parent))
        for q in range(len(child))
        if b not in taken
        and q not in used
        and parent.atoms[b] == child.atoms[q]
        and (order := parent.order.get((a, b))) is not None
        and child.order.get((p, q)) == order
    ]


def _least_child(child: ClusterLabel, overlap: Overlap) -> Overlap:
    """The least of the overlaps that the child's symmetry makes equal."""
    return min(tuple(sorted((a, moved[p]) for a, p in overlap)) for moved in child.automorphisms)


def _inner_orders(label: ClusterLabel, overlap: Overlap) -> list[int]:
    """For each shared atom, the sum of the orders of its bonds to other shared atoms."""
    if len(overlap) == 1:
        return [0]
    places = [place for _, place in overlap]
    return [sum(label.order.get((p, q), 0) for q in places if q != p) for p in places]

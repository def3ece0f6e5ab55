"""Labels of clusters: small graphs of atom types and bond orders, the same whatever their atoms' order was."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property

from molgraph.chem.fragments.atom_types import AtomType

BondList = tuple[tuple[int, int, int], ...]  # (atom, atom, order), the first atom before the second, sorted
LARGEST = 48  # atoms of a cluster
MOST_LEAVES = 4096  # of the search for a canonical order


@dataclass(frozen=True)
class ClusterLabel:
    """A cluster of a junction tree by itself, its atoms in canonical order.

    Args:
        atoms: their types.
        bonds: pairs of atoms with the order of their bond.
    """

    atoms: tuple[AtomType, ...]
    bonds: BondList

    def __len__(self) -> int:
        return len(self.atoms)

    @cached_property
    def key(self) -> str:
        """A hash of the graph, which no library's way of writing molecules takes part in."""
        text = json.dumps([self.atoms, self.bonds], separators=(",", ":"))
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    @property
    def is_ring(self) -> bool:
        """Whether it has a ring."""
        return len(self.bonds) >= len(self.atoms) > 1

    @cached_property
    def order(self) -> dict[tuple[int, int], int]:
        """The order of the bond between two atoms, both ways."""
        return {pair: order for i, j, order in self.bonds for pair in ((i, j), (j, i))}

    @cached_property
    def valence(self) -> tuple[int, ...]:
        """The sum of bond orders of each atom within the cluster."""
        return tuple(sum(order for i, j, order in self.bonds if k in (i, j)) for k in range(len(self.atoms)))

    @cached_property
    def automorphisms(self) -> tuple[tuple[int, ...], ...]:
        """Permutations of the atoms that leave the graph as it is."""
        orders = _canonical_orders(self.atoms, self.bonds)[1]
        first = orders[0]
        return tuple(tuple(dict(zip(first, other, strict=True))[k] for k in range(len(first))) for other in orders)


@cache
def canonical_label(atoms: tuple[AtomType, ...], bonds: BondList) -> tuple[ClusterLabel, tuple[int, ...]]:
    """The label of a graph, and which of its atoms stands at each place of the label.

    Raises:
        ValueError: too many atoms, or too symmetric.

    Example:
        >>> carbon, oxygen = AtomType(6), AtomType(8)
        >>> label, places = canonical_label((oxygen, carbon), ((0, 1, 2),))
        >>> label.atoms == (carbon, oxygen), places, label == canonical_label((carbon, oxygen), ((0, 1, 2),))[0]
        (True, (1, 0), True)
    """
    _, orders = _canonical_orders(atoms, bonds)
    return ClusterLabel(*_renumbered(atoms, bonds, orders[0])), orders[0]


def sorted_bonds(bonds: Iterable[tuple[int, int, int]]) -> BondList:
    """Bonds with their first atom before the second, sorted."""
    return tuple(sorted((min(i, j), max(i, j), order) for i, j, order in bonds))


def _renumbered(
    atoms: Sequence[AtomType], bonds: BondList, order: Sequence[int]
) -> tuple[tuple[AtomType, ...], BondList]:
    place = {atom: k for k, atom in enumerate(order)}
    return tuple(atoms[k] for k in order), sorted_bonds((place[i], place[j], o) for i, j, o in bonds)


def _canonical_orders(
    atoms: tuple[AtomType, ...], bonds: BondList
) -> tuple[tuple[tuple[AtomType, ...], BondList], list[tuple[int, ...]]]:
    """The least graph over all orders that colour refinement leaves open, and every order that gives it."""
    n = len(atoms)
    if n > LARGEST:
        raise ValueError(f"a cluster of {n} atoms, at most {LARGEST} can be labelled")
    near: list[list[tuple[int, int]]] = [[] for _ in range(n)]
    for i, j, order in bonds:
        near[i].append((order, j))
        near[j].append((order, i))
    best: tuple[tuple[AtomType, ...], BondList] | None = None
    orders: list[tuple[int, ...]] = []
    leaves = 0
    waiting = [refined(ranks([(*kind, 0) for kind in atoms]), near)]
    while waiting:
        colour = waiting.pop()
        sizes: dict[int, list[int]] = {}
        for atom, rank in enumerate(colour):
            sizes.setdefault(rank, []).append(atom)
        open_cells = [rank for rank, cell in sizes.items() if len(cell) > 1]
        if open_cells:
            cell = sizes[min(open_cells)]
            for chosen in reversed(cell):  # a colour is the number of atoms before its cell: the chosen one stays first
                apart = [rank + (rank == colour[chosen] and k != chosen) for k, rank in enumerate(colour)]
                waiting.append(refined(apart, near))
            continue
        leaves += 1
        if leaves > MOST_LEAVES:
            raise ValueError("a cluster is too symmetric to be labelled")
        leaf = tuple(sorted(range(n), key=colour.__getitem__))
        graph = _renumbered(atoms, bonds, leaf)
        if best is None or graph < best:
            best, orders = graph, [leaf]
        elif graph == best:
            orders.append(leaf)
    assert best is not None
    return best, orders


def refined(colour: list[int], near: list[list[tuple[int, int]]]) -> list[int]:
    """Colours refined by those of the neighbours until they tell no more atoms apart."""
    count = len({*colour})
    while count < len(colour):
        rows = [(rank, sorted((order, colour[j]) for order, j in near[k])) for k, rank in enumerate(colour)]
        colour = ranks([(rank, *[x for pair in heard for x in pair]) for rank, heard in rows])
        if (now := len({*colour})) == count:
            break
        count = now
    return colour


def ranks(rows: list[tuple[int, ...]]) -> list[int]:
    """For each row, how many rows are less than it."""
    first: dict[tuple[int, ...], int] = {}
    for k, row in enumerate(sorted(rows)):
        first.setdefault(row, k)
    return [first[row] for row in rows]

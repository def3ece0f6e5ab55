"""Distinct rows against rooted trees written out in full."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from molgraph.base.packed import offsets_of
from molgraph.data.batch import GraphBatch
from molgraph.data.color_refinement import (
    AtomRefinement,
    Refinement,
    next_bonds,
    ranges,
    refine_atoms,
    refine_bonds,
    transpose,
)

Maker = Callable[..., GraphBatch]


def arrays(batch: GraphBatch) -> dict[str, np.ndarray]:
    offsets = offsets_of(np.bincount(batch.target.numpy(), minlength=batch.n_atoms))
    tensors = {"atom_code": batch["atom"].code, "bond_code": batch["bond"].code}
    tensors |= {"source": batch.source, "reverse": batch.reverse}
    return {name: tensor.numpy() for name, tensor in tensors.items()} | {"offsets": offsets}


def bond_tree(b: int, level: int, a: dict[str, np.ndarray]) -> tuple:
    v = a["source"][b]
    own = (int(a["atom_code"][v]), int(a["bond_code"][b]))
    if level == 0:
        return own
    below = [c for c in range(a["offsets"][v], a["offsets"][v + 1]) if c != a["reverse"][b]]
    return own, tuple(sorted(bond_tree(c, level - 1, a) for c in below))


def atom_tree(v: int, level: int, a: dict[str, np.ndarray]) -> tuple:
    if level == 0:
        return (int(a["atom_code"][v]),)
    below = range(a["offsets"][v], a["offsets"][v + 1])
    heard = sorted((int(a["bond_code"][b]), atom_tree(a["source"][b], level - 1, a)) for b in below)
    return atom_tree(v, level - 1, a), tuple(heard)


def same_parts(rows: np.ndarray, trees: list[tuple]) -> bool:
    pairs = set(zip(rows.tolist(), trees, strict=True))
    return len(pairs) == len(set(rows.tolist())) == len(set(trees))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("depth", [1, 2, 3, 4])
def test_bonds_are_one_row_exactly_where_their_trees_are_equal(random_batch: Maker, seed: int, depth: int) -> None:
    a = arrays(random_batch(seed))
    found = refine_bonds(**a, depth=depth)
    trees = [
        (int(a["atom_code"][v]), tuple(sorted(bond_tree(b, depth - 1, a) for b in range(*a["offsets"][v : v + 2]))))
        for v in range(len(a["atom_code"]))
    ]
    assert same_parts(found.atom_row, trees)
    check_bond_levels(found, a)


def check_bond_levels(found: Refinement, a: dict[str, np.ndarray]) -> None:
    """Every row's relation names rows of the level before with the trees that its representative has below it."""
    for level, bonds in enumerate(found.bonds):
        trees = [bond_tree(b, level, a) for b in bonds]
        assert len(set(trees)) == len(trees)  # no row twice
        if level:
            links, below = found.links[level - 1], found.bonds[level - 1]
            for i, tree in enumerate(trees):
                heard = links.source[links.offsets[i] : links.offsets[i + 1]]
                assert tuple(sorted(bond_tree(below[j], level - 1, a) for j in heard)) == tree[1]
                assert bond_tree(found.bonds[0][found.initial_row[level - 1][i]], 0, a) == bond_tree(bonds[i], 0, a)
    last = found.links[-1]
    for i, v in enumerate(found.atoms):
        heard = last.source[last.offsets[i] : last.offsets[i + 1]]
        level = len(found.bonds) - 1
        wanted = sorted(bond_tree(b, level, a) for b in range(*a["offsets"][v : v + 2]))
        assert sorted(bond_tree(found.bonds[-1][j], level, a) for j in heard) == wanted


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_atoms_are_one_row_exactly_where_their_trees_are_equal(random_batch: Maker, seed: int, rounds: int) -> None:
    a = arrays(random_batch(seed))
    a.pop("reverse")
    found = refine_atoms(**a, rounds=rounds)
    trees = [atom_tree(v, rounds, a) for v in range(len(a["atom_code"]))]
    assert same_parts(found.atom_row, trees)
    for distinct in (found, refine_atoms(**a, rounds=rounds, distinct=False)):
        check_rounds(distinct, a, trees)


def check_rounds(found: AtomRefinement, a: dict[str, np.ndarray], trees: list[tuple]) -> None:
    """Trees put together from the rounds alone are the trees that the atoms have."""
    rows: list[tuple] = [atom_tree(v, 0, a) for v in found.atoms]
    for step in found.steps:
        kinds = np.repeat(step.kinds, step.sizes).tolist()
        said = [(kind, rows[i]) for kind, i in zip(kinds, step.sender, strict=True)]
        assert len(set(zip(kinds, step.sender.tolist(), strict=True))) == len(said)  # nobody says it twice
        spans = zip(step.links.offsets[:-1], step.links.offsets[1:], strict=True)
        heard = [tuple(sorted(said[j] for j in step.links.source[i:k])) for i, k in spans]
        rows = [(rows[i], h) for i, h in zip(step.previous_row, heard, strict=True)]
    assert [rows[i] for i in found.atom_row] == trees


def test_own_and_heard_colours_do_not_change_places() -> None:
    """A bond of colour A that hears B three times is not one of colour B that hears A three times."""
    # two stars: a centre, three leaves, and a fifth atom that hears the centre
    codes = np.array([0, 1, 1, 1, 2, 1, 0, 0, 0, 2])
    source = np.array([1, 2, 3, 4, 0, 0, 0, 0])
    reverse = np.array([4, 5, 6, 7, 0, 1, 2, 3])
    offsets = np.array([0, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16])
    bonds = np.zeros(16, np.int64)
    both = np.concatenate([source, source + 5]), np.concatenate([reverse, reverse + 8])
    found = refine_bonds(codes, bonds, *both, offsets, depth=2)
    assert found.atom_row[4] != found.atom_row[9]


def test_next_bonds_never_turn_back(random_batch: Maker) -> None:
    batch = random_batch(3)
    a = arrays(batch)
    source, offsets = next_bonds(a["source"], a["reverse"], a["offsets"])
    target = np.repeat(np.arange(batch.n_bonds), np.diff(offsets))
    found = set(zip(source.tolist(), target.tolist(), strict=True))
    ends = list(zip(a["source"].tolist(), batch.target.tolist(), strict=True))
    wanted = {(i, j) for i, (u, v) in enumerate(ends) for j, (w, x) in enumerate(ends) if v == w and u != x}
    assert found == wanted and len(source) == len(wanted)


@pytest.mark.parametrize("n_source", [5, 70_000])
def test_transpose_sorts_the_same_pairs_by_source(n_source: int) -> None:
    rng = np.random.default_rng(0)
    source, offsets = rng.integers(n_source, size=40), offsets_of(np.array([0, 10, 0, 25, 5]))
    target, back = transpose(source, offsets, n_source)
    pairs = np.stack([np.repeat(np.arange(n_source), np.diff(back)), target])
    wanted = np.stack([source, np.repeat(np.arange(5), np.diff(offsets))])
    assert pairs[:, np.lexsort(pairs)].tolist() == wanted[:, np.lexsort(wanted)].tolist()
    assert (np.diff(pairs[0]) >= 0).all()


def test_ranges_of_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    numbers, offsets = ranges(nothing, nothing)
    assert numbers.tolist() == [] and offsets.tolist() == [0]

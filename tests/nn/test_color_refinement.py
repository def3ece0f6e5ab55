"""Distinct rows against rooted trees written out in full."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch

from molgraph.base.packed import offsets_of, ranges
from molgraph.data.batch import GraphBatch
from molgraph.data.color_refinement import bond_colors
from molgraph.nn.deduplicate import _relation, atom_rounds, bond_rounds
from molgraph.nn.relation import Relation

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
    batch = random_batch(seed)
    a = arrays(batch)
    trees = [
        (int(a["atom_code"][v]), tuple(sorted(bond_tree(b, depth - 1, a) for b in range(*a["offsets"][v : v + 2]))))
        for v in range(len(a["atom_code"]))
    ]
    for distinct in (True, False):
        found = bond_rounds(batch, depth, distinct=distinct)
        assert len(found.rounds) == depth - 1
        first = list(zip(found.source_atoms.code.tolist(), found.bonds.code.tolist(), strict=True))
        rows: list[tuple] = first
        for step in found.rounds:  # trees put together from the rounds alone
            assert not distinct or len(set(rows)) == len(rows)  # no row twice
            own = range(len(rows)) if step.start is None else step.start.source.tolist()
            rows = [(first[i], h) for i, h in zip(own, heard(step.relation, rows), strict=True)]
        atoms = list(zip(found.atoms.code.tolist(), heard(found.arriving, rows), strict=True))
        numbers = torch.arange(float(len(atoms)))
        of_atom = found.every_atom(numbers[:, None])[:, 0].long().tolist()
        assert [atoms[i] for i in of_atom] == trees
        assert not distinct or same_parts(np.array(of_atom), trees)
        assert found.readout.source.tolist() == of_atom
        assert found.readout.target.tolist() == batch.graph_of("atom").tolist()


def heard(relation: Relation, rows: list[tuple]) -> list[tuple]:
    """The rows that each target hears, sorted."""
    assert relation.n_source == len(rows)
    spans = zip(relation.offsets[:-1].tolist(), relation.offsets[1:].tolist(), strict=True)
    return [tuple(sorted(rows[j] for j in relation.source[i:k].tolist())) for i, k in spans]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_atoms_are_one_row_exactly_where_their_trees_are_equal(random_batch: Maker, seed: int, rounds: int) -> None:
    batch = random_batch(seed)
    a = arrays(batch)
    trees = [atom_tree(v, rounds, a) for v in range(len(a["atom_code"]))]
    code_of = {tuple(row): code for code, row in enumerate(batch["bond"].table.tolist())}
    for distinct in (True, False):
        found = atom_rounds(batch, rounds, distinct=distinct)
        rows: list[tuple] = [(code,) for code in found.atoms.code.tolist()]
        for step in found.rounds:  # trees put together from the rounds alone
            kinds = [code_of[tuple(row)] for row in step.kinds.tolist()]
            said = list(
                zip(np.repeat(kinds, step.sizes).tolist(), (rows[i] for i in step.sender.source.tolist()), strict=True)
            )
            named = list(zip(np.repeat(kinds, step.sizes).tolist(), step.sender.source.tolist(), strict=True))
            assert len(set(named)) == len(named)  # nobody says it twice
            both = zip(step.before.source.tolist(), heard(step.relation, said), strict=True)
            rows = [(rows[i], h) for i, h in both]
        of_atom = found.atom_row.tolist()
        assert [rows[i] for i in of_atom] == trees
        assert same_parts(np.array(of_atom), trees) if distinct else sorted(of_atom) == list(range(batch.n_atoms))


def test_own_and_heard_colours_do_not_change_places() -> None:
    """A bond of colour A that hears B three times is not one of colour B that hears A three times."""
    # two stars: a centre, three leaves, and a fifth atom that hears the centre
    codes = np.array([0, 1, 1, 1, 2, 1, 0, 0, 0, 2])
    source = np.array([1, 2, 3, 4, 0, 0, 0, 0])
    reverse = np.array([4, 5, 6, 7, 0, 1, 2, 3])
    offsets = np.array([0, 4, 5, 6, 7, 8, 12, 13, 14, 15, 16])
    bonds = np.zeros(16, np.int64)
    both = np.concatenate([source, source + 5]), np.concatenate([reverse, reverse + 8])
    _, atoms = bond_colors(codes, bonds, *both, offsets, depth=2)
    assert atoms[4] != atoms[9]


@pytest.mark.parametrize("n_source", [5, 70_000])
def test_the_transpose_holds_the_same_pairs_sorted_by_source(random_batch: Maker, n_source: int) -> None:
    rng = np.random.default_rng(0)
    source, offsets = rng.integers(n_source, size=40), offsets_of(np.array([0, 10, 0, 25, 5]))
    made = _relation(random_batch(0), source, offsets, n_source)
    asked = Relation(made.source, made.offsets, n_source, made.n_target)  # sorted by torch, at the first need
    assert torch.equal(made.transpose.source, asked.transpose.source)
    assert torch.equal(made.transpose.offsets, asked.transpose.offsets)


def test_ranges_of_nothing() -> None:
    nothing = np.zeros(0, np.int64)
    numbers, offsets = ranges(nothing, nothing)
    assert numbers.tolist() == [] and offsets.tolist() == [0]

"""Batches: graphs of a store side by side, the same alone as in company, in an order of (seed, epoch)."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from molgraph.data import batch as module
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.graph_store import GraphStore, Level
from molgraph.data.loader import batch_order, make_ahead

SMILES = [
    "CCO", "", "c1ccccc1", "C", "[Na+].[Cl-]", "C1CC", "F/C=C/F", "C[C@H](N)C(=O)O", "[13CH4]", "O=C1CCCCCCO1",
    "Cl[Pt](Cl)(N)N", "C12C3C4C1C5C2C3C45", "CC(C)(C)OC(=O)N[C@@H](Cc1ccccc1)C(=O)O",
]  # fmt: skip
STORE = featurize(SMILES)
FIELDS = ("atom_code", "atom_offsets", "bond_code", "bond_offsets", "source", "target", "reverse")


def field(batch: GraphBatch, name: str) -> torch.Tensor:
    level, _, array = name.rpartition("_")
    own = batch[level or "bond"]
    return own.offsets if array == "offsets" else own.arrays[array]


def stacked(store: GraphStore, graphs: list[int]) -> dict[str, list[int]]:
    """The same batch with a loop over molecules: the oracle."""
    out: dict[str, list[int]] = {name: [0] if "offsets" in name else [] for name in FIELDS}
    atom, bond = store.levels["atom"], store.levels["bond"]
    for i in graphs:
        n, e = out["atom_offsets"][-1], out["bond_offsets"][-1]
        atoms, bonds = slice(*atom.offsets[i : i + 2]), slice(*bond.offsets[i : i + 2])
        out["atom_code"] += atom.arrays["code"][atoms].tolist()
        out["bond_code"] += bond.arrays["code"][bonds].tolist()
        out["source"] += [n + int(v) for v in bond.arrays["source"][bonds]]
        out["target"] += [n + int(v) for v in bond.arrays["target"][bonds]]
        out["reverse"] += [e + int(v) for v in bond.arrays["reverse"][bonds]]
        out["atom_offsets"].append(n + len(range(*atoms.indices(10**9))))
        out["bond_offsets"].append(e + len(range(*bonds.indices(10**9))))
    return out


@given(st.lists(st.integers(0, len(SMILES) - 1), max_size=20))
def test_collate_stacks(graphs: list[int]) -> None:
    batch = collate(STORE, np.array(graphs, dtype=np.int64))
    for name, want in stacked(STORE, graphs).items():
        got = field(batch, name)
        assert got.dtype == torch.int64 and got.tolist() == want, name
    assert batch.n_graphs == len(graphs)
    assert batch.graph_of("atom").tolist() == [
        k for k, i in enumerate(graphs) for _ in range(*STORE.levels["atom"].offsets[i : i + 2])
    ]


@given(st.integers(0, len(SMILES)), st.integers(0, len(SMILES)))
def test_contiguous_graphs_stack_too(a: int, b: int) -> None:
    first, last = sorted((a, b))
    batch = collate(STORE, np.arange(first, last))
    for name, want in stacked(STORE, list(range(first, last))).items():
        assert field(batch, name).tolist() == want, name


@given(st.permutations(range(len(SMILES))))
def test_a_permutation_of_graphs_permutes_the_batch(order: list[int]) -> None:
    plain, mixed = collate(STORE, np.arange(len(SMILES))), collate(STORE, np.array(order))
    for place, i in enumerate(order):
        a = slice(*plain["atom"].offsets[i : i + 2].tolist())
        b = slice(*mixed["atom"].offsets[place : place + 2].tolist())
        assert torch.equal(plain.features("atom")[a], mixed.features("atom")[b])
        a = slice(*plain["bond"].offsets[i : i + 2].tolist())
        b = slice(*mixed["bond"].offsets[place : place + 2].tolist())
        assert torch.equal(plain.features("bond")[a], mixed.features("bond")[b])
        shift = mixed["atom"].offsets[place] - plain["atom"].offsets[i]
        assert torch.equal(plain.source[a] + shift, mixed.source[b])


def test_bonds_are_sorted_by_target_and_reverse_is_an_involution() -> None:
    batch = collate(STORE, np.arange(len(SMILES))[::-1].copy())
    assert (batch.target.diff() >= 0).all()
    assert torch.equal(batch.reverse[batch.reverse], torch.arange(batch.n_bonds))
    assert torch.equal(batch.source[batch.reverse], batch.target)
    assert torch.equal(batch["bond"].code[batch.reverse], batch["bond"].code)


@pytest.mark.parametrize("graphs", [[-1], [len(SMILES)], [0, 99], [0, -1, 2]])
def test_a_graph_that_is_not_there(graphs: list[int]) -> None:
    with pytest.raises(IndexError, match="store of 13"):
        collate(STORE, np.array(graphs))


def test_a_batch_edits_nothing_of_its_store() -> None:
    before = {name: level.arrays["code"].copy() for name, level in STORE.levels.items()}
    batch = collate(STORE, np.arange(5))
    for name in FIELDS:
        field(batch, name).fill_(0)
    for name, values in before.items():
        np.testing.assert_array_equal(values, STORE.levels[name].arrays["code"])


def test_of_a_long_table_only_what_occurs(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = collate(STORE, np.array([3, 0]))
    monkeypatch.setattr(module, "_SMALL_TABLE", 0)
    short = collate(STORE, np.array([3, 0]))
    assert len(short["atom"].table) < len(plain["atom"].table)
    assert torch.equal(short.features("atom"), plain.features("atom"))
    assert torch.equal(short.features("bond"), plain.features("bond"))


@dataclass(frozen=True)
class Made:
    index: torch.Tensor
    nested: tuple


def test_to_moves_what_was_made_with_the_batch() -> None:
    batch = collate(STORE, np.arange(4))
    batch.once("made", lambda: Made(batch.source, ([batch.target], {"n": 3})))
    assert batch.to("cpu") is batch
    there = batch.to("meta")
    made = there.once("made", lambda: pytest.fail("made again"))
    assert there.source.device.type == "meta" and made.index.device.type == "meta"
    assert made.nested[0][0].device.type == "meta" and made.nested[1] == {"n": 3}
    assert there.n_graphs == 4 and there.n_bonds == batch.n_bonds


def test_order_is_a_function_of_seed_and_epoch() -> None:
    def flat(**options: int) -> list[int]:
        return np.concatenate(batch_order(100, 8, **options)).tolist()

    assert flat() == list(range(100))
    assert flat(seed=1, epoch=2) == flat(seed=1, epoch=2)
    assert sorted(flat(seed=1, epoch=2)) == list(range(100))
    assert len({tuple(flat(seed=s, epoch=e)) for s in range(3) for e in range(3)}) == 9
    assert batch_order(0, 4) == []
    length = np.arange(100) % 10
    padded = batch_order(100, 8, seed=1, length=length)
    assert np.array_equal(np.sort(np.concatenate(padded)), np.arange(100))
    assert max(np.ptp(length[rows]) for rows in padded) <= 2
    assert [rows.tolist() for rows in padded] != [rows.tolist() for rows in batch_order(100, 8, seed=2, length=length)]
    with pytest.raises(ValueError, match="batch_size"):
        batch_order(3, 0)


def test_made_ahead_comes_in_order_and_errors_arrive_at_their_piece() -> None:
    assert list(make_ahead(range(50), lambda i: i * i)) == [i * i for i in range(50)]
    seen: list[int] = []
    with pytest.raises(ValueError, match="seven"):
        seen.extend(make_ahead(range(20), lambda i: i if i != 7 else int("seven")))
    assert seen == list(range(7))


def test_a_loop_that_is_left_early_leaves_no_thread() -> None:
    made: list[int] = []
    for value in make_ahead(range(10_000), lambda i: made.append(i) or i):  # type: ignore[func-returns-value]
        if value == 3:
            break
    assert len(made) < 100
    assert not [t for t in threading.enumerate() if t.name.startswith("molgraph-batches")]


def test_index_arrays_of_further_levels_count_over_the_batch() -> None:
    """Two graphs: a tree level whose rows name atoms, bonds and tree rows; wrong from the second graph on before."""
    atom, bond = STORE.levels["atom"], STORE.levels["bond"]
    sizes = np.minimum(np.diff(atom.offsets), np.diff(bond.offsets))
    rows = np.concatenate([np.arange(n) for n in sizes])
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    arrays = {"atom": rows, "bond": rows, "parent": rows[:, None], "weight": rows / 2}
    tree = Level(offsets, arrays, {"atom": "atom", "bond": "bond", "parent": "tree"})
    store = replace(STORE, levels={**STORE.levels, "tree": tree})
    order = np.array([6, 2, 9, 2])
    batch = collate(store, order)
    spans = {name: batch[name].offsets.tolist() for name in ("atom", "bond", "tree")}
    for k, i in enumerate(order):
        own = slice(*spans["tree"][k : k + 2])
        for name, of in tree.index.items():
            first = spans[of][k]
            assert batch["tree"].arrays[name][own].ravel().tolist() == list(range(first, first + sizes[i]))
        assert batch["tree"].arrays["weight"][own].tolist() == [n / 2 for n in range(sizes[i])]
    assert batch.graph_of("tree").tolist() == [k for k, i in enumerate(order) for _ in range(sizes[i])]


def test_a_batch_with_another_level_forgets_what_was_made_of_it() -> None:
    batch = collate(STORE, np.arange(4))
    before = batch.features("atom")
    changed = batch.with_level("atom", table=2 * batch["atom"].table)
    assert torch.equal(changed.features("atom"), 2 * before) and torch.equal(batch.features("atom"), before)

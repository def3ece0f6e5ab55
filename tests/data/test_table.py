"""The table: what take, with_status and the rest keep; pairs, geometries and graphs need no other type."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molgraph.base.contracts import Target
from molgraph.base.errors import MissingColumnError, ShapeError
from molgraph.base.table import Packed
from molgraph.data.table import Entities, Table, make_table


def objects(values: list) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def table_of(n: int, *entities: Entities, **columns) -> Table:
    ids = objects([f"{i:03}" for i in range(n)])
    return Table(ids, entities, objects(["ok"] * n), objects([""] * n), **columns)


def test_pairs_of_a_drug_and_a_protein() -> None:
    drugs = Entities("drug", "molecule", objects(["CCO", "CCN", "CCC"]))
    proteins = Entities("target", "sequence", objects(["MKV", "MAA", "MKV"]))
    table = table_of(3, drugs, proteins, targets=(Target("pKd"),), y=np.array([[5.0], [6.0], [7.0]]))
    some = table.take(np.array([2, 0]))
    assert list(some.smiles) == ["CCC", "CCO"]
    assert list(some.entity("sequence").values) == ["MKV", "MKV"]
    assert some.y[:, 0].tolist() == [7.0, 5.0]
    assert list(some.to_frame().columns) == ["id", "drug", "target", "pKd", "status", "reason"]


def test_two_molecules_a_row() -> None:
    solute = Entities("solute", "molecule", objects(["CCO", "CCN"]))
    solvent = Entities("solvent", "molecule", objects(["O", "C"]))
    changed = table_of(2, solute, solvent).with_smiles(objects(["X", "Y"]))
    assert [list(e.values) for e in changed.entities] == [["X", "Y"], ["O", "C"]]


def test_geometries_with_forces_on_atoms() -> None:
    """QM9-like rows: element numbers and positions in angstrom, an energy a row, a force an atom."""
    rng = np.random.default_rng(0)
    sizes = [3, 1, 4]
    shapes = objects([(np.full(n, 6), rng.normal(size=(n, 3))) for n in sizes])
    forces = Packed(np.concatenate([[0], np.cumsum(sizes)]), rng.normal(size=(8, 3)))
    targets = (Target("energy_ev"), Target("force_ev_per_angstrom", level="atom"))
    table = table_of(
        3,
        Entities("xyz", "geometry", shapes),
        targets=targets,
        y=np.zeros((3, 1)),
        packed={"force_ev_per_angstrom": forces},
    )
    some = table.take(np.array([2, 1]))
    assert [len(v[0]) for v in some.entity("geometry").values] == [4, 1]
    packed = some.packed["force_ev_per_angstrom"]
    assert packed.offsets.tolist() == [0, 4, 5]
    np.testing.assert_array_equal(packed.values, forces.values[[4, 5, 6, 7, 3]])
    assert [t.name for t in some.row_targets] == ["energy_ev"]


def test_graphs_without_smiles() -> None:
    edges = [np.array([[0, 1], [1, 0]]), np.zeros((2, 0), dtype=int)]
    table = table_of(
        2, Entities("graph", "graph", objects(edges)), targets=(Target("label", "binary"),), y=np.eye(2)[:, :1]
    )
    assert table.take(np.array([False, True])).entity("graph").values[0].shape == (2, 0)
    with pytest.raises(MissingColumnError, match="molecule"):
        _ = table.smiles


def test_sizes_must_agree() -> None:
    with pytest.raises(ShapeError, match=r"weights has 2.* 3"):
        make_table(["C", "CC", "CCC"], weights=np.ones(2))


def test_the_first_reason_stands_and_nothing_is_edited() -> None:
    table = make_table(["C", None, "CC"])
    marked = table.with_status(np.array([0, 1]), "unreadable", objects(["a", "b"]))
    assert list(marked.status) == ["unreadable", "missing", "ok"]
    assert list(marked.reason) == ["a", "no molecule in this row", ""]
    assert list(table.status) == ["ok", "missing", "ok"]


def test_targets_by_name() -> None:
    table = make_table(["C", "CC"], targets=(Target("a"), Target("b")), y=[[1, 2], [3, 4]])
    assert table.with_targets(["b"]).y.tolist() == [[2], [4]]
    with pytest.raises(MissingColumnError, match="'c'"):
        table.with_targets(["c"])


@given(st.data())
def test_take_is_indexing(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    sizes = data.draw(st.lists(st.integers(0, 4), min_size=n, max_size=n))
    packed = Packed(np.concatenate([[0], np.cumsum(sizes)]).astype(int), np.arange(sum(sizes)))
    table = make_table(
        ["C"] * n, y=np.arange(n), targets=(Target("y"), Target("q", level="atom")), packed={"q": packed}
    )
    rows = np.array(data.draw(st.lists(st.integers(0, n - 1), max_size=12)), dtype=int)
    some = table.take(rows)
    assert some.y[:, 0].tolist() == rows.tolist()
    pieces = [packed.values[packed.offsets[r] : packed.offsets[r + 1]] for r in rows]
    assert some.packed["q"].values.tolist() == [v for piece in pieces for v in piece]

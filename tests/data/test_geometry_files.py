"""XYZ and npz files: every frame and molecule is a row with a geometry or a reason, values are columns."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from molgraph.base.errors import EmptyError, FormatError, MissingColumnError, ShapeError, UnsupportedError
from molgraph.chem.xyz import read_frame, write_frame
from molgraph.data.batch import collate
from molgraph.data.featurize_geometry import METHANE, WATER, Geometries
from molgraph.data.graph_values import Geometry
from molgraph.data.read import iter_rows, read_table
from molgraph.data.splits import split_table

RNG = np.random.default_rng(0)
FORCES = RNG.normal(size=(3, 3)).astype(np.float32)
FIRST = write_frame(WATER.numbers, WATER.positions, FORCES)
FRAMES = """
5
energy=2 smiles=CC
C 0 0 0 9 9 9
H 0 0 1
C 0 0 0
H 0 0 1
O 1 1 1
2
energy=3 smiles=[HH]
H 0 0 0
H 0 0 0.74
3
energy=4
H 0 0 0
1
energy=5 Lattice="9 0 0 0 9 0 0 0 9"
H 0 0 0
what is this
and this
1
a comment
He 0 0 nan
1
energy=x pbc="F F F" Lattice="9 0 0 0 9 0 0 0 9" smiles=[He]
2 0 0 1
"""


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    path = tmp_path / "frames.xyz"
    path.write_text(FIRST.replace("Prop", 'energy=-1.5 smiles=O name="a b" Prop', 1) + FRAMES)
    return path


def test_every_frame_is_a_row_with_a_geometry_or_a_reason(frames: Path) -> None:
    table = read_table(frames, geometry="geometry")
    assert table.status.tolist() == ["ok", "ok", "ok", *["unreadable"] * 4, "ok"]
    words = ("of which its first line says 3", "periodic", "no frame", "finite")
    assert all(word in reason for reason, word in zip(table.reason[3:7], words, strict=True))
    first, second, *_, last = table.entities[0].values
    np.testing.assert_array_equal(first.forces, FORCES)
    np.testing.assert_array_equal(first.positions, WATER.positions)
    assert second.forces is None and second.numbers.tolist() == [6, 1, 6, 1, 8] and last.numbers.tolist() == [2]
    named = read_table(frames, geometry="geometry", id="name", targets="energy:regression", qualifiers="refuse")
    assert named.ids[0] == "a b" and named.y[:3, 0].tolist() == [-1.5, 2, 3] and named.status[-1] == "unreadable"


def test_an_element_that_is_none_is_named() -> None:
    texts = ["2\n\nC 0 0 0\nXx 0 0 1\n", "1\n\n200 0 0 0\n", "1\n\nC 0 0\n"]
    reasons = read_table({"shape": texts}, geometry="shape").reason
    assert reasons[0] == "atom 2 is 'Xx', which is no element" and "'200', which is no" in reasons[1]
    assert "neither a mol block" in reasons[2]


def test_a_geometry_that_is_not_its_smiles_is_a_marked_row(frames: Path) -> None:
    table = read_table(frames, geometry="geometry", smiles="smiles")
    assert table.reason[1] == "its atoms in space are C2O and its SMILES says C2 (hydrogens aside)"
    assert table.status[[0, 1, 2]].tolist() == ["ok", "unreadable", "ok"]


def test_chunks_of_frames_are_the_rows_of_the_whole(frames: Path, tmp_path: Path) -> None:
    whole = read_table(frames, geometry="geometry")
    parts = [rows.table for rows in iter_rows(frames, chunk_rows=3, geometry="geometry")]
    assert [len(part) for part in parts] == [3, 3, 2]
    assert [r for part in parts for r in part.reason] == whole.reason.tolist()
    plain = tmp_path / "many.txt"  # without a telling name, and without pairs of key and value
    plain.write_text("1\nneon\nNe 0 0 0\n" * 30_000)
    table = read_table(plain)
    assert len(table) == 30_000 and [e.kind for e in table.entities] == ["geometry"] and table.ok.all()


def test_frames_are_written_and_read_to_the_bit() -> None:
    positions = np.array([[1 / 3, 1e-7, -4e5], [np.pi, 0, 0], [0.1, 0.2, 0.3]], np.float32)
    again = read_frame(write_frame(WATER.numbers, positions, FORCES).splitlines())
    for a, b in zip(again, (WATER.numbers, positions, FORCES), strict=True):
        np.testing.assert_array_equal(a, b)
    wrong = ["1\nProperties=species:S:1:pos:R:2\nH 0 0", "1\nProperties=species:S:1\nH", "1\nProperties=pos:R:3\n0 0 0"]
    for text in [*wrong, "1\nProperties=species:S\nH 0 0 0", "1\nProperties=species:S:1:pos:R:3:forces:R:3\nH 0 0 0 1"]:
        with pytest.raises(ValueError, match="XYZ"):
            read_frame(text.splitlines())


def arrays_of(name: str) -> dict[str, np.ndarray]:
    z, r = np.array([8, 1, 1, 6, 1]), RNG.normal(size=(5, 3))
    if name == "packed":
        own = {"N": np.array([3, 2]), "Z": z, "R": r, "F": -r, "U0": np.array([1.0, 2.0]), "id": np.array([7, 9])}
        return own | {"smiles": np.array(["O", "C"]), "other": np.zeros((2, 4)), "geometry": np.array(["a", "b"])}
    if name == "frames":
        r = RNG.normal(size=(4, 5, 3))
        return {"z": z, "R": r, "F": -r, "E": np.arange(4.0)[:, None], "r_unit": np.array("Ang"), "name": np.array("x")}
    r = RNG.normal(size=(2, 5, 3))
    return {"nuclear_charges": np.array([[8, 1, 1, 0, 0], z]), "coords": r, "energies": np.arange(2)}


SHAPES = {"packed": ("U0", [3, 2]), "frames": ("E", [5] * 4), "padded": ("energies", [3, 5])}


@pytest.mark.parametrize("name", SHAPES)
def test_npz_files_of_three_shapes(name: str, tmp_path: Path) -> None:
    target, sizes = SHAPES[name]
    arrays, path = arrays_of(name), tmp_path / "a.npz"
    np.savez(path, **arrays)
    table = read_table(path, geometry="geometry", targets=target)
    shapes = list(table.entities[0].values)
    assert table.ok.all() and [len(each.numbers) for each in shapes] == sizes
    np.testing.assert_array_equal(table.y[:, 0], arrays[target].ravel())
    positions = arrays["coords" if name == "padded" else "R"]
    second = positions[3:5] if name == "packed" else positions[1]
    np.testing.assert_array_equal(shapes[1].positions, second.astype(np.float32))
    if name == "packed":
        assert table.ids.tolist() == ["7", "9"] and [e.kind for e in read_table(path).entities] == ["molecule"]
    batch = collate(Geometries().featurise(shapes), np.arange(len(shapes)))
    assert ("force" in batch["atom"].arrays) == (name != "padded")


def test_npz_files_that_hold_no_geometry_are_refused_by_name(tmp_path: Path) -> None:
    path, good = tmp_path / "a.npz", arrays_of("packed")
    cases = [
        (MissingColumnError, "positions", {"Z": good["Z"]}),
        (ShapeError, "N says", good | {"N": np.array([3, 3])}),
        (ShapeError, "fit together", {"Z": good["Z"][:2], "R": good["R"]}),
        (UnsupportedError, "parsec", good | {"r_unit": np.array("parsec")}),
    ]
    for kind, noun, arrays in cases:
        np.savez(path, **arrays)
        with pytest.raises(kind, match=noun):
            read_table(path)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FormatError, match="cannot be read"):
        read_table(path)
    bad = {"Z": np.array([8, 1, 300, 6, 1]), "R": np.where(np.arange(5)[:, None] == 4, np.nan, good["R"])}
    np.savez(path, **good | bad)
    assert all(read_table(path, geometry="geometry").reason)


def test_lengths_in_bohr_become_angstrom(tmp_path: Path) -> None:
    arrays = arrays_of("frames")
    np.savez(tmp_path / "a.npz", **arrays | {"r_unit": np.array("Bohr")})
    shape = read_table(tmp_path / "a.npz").entities[0].values[1]
    np.testing.assert_allclose(shape.positions, arrays["R"][1] * 0.529177210903, rtol=1e-6)
    np.testing.assert_allclose(shape.forces, arrays["F"][1] / 0.529177210903, rtol=1e-6)


def test_forces_stand_beside_positions_and_are_nan_where_there_are_none() -> None:
    given = Geometry(WATER.numbers, WATER.positions, FORCES)
    store = Geometries().featurise([given, METHANE, Geometry(WATER.numbers, WATER.positions, FORCES[:2])])
    assert store.status.tolist() == ["ok", "ok", "unreadable"] and store.spec.arrays["atom.force"] == (3,)
    force = store.levels["atom"].arrays["force"]
    np.testing.assert_array_equal(force[:3], FORCES)
    assert np.isnan(force[3:]).all() and "force" not in Geometries().featurise([METHANE]).levels["atom"].arrays
    assert Geometries().key(given) != Geometries().key(WATER)
    again = read_table({"shape": [given, METHANE]}, geometry="shape").entities[0].values
    np.testing.assert_array_equal(again[0].forces, FORCES)
    assert again[1].forces is None


def test_frames_of_one_molecule_are_divided_by_themselves(tmp_path: Path) -> None:
    np.savez(
        tmp_path / "a.npz", z=WATER.numbers, R=WATER.positions + np.arange(20)[:, None, None] / 1e3, E=np.arange(20)
    )
    table = read_table(tmp_path / "a.npz", targets="E")
    with pytest.raises(EmptyError, match="1 groups") as caught:
        split_table(table, "random")
    assert "random/frames" in str(caught.value.hint)
    made = split_table(table, "random/frames", quiet=True)
    assert sorted([*made.train, *made.valid, *made.test]) == list(range(20)) and len(made.test) == 2

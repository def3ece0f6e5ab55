"""Geometries are read from SD files, texts in cells and Python values, each row kept, drawings refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem import AllChem

from molgraph.base.errors import MissingColumnError
from molgraph.data.featurize_geometry import METHANE, WATER
from molgraph.data.graph_values import Geometry
from molgraph.data.read import read_table
from molgraph.data.table import Table

FLAT = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
XYZ = "3\nwater\nO 0 0 0\nH 0.96 0 0\nH -0.24 0.93 0\n"


def _block() -> tuple[str, np.ndarray]:
    mol = Chem.AddHs(Chem.MolFromSmiles("CCO"))
    AllChem.EmbedMolecule(mol, randomSeed=1)
    return Chem.MolToMolBlock(mol), mol.GetConformer().GetPositions()


def _geometries(table: Table) -> list[Geometry]:
    return list(table.entity("geometry").values)


@pytest.mark.parametrize("ending", ["frame", "csv", "parquet", "sdf"])
def test_every_row_has_a_geometry_or_a_reason(ending: str, tmp_path: Path) -> None:
    block, positions = _block()
    texts = [block, FLAT, block]
    frame = pd.DataFrame({"geometry": texts, "y": [1.0, 2.0, 3.0]})
    path = tmp_path / f"shapes.{ending}"
    if ending == "sdf":
        path.write_text("".join(f"{text}> <y>\n{y}\n\n$$$$\n" for text, y in zip(texts, frame["y"], strict=True)))
    elif ending != "frame":
        getattr(frame, f"to_{ending}")(path, index=False)
    table = read_table(frame if ending == "frame" else path, geometry="geometry", targets="y")
    first, flat, last = _geometries(table)
    assert list(table.status) == ["ok", "unreadable", "ok"] and "plane" in table.reason[1] and flat is None
    assert [e.kind for e in table.entities] == ["geometry"] and table.y[:, 0].tolist() == [1, 2, 3]
    for each in (first, last):
        assert each.numbers.tolist() == [6, 6, 8] + [1] * 6
        np.testing.assert_allclose(each.positions, positions, atol=1e-4)


def test_python_values_and_xyz_texts_are_read_to_the_bit() -> None:
    odd = Geometry(WATER.numbers, np.array([[1 / 3, 1e-7, -4e5], [np.pi, 0, 0], [0.1, 0.2, 0.3]], np.float32))
    other = XYZ.replace("O 0 0 0", "8  0e-5 -0. +0 0.3")
    wrong = ["junk", "2\n\nC 0 0 0\nO nan 0 0\n", "0\n\n", "2\n\nC 0 0 0\n", "1\n\nC 0 0\n", "1\n\nQq 0 0 0\n", "1"]
    block = _block()[0]
    nan = block.replace(block.splitlines()[4][:10], "       nan", 1)
    wrong += ["1\n\n6.5 0 0 0", "1\n\n200 0 0 0", "1\n\nC 1e300 0 0", "M  END", nan]
    wrong += [XYZ + XYZ, XYZ.replace("3", "2", 1), XYZ.replace("water", "Properties=pos:R:3:species:S:1")]
    cells = [WATER, METHANE, odd, XYZ, other, None, *wrong, "1\n\n999 0 0 0", "-1\n\n", FLAT.replace("END", "EN")]
    table = read_table({"shape": cells}, geometry="shape")
    for got, wanted in zip(_geometries(table), (WATER, METHANE, odd, WATER, WATER), strict=False):
        np.testing.assert_array_equal(got.positions, wanted.positions)
        np.testing.assert_array_equal(got.numbers, wanted.numbers)
    assert table.status.tolist() == ["ok"] * 5 + ["missing"] + ["unreadable"] * 18
    assert all(table.reason[5:])


def test_molecules_are_read_beside_geometries_where_they_are_named() -> None:
    data = {"smiles": ["O", "bad"], "geometry": [XYZ, XYZ]}
    assert [e.name for e in read_table(data, geometry="geometry").entities] == ["geometry"]
    both = read_table(data, geometry="geometry", smiles="smiles")
    assert [(e.name, e.kind) for e in both.entities] == [("smiles", "molecule"), ("geometry", "geometry")]


def test_a_table_without_geometries_names_the_cure() -> None:
    with pytest.raises(MissingColumnError) as caught:
        read_table({"smiles": ["C"]}, geometry="geometry")
    assert "--geometry COLUMN" in str(caught.value.hint)

"""Streamed prediction: the input's own columns beside the predictions, SD files, and inputs edited between two runs."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import UnsupportedError
from molgraph.chem.xyz import write_frame
from molgraph.data.featurize_geometry import WATER
from molgraph.data.read import read_table
from molgraph.train.stream import predict_stream

SMILES = ["CCO", "C[C@H](N)C(=O)O", "C1CC", "", "F/C=C/F", "[Na+].[Cl-]", "c1ccccc1O"]
COLUMNS = {
    "who": ["a,b", 'say "x"', "", "d\ne", "007", "=cmd()", "é"],
    "SMILES": SMILES,
    "y": ["1.50", "", "NA", "1e3", "x", "+2", "0"],
    "status": list("abcdefg"),
}


class Atoms:
    """Counts atoms; what RDKit does not read has a reason. Dies before the chunk numbered ``last``."""

    last = -1
    calls = 0

    def predict(self, table):
        if self.calls == self.last:
            raise KeyboardInterrupt
        self.calls += 1
        mols = [Chem.MolFromSmiles(text) if text else None for text in table.smiles]
        ok = np.array([mol is not None for mol in mols], dtype=bool)
        value = np.array([np.nan if mol is None else mol.GetNumAtoms() / 3 for mol in mols]).reshape(-1, 1)
        status = np.where(ok, "ok", "unreadable").astype(object)
        reason = np.where(ok, "", "no molecule").astype(object)
        return Prediction(table.ids, (Target("y"),), value, status, reason, spread=value / 7, inputs=table.smiles)


def write(path: Path, columns: dict[str, list[str]] = COLUMNS) -> Path:
    frame = pd.DataFrame(columns)
    if path.suffix == ".parquet":
        frame.to_parquet(path, index=False)
    elif path.suffix == ".sdf":
        with Chem.SDWriter(str(path)) as writer:
            for i, text in enumerate(columns["SMILES"]):
                mol = Chem.MolFromSmiles(text) or Chem.Mol()
                mol.SetProp("_Name", f"m{i}")
                for name in ("who", "y"):
                    mol.SetProp(name, columns[name][i].replace("\n", " "))
                writer.write(mol)
        path.write_text(path.read_text().replace("RDKit ", "Acmes "))
    else:
        frame.to_csv(path, sep="\t" if path.suffix == ".tsv" else ",", index=False)
    return path


def stream(source, out: Path, model=None, **options):
    return predict_stream(model or Atoms(), source, out, model_hash="m1", **({"chunk_rows": 2} | options))


def read(path: Path) -> pd.DataFrame:
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path, sep="\t" if ".tsv" in path.name else ",", dtype=str, keep_default_na=False)


@pytest.mark.parametrize("source", ["t.csv", "t.tsv", "t.parquet"])
@pytest.mark.parametrize("out", ["o.csv", "o.tsv.gz", "o.parquet"])
def test_the_inputs_columns_stand_before_the_predictions_as_they_were(tmp_path: Path, source: str, out: str) -> None:
    stream(write(tmp_path / source), tmp_path / out, keep_columns=True)
    frame = read(tmp_path / out)
    own = ["y_predicted", "y_predicted_spread", "status_predicted", "reason"]
    assert list(frame) == [*COLUMNS, *own]
    assert frame[list(COLUMNS)].to_dict("list") == COLUMNS
    assert frame["status_predicted"].tolist() == ["ok", "ok", "unreadable", "unreadable", "ok", "ok", "ok"]
    stream(tmp_path / source, tmp_path / f"plain-{out}")
    plain = read(tmp_path / f"plain-{out}")
    assert list(plain) == ["id", "SMILES", "y_predicted", "y_predicted_spread", "status", "reason"]
    for name in own[:2]:
        assert plain[name].equals(frame[name])


def test_columns_of_numbers_and_categories_keep_their_types(tmp_path: Path) -> None:
    frame = pd.DataFrame({"smiles": SMILES, "n": range(7), "x": np.arange(7) / 3, "c": pd.Categorical(list("aabbcca"))})
    frame["list"] = [[i, 2] for i in range(7)]
    frame.loc[2, "x"] = np.nan
    frame.to_parquet(tmp_path / "t.parquet")
    stream(tmp_path / "t.parquet", tmp_path / "o.parquet", keep_columns=True)
    found = pd.read_parquet(tmp_path / "o.parquet")
    assert found["n"].dtype == np.int64 and found["x"].equals(frame["x"]) and list(found["c"]) == list(frame["c"])
    assert [list(v) for v in found["list"]] == list(frame["list"])
    assert list(found)[5:] == ["y", "y_spread", "status", "reason"]
    stream(frame, tmp_path / "o.csv", keep_columns=True)
    assert read(tmp_path / "o.csv")["x"].tolist()[:3] == ["0", "0.3333333333333333", ""]


def test_rows_that_are_left_out_take_their_columns_along(tmp_path: Path) -> None:
    stream(write(tmp_path / "t.csv"), tmp_path / "o.csv", keep_columns=True, on_error="drop")
    assert read(tmp_path / "o.csv")["status"].tolist() == ["a", "b", "e", "f", "g"]
    (tmp_path / "none.csv").write_text("SMILES,y\n")
    stream(tmp_path / "none.csv", tmp_path / "o2.csv", keep_columns=True)
    assert (tmp_path / "o2.csv").read_text() == "SMILES,y,y_predicted,y_predicted_spread,status,reason\n"


def test_a_ready_table_has_no_columns_to_keep(tmp_path: Path) -> None:
    table = read_table(COLUMNS, smiles="SMILES")
    with pytest.raises(UnsupportedError, match="columns"):
        stream(table, tmp_path / "o.csv", keep_columns=True)
    stream(table, tmp_path / "o.csv")
    assert len(read(tmp_path / "o.csv")) == 7


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("source", ["t.csv", "t.sdf"])
@pytest.mark.parametrize("out", ["o.sdf", "o.sdf.gz"])
def test_an_sd_file_has_a_record_for_every_row(tmp_path: Path, source: str, out: str, keep: bool) -> None:
    path = write(tmp_path / source)
    stream(path, tmp_path / out, keep_columns=keep)
    table = read_table(tmp_path / out)
    ids = [f"m{i}" if source == "t.sdf" else str(i) for i in range(7)]
    assert table.ids.tolist() == ids and table.status.tolist() == ["ok", "ok", *["unreadable"] * 2, *["ok"] * 3]
    for i in np.flatnonzero(table.ok):
        assert Chem.CanonSmiles(table.smiles[i]) == Chem.CanonSmiles(SMILES[i])
    text = (tmp_path / out).read_bytes()
    if out == "o.sdf":
        records = list(Chem.SDMolSupplier(str(tmp_path / out), removeHs=False))
        first = records[0].GetPropsAsDict()
        assert first["y_predicted"] == 1.0 and first["status_predicted" if keep and source == "t.csv" else "status"]
        assert [mol.GetNumAtoms() for mol in records] == [3, 6, 0, 0, 4, 2, 7]
        assert records[2].GetProp("reason") == "no molecule" and not records[0].HasProp("reason")
        assert ("smiles" in first, "title" in first) == (False, False)
        assert records[0].HasProp("SMILES") == (source == "t.csv") and records[0].HasProp("who") == keep
        if keep:
            assert records[5].GetProp("who") == "=cmd()" and records[0].GetProp("y") == "1.50"
        if source == "t.sdf":
            block = path.read_text().split("M  END")[0]
            assert block in text.decode() and "RDKit " not in text.decode()


def test_hostile_text_cannot_end_a_record(tmp_path: Path) -> None:
    evil = ["a\n\n$$$$\nb", "$$$$", "> <y>\n5", "x\r\n\r\n$$$$", "\n", ">", "M  END"]
    pd.DataFrame({"id": evil, "smiles": ["C"] * 7, "note": evil, "we > <ird": evil}).to_csv(
        tmp_path / "t.csv", index=False, lineterminator="\n"
    )
    stream(tmp_path / "t.csv", tmp_path / "o.sdf", keep_columns=True)
    table = read_table(tmp_path / "o.sdf", targets=["y"])
    assert len(table) == 7 and table.ok.all() and np.allclose(table.y, 1 / 3)


@pytest.mark.parametrize("out", ["o.csv", "o.parquet", "o.sdf", "o.sdf.gz"])
@pytest.mark.parametrize("source", ["t.csv", "t.parquet", "t.sdf"])
def test_kept_columns_and_records_are_gone_on_with_to_the_same_bytes(tmp_path: Path, source: str, out: str) -> None:
    path = write(tmp_path / source, {name: values * 3 for name, values in COLUMNS.items()})
    stream(path, tmp_path / f"whole-{out}", keep_columns=True)
    dies = Atoms()
    dies.last = 4
    with pytest.raises(KeyboardInterrupt):
        stream(path, tmp_path / out, dies, keep_columns=True)
    assert stream(path, tmp_path / out, keep_columns=True).resumed == 8
    assert (tmp_path / out).read_bytes() == (tmp_path / f"whole-{out}").read_bytes()
    dies.calls = 0
    with pytest.raises(KeyboardInterrupt):
        stream(path, tmp_path / out, dies, keep_columns=True)
    done = stream(path, tmp_path / out)
    assert done.resumed == 0 and "option" in done.note


EDITS = {  # of the same length: an id, a molecule, the header, a column that is kept, a row that is still to come
    "an id": (b"id-03,", b"id-99,", True),
    "a molecule": (b"CCCO,3", b"CCCN,3", True),
    "the header": (b"kept\n", b"Kept\n", True),
    "a kept column": (b"3-note", b"3-Note", True),
    "a row to come": (b"id-17,", b"id-99,", False),
}


@pytest.mark.parametrize("edit", EDITS)
def test_an_input_edited_between_two_runs_is_noticed(tmp_path: Path, edit: str) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    rows = "".join(f"id-{i:02d},{'C' * (i % 7)}O,{i},{i}-note\n" for i in range(20))
    path.write_text("id,smiles,n,kept\n" + rows)
    dies = Atoms()
    dies.last = 3
    with pytest.raises(KeyboardInterrupt):
        stream(path, out, dies, chunk_rows=4, keep_columns=True)
    before, about = path.read_bytes(), path.stat()
    old, new, matters = EDITS[edit]
    path.write_bytes(before.replace(old, new, 1))
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    assert path.read_bytes() != before and path.stat().st_size == about.st_size
    done = stream(path, out, chunk_rows=4, keep_columns=True)
    assert done.resumed == (0 if edit == "the header" else 8 if matters else 12)
    assert ("another model, input or option" in done.note) == matters
    stream(path, tmp_path / "whole.csv", chunk_rows=4, keep_columns=True)
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()


@pytest.mark.parametrize("rows", [7, 8, 9])
def test_rows_cut_off_or_put_on_behind_those_done_are_noticed(tmp_path: Path, rows: int) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("smiles\n" + "C\n" * 8)

    class Dies(Atoms):
        def predict(self, table):
            made = super().predict(table)
            os.truncate(path, 7 + 2 * 7) if rows == 7 else None
            return made

    dies = Dies()
    dies.last = 2
    with pytest.raises(KeyboardInterrupt):
        stream(path, out, dies, chunk_rows=3)
    about = path.stat()
    path.write_text("smiles\n" + "C\n" * rows)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
    stream(path, out, chunk_rows=3)
    assert len(read(out)) == rows


def test_descriptors_are_part_of_what_is_compared(tmp_path: Path) -> None:
    path, out = tmp_path / "t.csv", tmp_path / "o.csv"
    path.write_text("smiles,f,g\n" + "".join(f"C,{i},{i}\n" for i in range(8)))
    for column, resumed in (("g", 4), ("f", 2)):
        dies = Atoms()
        dies.last = 2
        with pytest.raises(KeyboardInterrupt):
            stream(path, out, dies, features=["f"])
        about, text = path.stat(), path.read_text()
        path.write_text(text.replace("C,1,1", "C,7,1" if column == "f" else "C,1,7"))
        os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))
        assert stream(path, out, features=["f"]).resumed == resumed
        path.write_text(text)


def test_a_further_column_of_atoms_in_space_is_described(tmp_path: Path) -> None:
    rows = pd.DataFrame({"SMILES": ["O", "CO"], "pose": [write_frame(WATER.numbers, WATER.positions), ""]})
    predict_stream(Atoms(), rows, tmp_path / "out.csv", smiles="SMILES", geometry="pose")
    assert pd.read_csv(tmp_path / "out.csv")["pose"].fillna("").tolist() == ["geometry of 3 atoms", ""]

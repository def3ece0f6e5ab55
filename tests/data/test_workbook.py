"""Excel workbooks: each row a row, what is stored is read, nothing is run, and what is written reads back."""

from __future__ import annotations

import datetime
from pathlib import Path

import openpyxl
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import ConflictError, FormatError, MissingColumnError, MolgraphError, TooLargeError
from molgraph.base.workbook import workbook_bytes
from molgraph.cli.options import check_writable
from molgraph.data.read import iter_rows, read_table

SMILES = ["CCO", None, "c1ccccc1", "not one", "CCN"]


@pytest.fixture
def book(tmp_path: Path) -> Path:
    made = openpyxl.Workbook()
    first = made.active
    first.append([])
    first.append(["id", "smiles", "y", "day", "ok"])
    days = [datetime.datetime(2024, 3, 1), None, datetime.datetime(2024, 3, 1, 8, 30), None, None]
    ids, values = ["007", None, "1.50", 8, "=A1"], [1, None, 2.5, 1e-7, "> 3"]
    for id, smiles, y, day in zip(ids, SMILES, values, days, strict=True):
        first.append([id, smiles, y, day, True])
    first["A7"].data_type = "s"
    first.append([])
    made.create_sheet("Plate 2").append(["smiles", "y"])
    made["Plate 2"].append(["CCC", 4])
    made.save(tmp_path / "book.xlsx")
    return tmp_path / "book.xlsx"


def test_each_row_is_a_row_with_its_id_and_its_value(book: Path) -> None:
    table = read_table(book, targets=["y"], qualifiers="drop", id="id")
    assert table.ids.tolist() == ["007", "", "1.50", "8", "=A1"] and table.smiles.tolist() == [s or "" for s in SMILES]
    assert table.status.tolist()[1] == "missing" and table.y[[0, 2, 3], 0].tolist() == [1, 2.5, 1e-7]
    (rows,) = iter_rows(book, chunk_rows=99, keep_columns=True)
    assert rows.columns["day"].to_pylist()[::2] == ["2024-03-01", "2024-03-01 08:30:00", ""]
    assert [len(part.table) for part in iter_rows(f"{book}::Sheet", chunk_rows=2)] == [2, 2, 1]
    assert read_table(f"{book}::Plate 2", targets=["y"]).y.tolist() == [[4.0]]
    with pytest.raises(MissingColumnError, match="no sheet 'Plate 3'") as error:
        read_table(f"{book}::Plate 3")
    assert "Plate 2" in str(error.value)


def test_formulas_are_the_values_that_are_stored_and_never_silently_empty(tmp_path: Path) -> None:
    path, made = tmp_path / "f.xlsx", openpyxl.Workbook()
    made.active.append(["smiles", "y"])
    made.active.append(["CCO", "=1+1"])
    made.save(path)
    with pytest.raises(FormatError, match="formula in cell B2 has no stored value"):
        read_table(path)
    import zipfile

    with zipfile.ZipFile(path) as old, zipfile.ZipFile(tmp_path / "g.xlsx", "w") as new:
        for name in old.namelist():
            new.writestr(name, old.read(name).replace(b"<v></v>", b"<v>2</v>").replace(b"<v />", b"<v>2</v>"))
    assert read_table(tmp_path / "g.xlsx", targets=["y"]).y.tolist() == [[2.0]]


def test_broken_and_odd_files_are_refused_in_a_sentence(tmp_path: Path, book: Path) -> None:
    (tmp_path / "no.xlsx").write_bytes(b"smiles,y\nCCO,1\n")
    (tmp_path / "cut.xlsx").write_bytes(book.read_bytes()[:2000])
    pd.DataFrame().to_excel(tmp_path / "empty.xlsx")
    for name in ("no.xlsx", "cut.xlsx", "empty.xlsx", "gone.xlsx"):
        with pytest.raises(MolgraphError) as error:
            read_table(tmp_path / name)
        assert error.value.hint
    with pytest.raises(TooLargeError):
        workbook_bytes(["a"], [["x" * 40_000]])
    with pytest.raises(ConflictError):
        check_writable(book, inputs=[f"{book}::Plate 2"])


def test_predictions_and_scores_are_written_as_a_workbook_that_reads_back(tmp_path: Path, book: Path) -> None:
    data = tmp_path / "train.xlsx"
    frame = pd.DataFrame({"smiles": ["C" * n for n in range(1, 31)], "y": [float(n) for n in range(30)]})
    frame.to_excel(data, index=False)
    made = molgraph.train(data, targets=["y"], model="knn", split="random", fractions=(0.8, 0.0, 0.2))
    outs = [tmp_path / "a.xlsx", tmp_path / "b.xlsx", tmp_path / "c.csv"]
    for out in outs:
        molgraph.predict_file(made.model, book, out, keep_columns=True, id="id")
    assert outs[0].read_bytes() == outs[1].read_bytes()
    back = pd.read_excel(outs[0], dtype={"id": str})
    text = pd.read_csv(outs[2], dtype=str)
    assert len(back) == 5 and back["id"].tolist()[0] == "007" and back["id"].tolist()[4] == "=A1"
    assert back["status"].tolist() == text["status"].tolist()
    assert back["y_predicted"].dtype == float
    assert [str(v) for v in back["y_predicted"].dropna()] == [str(float(v)) for v in text["y_predicted"].dropna()]
    from molgraph.base.csv_text import write_csv

    write_csv(tmp_path / "s.xlsx", made.evaluate(data))
    assert pd.read_excel(tmp_path / "s.xlsx")["metric"].tolist() == made.evaluate(data)["metric"].tolist()


def test_titles_above_the_header_and_sheets_before_the_table_are_passed_over(tmp_path: Path) -> None:
    made = openpyxl.Workbook()
    made.active.append(["Read me: the compounds are on the next sheet"])
    data = made.create_sheet("Data")
    for row in (["Project X, 2026"], [], ["Compound", "SMILES", "y"], ["A-1", "CCO", 1], ["A-2", "CCN", 2]):
        data.append(row)
    made.save(tmp_path / "book.xlsx")
    table = read_table(tmp_path / "book.xlsx", targets=["y"], id="Compound")
    assert table.ids.tolist() == ["A-1", "A-2"] and table.y.tolist() == [[1.0], [2.0]]
    other = openpyxl.Workbook()
    for row in (["name", "text", "y"], ["drug", "CCO", 1], ["compound", "CCN", 2]):
        other.active.append(row)
    other.save(tmp_path / "other.xlsx")
    assert read_table(tmp_path / "other.xlsx", targets=["y"], smiles="text").y.tolist() == [[1.0], [2.0]]

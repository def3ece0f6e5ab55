"""The shell's way from a messy table to a model: audit, curate, train, evaluate."""

from __future__ import annotations

import contextlib
import csv
import gzip
import re
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.cli.main import app

QUICK = ("-m", "mean", "--split", "random", "-o", "m.mgm")


def call(folder: Path, *words: str) -> tuple[int, str, str]:
    """Exit code, output and messages of a verb that runs in a folder."""
    with contextlib.chdir(folder):
        done = CliRunner().invoke(app, list(words), prog_name="molgraph", env={"COLUMNS": "80"})
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A table with salts, duplicates, a bad molecule, qualifiers, units, and a name with a blank."""
    smiles = ["CCO", "OCC", "[Na+].CC[O-]", "C(C", *("C" * n for n in range(4, 30))]
    rows = {"Compound": [f"A-{n:03d}" for n in range(30)], "smiles": smiles}
    rows["pIC50 mean"] = ["5.0", "6.00", "7", "8", ">9.0", "<4", *(f"{n / 10 + 4:.2f}" for n in range(24))]
    rows["IC50"] = [f"{10 ** (n / 5):.4g} {'uM' if n % 4 == 0 else 'nM'}" for n in range(30)]
    rows["batch"] = ["x, y"] * 30
    pd.DataFrame(rows).to_csv(tmp_path / "a.csv", index=False)
    return tmp_path


def test_the_audit_counts_and_never_ends_on_cells(folder: Path) -> None:
    code, out, _ = call(folder, "data", "audit", "a.csv", "-t", "pIC50 mean", "-t", "IC50", "-o", "odd.csv")
    assert code == 0 and "qualifier in pIC50 mean" in out and "pIC50 mean (regression): 28 values, 2 missing" in out
    found = pd.read_csv(folder / "odd.csv")["finding"].value_counts()
    assert found["qualifier in pIC50 mean"] == 2 and found["unit in IC50"] == 30


def test_hints_quote_names_with_blanks(folder: Path) -> None:
    (folder / "b.csv").write_text("smiles,p mean\nCCO,1\nCCN,high\nCCC,3\n")
    (folder / "c.csv").write_text("smiles,p mean\nCCO,1\nCCN,2\nCCC,3\n")
    assert "--target 'p mean'" in call(folder, "train", "c.csv", *QUICK)[2]
    assert "ask for 'p mean:multiclass'" in call(folder, "train", "b.csv", "-t", "p mean", *QUICK)[2]


def test_training_refuses_what_it_could_only_guess_and_its_ways_out_work(folder: Path) -> None:
    code, _, said = call(folder, "train", "a.csv", "-t", "pIC50 mean", *QUICK)
    assert code == 3 and "'>9.0' in row 5: a bound" in said and "--qualifiers drop" in said
    code, _, said = call(folder, "train", "a.csv", "-t", "pIC50 mean", *QUICK, "--qualifiers", "strip")
    assert code == 0 and "2 labels with a qualifier (<, >, ~) are read as if they were exact" in said
    code, _, said = call(folder, "train", "a.csv", "-t", "IC50", *QUICK)
    assert code == 3 and "multiclass" not in said and "--unit nM" in said and "(nM 22, uM 8)" in said
    code, _, said = call(folder, "train", "a.csv", "-t", "IC50", *QUICK, "--unit", "nM")
    assert code == 0 and "--log learns their logarithms" in said


def test_a_model_of_logarithms_says_so_and_is_evaluated_alike(folder: Path) -> None:
    options = ("--unit", "nM", "--log", "--duplicates", "median", "-o", "m.mgm")
    code, _, said = call(folder, "train", "a.csv", "-t", "IC50", *QUICK, *options)
    assert code == 0 and "learning log10_IC50" in said and "duplicates (median): 28 of 30 rows stay" in said
    (folder / "new.csv").write_text("smiles\nCCO\n")
    assert call(folder, "predict", "m.mgm", "new.csv")[1].startswith("id,smiles,log10_IC50,")
    code, out, said = call(folder, "evaluate", "m.mgm", "a.csv")
    assert code == 0 and "log10_IC50" in out and "30 values were brought to nM" in said
    (folder / "late.csv").write_text("smiles,IC50\nCCO,10\nCCN,1000\nCCC,100\n")
    assert "--unit none" in call(folder, "evaluate", "m.mgm", "late.csv")[2]
    assert call(folder, "evaluate", "m.mgm", "late.csv", "--unit", "none")[0] == 0


def test_curate_writes_a_table_that_trains_as_it_is(folder: Path) -> None:
    words = ("-t", "pIC50 mean", "--qualifiers", "drop", "-o", "clean.csv", "--removed", "why.csv")
    code, out, said = call(folder, "data", "curate", "a.csv", *words)
    assert code == 0 and "25 of 30 rows stay" in out and "molgraph train clean.csv -t 'pIC50 mean'" in said
    raw, made, why = (pd.read_csv(folder / name, dtype=str) for name in ("a.csv", "clean.csv", "why.csv"))
    assert list(made.columns) == list(raw.columns) and made["batch"].eq("x, y").all()
    assert made.loc[0, ["Compound", "smiles", "pIC50 mean"]].tolist() == ["A-000", "CCO", "6"]
    rest = raw.iloc[6:].reset_index(drop=True)
    pd.testing.assert_frame_equal(made.iloc[1:].reset_index(drop=True), rest)  # every other cell as it stood
    assert sorted(why["row"].astype(int)) == [2, 3, 4, 5, 6] and why["reason"].str.contains("unreadable").sum() == 1
    code, _, said = call(folder, "train", "clean.csv", "-t", "pIC50 mean", *QUICK)
    assert code == 0 and "duplicates" not in said
    assert "--target was named" in call(folder, "data", "curate", "a.csv", "-o", "other.csv")[2]
    assert call(folder, "data", "curate", "a.csv", "-o", "other.parquet")[0] == 2
    assert call(folder, "data", "curate", "a.csv", "-o", "a.csv")[0] == 2


def test_columns_of_units_and_relations_follow_what_curate_made_of_the_values(folder: Path) -> None:
    """Values were brought to nM beside a column that still said uM: training with --unit nM multiplied once more."""
    rows = [("CCO", "0,25", "uM", ">"), ("OCC", "300", "nM", "="), ("CCN", "0,5", "µM", "="), ("CCCC", "70", "nM", "=")]
    rows += [("C" * n, f"{n}", "nM", "=") for n in range(5, 30)]
    frame = pd.DataFrame(rows, columns=["smiles", "IC50", "units", "relation"])
    frame.to_csv(folder / "u.csv", index=False, sep=";")
    words = ("data", "curate", "u.csv", "-t", "IC50", "-o", "clean.csv")
    code, _, said = call(folder, *words, "--unit", "nM", "--qualifiers", "drop")
    assert code == 0 and "column 'units' says nM now" in said
    made = pd.read_csv(folder / "clean.csv", dtype=str)
    assert made.head(3).values.tolist() == [
        ["CCO", "300", "nM", "="],
        ["CCN", "500", "nM", "="],
        ["CCCC", "70", "nM", "="],
    ]
    code, _, said = call(folder, "train", "clean.csv", "-t", "IC50", *QUICK, "--unit", "nM")
    assert code == 0 and "(nM 28)" in said and "relation" not in said
    assert call(folder, *words, "--qualifiers", "drop")[0] == 0  # no unit asked for: units stay as they stand
    assert set(pd.read_csv(folder / "clean.csv")["units"]) == {"uM", "nM", "µM"}


@pytest.mark.parametrize("name", ["a.smi", "-"])
def test_curate_reads_other_sources(folder: Path, name: str) -> None:
    (folder / "a.smi").write_text("CCO one\nOCC two\nCCN three\n")
    with contextlib.chdir(folder):
        text = (folder / "a.csv").read_bytes() if name == "-" else None
        done = CliRunner().invoke(app, ["data", "curate", name, "-o", "c.csv.gz"], input=text, prog_name="molgraph")
    assert done.exit_code == 0, done.stderr
    assert len(pd.read_csv(folder / "c.csv.gz")) == (2 if name == "a.smi" else 27)


TORN = "smiles,y,note,id\n" + "".join(f'{"C" * (n % 8 + 1)},{n % 8},"a\rb{n}","p\rq{n}"\n' for n in range(16))


@pytest.mark.parametrize(
    ("name", "words", "rows", "cell"),
    [
        ("o.csv", ("curate", "-t", "y", "-o", "o.csv"), 8, "a\rb7"),
        ("o.csv.gz", ("curate", "-t", "y", "-o", "o.csv.gz"), 8, "a\rb7"),
        ("why.csv", ("curate", "-t", "y", "--id", "id", "-o", "o.csv", "--removed", "why.csv"), 8, "p\rq15"),
        (
            "s.csv",
            ("split", "--split", "random", "--fractions", "0.5,0.25,0.25", "--id", "id", "-o", "s.csv"),
            16,
            "p\rq7",
        ),
        ("odd.csv", ("audit", "-t", "y", "--id", "id", "-o", "odd.csv"), 16, "p\rq7"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_a_cell_with_a_lone_carriage_return_stays_a_cell(
    tmp_path: Path, name: str, words, rows: int, cell: str
) -> None:
    (tmp_path / "cr.csv").write_text(TORN, newline="")
    code, _, said = call(tmp_path, "data", words[0], "cr.csv", *words[1:])
    assert code == 0, said
    opened = gzip.open if name.endswith(".gz") else open
    with opened(tmp_path / name, "rt", newline="") as file:
        head, *body = csv.reader(file)
    assert len(body) == rows and all(len(row) == len(head) for row in body) and cell in {c for row in body for c in row}


def test_no_csv_is_written_by_another_writer() -> None:
    writers = re.compile(r"\.to_csv\(|csv\.(Dict)?[wW]riter\(")
    found = {p.name for p in Path(molgraph.__file__).parent.rglob("*.py") if writers.search(p.read_text("utf-8"))}
    assert found == {"csv_text.py"}


def test_curate_changes_no_number_of_another_column(tmp_path: Path) -> None:
    whole, other = pa.array([9007199254740993, None, 3], pa.int64()), pa.array([1.0, None, 2.5e-7])
    columns = {"smiles": ["CCO", "CCN", "CCC"], "y": [1.0, 2.0, 3.0], "cid": whole, "share": other}
    columns |= {"big": pa.array([2**64 - 1, None, 0], pa.uint64()), "pair": pa.array([{"a": 1}, {"a": None}, None])}
    columns |= {
        "flag": pa.array([True, None, False]),
        "many": pa.array([[1, None], [2], None]),
        "raw": [b"a", None, b"c"],
    }
    pq.write_table(pa.table(columns), tmp_path / "n.parquet")
    assert call(tmp_path, "data", "curate", "n.parquet", "-t", "y", "-o", "n.csv")[0] == 0
    found = pd.read_csv(tmp_path / "n.csv", dtype=str, keep_default_na=False)
    assert found["cid"].tolist() == ["9007199254740993", "", "3"] and found["share"].tolist() == ["1.0", "", "2.5e-07"]
    assert found["big"].tolist() == ["18446744073709551615", "", "0"] and found["raw"].tolist() == ["a", "", "c"]
    assert found["pair"].tolist() == ["{'a': 1}", "{'a': None}", ""] and found["many"].tolist() == [
        "[1, None]",
        "[2]",
        "",
    ]
    assert found["flag"].tolist() == ["True", "", "False"]

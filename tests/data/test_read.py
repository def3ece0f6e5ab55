"""Reading tables: every format, columns found or asked for, values verbatim, clear errors, fixed chunks."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from molgraph.base.contracts import Target
from molgraph.base.errors import CellError, LabelError, MissingColumnError, UnknownNameError
from molgraph.chem.smiles import parse_smiles
from molgraph.data.read import read_table
from molgraph.data.table import make_table
from tests.data.chunked import iter_tables

NASTY = Path(__file__).resolve().parent.parent / "nasty.tsv"
UNICODE = ("utf-8-sig", "utf-16", "utf-16-le", "utf-16-be")
SMALL = "smiles,y,id\nCCO,1.5,007\nCCN,,NA\n,2.5,x\n"


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def same(a, b) -> None:
    """Two tables are equal, cell by cell."""
    pd.testing.assert_frame_equal(a.to_frame(), b.to_frame())
    assert a.targets == b.targets


def test_a_small_csv(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, SMALL), targets=["y"])
    assert list(table.smiles) == ["CCO", "CCN", ""]
    assert list(table.ids) == ["007", "NA", "x"]
    assert list(table.status) == ["ok", "ok", "missing"]
    np.testing.assert_equal(table.y[:, 0], [1.5, np.nan, 2.5])
    assert table.targets == (Target("y"),)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: "\ufeff" + t,
        lambda t: t.replace("\n", "\r\n"),
        lambda t: t.replace("\n", "\r"),
        lambda t: t.replace(",", "\t"),
        lambda t: t.replace(",", ";"),
        lambda t: t.replace(",", "|"),
        lambda t: t.replace("smiles,y,id", " smiles , y,  id  "),
        lambda t: t.replace("smiles,y,id", '"smiles","y","id"'),
        lambda t: t.replace("CCO", '"CCO"'),
        lambda t: t.rstrip("\n"),
        lambda t: t.replace("\n", "\n\n"),
        lambda t: gzip.compress(t.encode()),
        lambda t: gzip.compress(t[:20].encode()) + gzip.compress(t[20:].encode()),
        *(lambda t, encoding=encoding: t.encode(encoding) for encoding in UNICODE),
    ],
)
def test_the_same_table_in_other_clothes(tmp_path: Path, change) -> None:
    plain = read_table(write(tmp_path, SMALL), targets=["y"])
    same(read_table(write(tmp_path, change(SMALL), "other.csv"), targets=["y"]), plain)


def test_every_source_gives_the_same_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = pd.DataFrame({"smiles": ["CCO", "CCN", None], "y": [1.5, None, 2.5], "id": ["007", "NA", "x"]})
    expected = read_table(write(tmp_path, SMALL), targets=["y"])
    frame.to_parquet(tmp_path / "t.parquet")
    sources = [frame, frame.astype(object), tmp_path / "t.parquet", {c: list(frame[c]) for c in frame}]
    for source in sources:
        same(read_table(source, targets=["y"]), expected)
    for content in (SMALL.encode(), gzip.compress(SMALL.encode()), (tmp_path / "t.parquet").read_bytes()):
        stdin = io.TextIOWrapper(io.BytesIO(content))
        monkeypatch.setattr("sys.stdin", stdin)
        same(read_table("-", targets=["y"]), expected)


def test_lists_and_tables() -> None:
    assert list(read_table(["CCO", None, float("nan"), ""]).status) == ["ok", "missing", "missing", "missing"]
    assert list(read_table(np.array(["C", "CC"])).smiles) == ["C", "CC"]
    table = read_table("builtin:chembl2321810")
    assert len(table) == 1017 and table.targets == (Target("pActivity"),)
    assert np.abs(np.corrcoef(np.arange(1017), table.y[:, 0])[0, 1]) < 0.1
    same(read_table("builtin:chembl2321810", targets=["pActivity"]), table)
    assert read_table(table) is table
    with pytest.raises(LabelError):
        read_table("builtin:nci", need_targets=True)
    with pytest.raises(UnknownNameError, match="chembl2321810"):
        read_table("builtin:chembl")


def test_smi_names_tabs_and_blank_lines(tmp_path: Path) -> None:
    text = "CCO ethanol, dry\nOCC ; drop table\n\nCCC\npropane\n*C |$R1;$| methyl\n\tnothing\nOCC ; x\ttabbed\n"
    table = read_table(write(tmp_path, text, "t.smi"))
    assert list(table.smiles) == ["CCO", "OCC", "", "CCC", "propane", "*C |$R1;$|", "", "OCC ; x"]
    assert list(table.ids) == ["ethanol, dry", "; drop table", "", "", "", "methyl", "nothing", "tabbed"]
    assert list(table.status) == ["ok", "ok", "missing", "ok", "ok", "ok", "missing", "unreadable"]
    with_header = read_table(write(tmp_path, "SMILES\tName\n" + text, "h.smi"))
    same(with_header, table)


def test_sdf_records_that_fail_stay_rows(tmp_path: Path) -> None:
    from rdkit import Chem

    good = Chem.MolToMolBlock(Chem.MolFromSmiles("C[C@H](N)C(=O)O"))
    bad = good.replace(" C ", " Qq", 1)
    text = f"{'ala' + good}> <y>\n1.5\n\n> <note>\ntwo\nlines\n\n$$$$\n{bad}> <y>\n2\n\n$$$$\n{good}$$$$\n"
    table = read_table(write(tmp_path, text, "t.sdf"), targets=["y"])
    assert table.smiles[0] == "C[C@H](N)C(=O)O"
    assert list(table.status)[::2] == ["ok", "ok"]
    np.testing.assert_equal(table.y[:, 0], [1.5, 2.0, np.nan])
    assert table.ids[0] == "ala"
    assert table.reason[1] == "Post-condition Violation: Element 'Qq' not found"
    same(read_table(write(tmp_path, gzip.compress(text.encode()), "t.sdf.gz"), targets=["y"]), table)
    broken = "x\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0 oops\nM  END\n$$$$\n"
    rows = read_table(write(tmp_path, broken + text, "b.sdf"))
    assert len(rows) == 4 and rows.status[0] == "unreadable" and rows.reason[0]


@pytest.mark.parametrize("name", ["t.sdf", "t.sdf.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_field_of_late_records_is_a_column(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name, end) -> None:
    monkeypatch.setattr("molgraph.data.reading.source.SAMPLE_BYTES", 500)
    record = "m\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 C   0  0\nM  END\n"
    text = (f"{record}> <a>\n1\n\n$$$$\n" * 20 + f"{record}>  25  <late one> (3)\n7\n\n$$$$\n").replace("\n", end)
    path = write(tmp_path, gzip.compress(text.encode()) if name.endswith("gz") else text, name)
    table = read_table(path, targets=["late one"])
    assert len(table) == 21 and table.y[-1, 0] == 7 and np.isnan(table.y[:-1]).all()
    assert [len(t) for t in iter_tables(path, chunk_rows=20, targets=["late one:regression"])] == [20, 1]


def test_the_nasty_list_row_by_row(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = [line.split("\t") for line in NASTY.read_text(encoding="utf-8").split("\n")[1:-1]]
    path = tmp_path / "n.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["smiles", "what"], *([line[0], line[2]] for line in lines)])
    from molgraph.data.standardise import check_molecules

    table = check_molecules(read_table(path, id="what"))
    assert list(table.smiles) == [line[0] for line in lines]
    assert list(table.ids) == [line[2] for line in lines]
    assert list(table.status) == [line[1] for line in lines]
    assert all(bool(r) == (s != "ok") for r, s in zip(table.reason, table.status, strict=True))
    assert capfd.readouterr().err == ""
    assert list(read_table(path, on_error="drop").smiles) == [line[0] for line in lines if line[1] == "ok"]
    first = next(i for i, line in enumerate(lines) if line[1] != "ok")
    with pytest.raises(CellError, match=f"row {first + 1}:"):
        read_table(path, on_error="stop")


@pytest.mark.data
def test_the_shared_nasty_list(data_dir: Path) -> None:
    path = data_dir.parent / "nasty.smi"
    if not path.is_file():
        pytest.skip("this folder of datasets has no nasty.smi beside it")
    table = read_table(path)
    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    assert list(table.smiles) == [line.split("\t")[0] for line in lines]
    assert list(table.ids) == [line.split("\t")[1] for line in lines]
    assert [r == "" for r in table.reason[table.status != "ok"]] == [False] * int((table.status != "ok").sum())


def test_columns_by_name_and_by_value() -> None:
    frame = pd.DataFrame({"mol": ["m1", "m2"], "Canonical_SMILES": ["CCO", "CCN"], "sex": ["F", "F"]})
    assert read_table(frame).entities[0].name == "Canonical_SMILES"
    assert read_table({"x": ["CCO", "c1ccccc1"], "sex": ["F", "F"], "n": [1, 2]}).entities[0].name == "x"
    assert read_table({"smiles": ["CCO"], "canonical_smiles": ["OCC"]}).entities[0].name == "smiles"
    assert read_table({"a": ["CCO"], "b": ["CCN"]}, smiles="b").smiles[0] == "CCN"
    with pytest.raises(MissingColumnError, match="'smiles'"):
        read_table({"smiles": ["C"]}, smiles="smile")
    with pytest.raises(MissingColumnError, match="'activity'"):
        read_table({"smiles": ["C"], "activity": [1.0]}, targets=["actvity"])
    with pytest.raises(LabelError, match=": a, b\n"):
        read_table({"smiles": ["C", "CC"], "a": [1, 2], "b": ["3", ""], "c": ["u", "v"]}, need_targets=True)


def test_weights_features_and_split() -> None:
    data = {
        "smiles": ["C", "CC", "CCC"],
        "w": ["1", "0", "2.5"],
        "logp": ["1", "", "inf"],
        "part": ["train", "NA", ""],
        "y": [1, 2, 3],
    }
    table = read_table(data, targets="y", weight="w", features=["logp"], split="part")
    assert table.weights.tolist() == [1, 0, 2.5]
    assert list(table.split) == ["train", "NA", ""]
    assert list(table.status) == ["ok", "missing", "unreadable"]
    assert "descriptor column 'logp'" in table.reason[1]


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=12)
rows_of = st.lists(
    st.tuples(st.sampled_from(["CCO", "C(C", "", " ", "c1ccccc1", "[Na+].[Cl-]"]), cells, cells), max_size=20
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rows=rows_of,
    end=st.sampled_from(["\n", "\r\n"]),
    start=st.sampled_from(["", "\ufeff"]),
    packed=st.booleans(),
    delimiter=st.sampled_from([",", "\t", ";"]),
    chunk_rows=st.integers(1, 7),
)
def test_any_csv_reads_back(tmp_path: Path, rows, end, start, packed, delimiter, chunk_rows) -> None:
    """Ids, split words and SMILES come back row for row, and chunks joined are the whole."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([["smiles", "name", "part"], *rows])
    content = (start + text.getvalue()).encode()
    path = write(tmp_path, gzip.compress(content) if packed else content)
    table = read_table(path, id="name", split="part")
    assert list(zip(table.smiles, table.ids, table.split, strict=True)) == rows
    chunks = list(iter_tables(path, chunk_rows=chunk_rows, id="name", split="part"))
    assert [len(c) for c in chunks[:-1]] == [chunk_rows] * (len(chunks) - 1)
    joined = pd.concat([c.to_frame() for c in chunks], ignore_index=True)
    pd.testing.assert_frame_equal(joined, table.to_frame(), check_dtype=False)


def test_chunks_cross_blocks_and_ids_run_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("molgraph.data.reading.delimited.PIECE_ROWS", 40)
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"smiles": ["C" * n for n in rng.integers(1, 30, 3000)], "y": rng.normal(size=3000)})
    frame.to_csv(tmp_path / "t.csv", index=False)
    whole = read_table(tmp_path / "t.csv", targets=["y"])
    np.testing.assert_array_equal(whole.y[:, 0], frame["y"])
    chunks = list(iter_tables(tmp_path / "t.csv", chunk_rows=700, targets=["y"]))
    assert [len(c) for c in chunks] == [700, 700, 700, 700, 200]
    assert [c.ids[0] for c in chunks] == ["0", "700", "1400", "2100", "2800"]
    np.testing.assert_array_equal(np.concatenate([c.y for c in chunks]), whole.y)
    make_smi = write(tmp_path, "".join(f"{s} n{i}\n" for i, s in enumerate(frame["smiles"])), "t.smi")
    parts = list(iter_tables(make_smi, chunk_rows=700))
    assert [c.ids[0] for c in parts] == ["n0", "n700", "n1400", "n2100", "n2800"]


def test_a_pass_over_the_whole_file_decides_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "smiles,y,c\n" + "C,1,a\n" * 5 + "CC,0.5,b\n"
    path = write(tmp_path, text)
    chunks = list(iter_tables(path, chunk_rows=2, targets=["y", "c:multiclass"]))
    assert {c.targets for c in chunks} == {(Target("y"), Target("c", "multiclass", classes=("a", "b")))}
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    *_, last = iter_tables("-", chunk_rows=2, targets=["y"])
    assert last.reason.tolist() == ["", "target 'y' is 0.5; a binary target has labels 0 and 1"]


def test_memory_stays_flat(tmp_path: Path) -> None:
    """A chunk's size does not depend on the file's: a thousand rows are held at once, whatever the length."""
    import tracemalloc

    peaks = []
    for n in (5_000, 50_000):
        path = write(tmp_path, "smiles\n" + "CCOCC\n" * n, f"{n}.csv")
        tracemalloc.start()
        assert sum(len(t) for t in iter_tables(path, chunk_rows=1000)) == n
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0] + 2_000_000


def test_bare_lists_of_smiles_on_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"CCO\nc1ccccc1 benzene\n")))
    assert list(read_table("-").smiles) == ["CCO", "c1ccccc1"]


def test_builtin_is_readable() -> None:
    table = read_table("builtin:chembl2321810")
    assert all(parse_smiles(s).mol for s in table.smiles)
    assert make_table(list(table.smiles)).ok.all()

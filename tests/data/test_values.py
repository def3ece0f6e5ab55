"""Messy cells of values: decimal commas, qualifiers, units and words are read as asked or refused, and said."""

from __future__ import annotations

import gzip
import random
from pathlib import Path

import mpmath
import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import AmbiguousColumnError, CellError, FormatError, LabelError, MismatchError, UsageError
from molgraph.data.log import log10
from molgraph.data.read import read_table
from molgraph.data.reading.cells import is_missing, read_cell
from molgraph.data.reading.roles import SideColumns, find_side_columns
from molgraph.data.reading.units import convert
from tests.data.chunked import iter_tables

nan = float("nan")


def messy(values: list, **more: list) -> dict[str, list]:
    return {"smiles": ["C" * (i + 1) + "O" for i in range(len(values))], "y": values, **more}


def read(values: list, asked: str = "y", *, beside: dict[str, list] | None = None, **options):
    return read_table(messy(values, **(beside or {})), targets=[asked], **options)


@pytest.mark.parametrize(
    ("values", "options", "expected", "note"),
    [
        (["4,62", "5", "-0,5"], {"decimal": ","}, [4.62, 5, -0.5], "2 cells with decimal commas"),
        (["1,234", "5"], {"decimal": ","}, [1.234, 5], "1 cells with decimal commas"),
        ([">8.0", "5.1", "~ 2"], {"qualifiers": "drop"}, [nan, 5.1, nan], "2 labels with a qualifier .* taken out"),
        ([">8.0", "5.1", "<=2"], {"qualifiers": "strip"}, [8, 5.1, 2], "2 labels .* as if they were exact"),
        (["=8.0", "5.1"], {}, [8, 5.1], None),
        (["250 nM", "0.25 uM", "0.3 µM"], {"unit": "nM"}, [250, 250, 300], "3 values were brought to nM"),
        (["250 nM", "3 mg/L", "7"], {"unit": "uM"}, [0.25, nan, nan], "2 values without a unit"),
        ([">10 uM", "5 uM"], {"unit": "nM", "qualifiers": "drop"}, [nan, 5000], "1 labels with a qualifier"),
        (["5 %", "1,5"], {"unit": "M", "decimal": ","}, [nan, nan], "without a unit"),
    ],
)
def test_cells_are_read_as_asked_and_the_table_says_so(values, options, expected, note) -> None:
    table = read(values, **options)
    np.testing.assert_array_equal(table.y[:, 0], expected)
    if note is None:
        assert table.notes == ()
    else:
        assert any(pd.Series(table.notes).str.contains(note)), table.notes


@pytest.mark.parametrize(
    ("values", "noun", "hint"),
    [
        (["1.5", "1,234"], "'1,234' .*row 2.*thousands", "--decimal ,"),
        (["1.5", ">10", "<1"], r"'>10' .*row 2.*\(2 ", "qualifiers='drop'"),
        (["251.2 nM", "0.3 uM", "4 nM"], r"'251.2 nM' .*row 1.*\(nM 2, uM 1\)", "--unit nM"),
        (["3 eV", "4 eV"], "'3 eV'", "numbers alone"),
    ],
)
def test_cells_that_nobody_asked_to_read_are_refused_with_the_way_out(values, noun, hint) -> None:
    with pytest.raises(CellError, match=noun) as caught:
        read(values)
    assert hint in caught.value.hint and "multiclass" not in caught.value.hint


def test_options_are_checked_and_a_unit_needs_units() -> None:
    for options in ({"decimal": ";"}, {"qualifiers": "keep"}, {"unit": "parsec"}):
        with pytest.raises(UsageError, match=next(iter(options))):
            read(["1"], **options)
    with pytest.raises(FormatError, match=r"'y' .*nM"):
        read(["1", "2.5"], unit="nM")
    assert read(["1", "2.5"], unit="none").y[:, 0].tolist() == [1, 2.5]
    with pytest.raises(CellError, match="beside points"):
        read(["1,5", "2.500"], decimal=",")
    assert read(["1,5", "2.5"], decimal=",").y[:, 0].tolist() == [1.5, 2.5]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_a_column_of_decimal_commas_is_read_where_no_comma_parts_the_columns(tmp_path: Path, suffix: str) -> None:
    text = "smiles;y;dose;n\nCCO;4,62;1,5;1\nCCN;5;2;2\nCCC;;0,25;3\n"
    path = tmp_path / f"in{suffix}"
    path.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    table = read_table(path, targets=["y"], features=["dose"])
    np.testing.assert_array_equal(table.y[:, 0], [4.62, 5, nan])
    assert table.features[:, 0].tolist() == [1.5, 2, 0.25] and "1 cells with decimal commas" in table.notes[0]
    parts = list(iter_tables(path, chunk_rows=2, features=["dose"]))
    assert [p.features[:, 0].tolist() for p in parts] == [[1.5, 2], [0.25]]
    for cell in ("1,234", "4.5"):  # thousands, perhaps; or a column of both signs
        path = tmp_path / "doubt.csv"
        path.write_text(f"smiles;y\nCCO;{cell}\nCCN;{'2,345' if cell == '1,234' else '2,34'}\n")
        with pytest.raises(CellError, match=r"'y' .*comma") as caught:
            read_table(path, targets=["y"])
        assert "--decimal ," in caught.value.hint


def test_columns_of_relations_and_units_are_noticed_and_used() -> None:
    beside = {"standard_relation": ["=", ">", "'<'"], "standard_units": ["nM", "uM", "nM"]}
    raw = read(["5", "6", "7"], beside=beside)
    assert raw.y[:, 0].tolist() == [5, 6, 7]
    assert "several units (nM 2, uM 1)" in raw.notes[0] and "--unit nM" in raw.notes[0]
    assert (
        "2 labels with <, > or ~ in column 'standard_relation'" in raw.notes[1] and "--qualifiers drop" in raw.notes[1]
    )
    made = read(["5", "6", "7"], beside=beside, unit="nM", qualifiers="drop")
    np.testing.assert_array_equal(made.y[:, 0], [5, nan, nan])
    assert read(["5", "6"], beside={"y_units": ["uM", "nM"]}, unit="nM").y[:, 0].tolist() == [5000, 6]
    assert read(["5", "6"], beside={"operator": ["Anna", "Ben"]}).notes == ()  # who measured
    assert read(["5", "6"], beside={"x_units": ["uM", "nM"]}).notes == ()  # another column's


def test_a_target_becomes_its_logarithm() -> None:
    table = read(["10", "1000", ""], log=True)
    assert table.targets[0].name == "log10_y" and "log10_y" in table.notes[0]
    np.testing.assert_array_equal(table.y[:, 0], [1, 3, nan])
    assert read(["0", "1"], log=True).targets[0].name == "y"  # classes have none
    with pytest.raises(LabelError, match="0 in row 2"):
        read(["10", "0", "3"], log=True)


def test_logarithms_are_rounded_correctly_whatever_the_processor() -> None:
    values = np.random.default_rng(0).uniform(0.01, 10_000, 500) / 1e9
    with mpmath.workdps(50):
        assert log10(values).tolist() == [float(mpmath.log10(v)) for v in values.tolist()]


def test_converting_keeps_numbers_exact() -> None:
    assert convert(251.2, "nM", "nM") == 251.2 and convert(0.001, "uM", "nM") == 1.0
    assert convert(convert(3.7, "nM", "uM"), "uM", "nM") == 3.7
    assert convert(1.0, "nM", "mg/L") is None


@pytest.mark.parametrize(
    ("pair", "note"),
    [(("Y", "N"), "Y is class 1, N is class 0"), (("t", "F"), "t is class 1"), (("pos", "NEG"), "pos")],
)
def test_two_words_are_classes_and_the_mapping_is_told(pair: tuple[str, str], note: str) -> None:
    table = read([pair[1], pair[0], "", pair[0]])
    assert table.targets[0].kind == "binary" and note in table.notes[0]
    np.testing.assert_array_equal(table.y[:, 0], [0, 1, nan, 1])


@pytest.mark.parametrize("pair", [(1, 2), (1, -1)])
def test_two_other_numbers_are_learned_as_numbers_and_the_model_says_so(pair: tuple[int, int]) -> None:
    result = molgraph.train(messy(list(pair) * 12), targets=["y"], model="mean", split="random")
    note = next(n for n in result.model.card.notes if "alone and is learned as numbers; y:multiclass" in n)
    assert note in repr(result) and note in result._repr_html_()


def test_fuzz_no_cell_ends_an_audit_and_none_is_lost() -> None:
    draw = random.Random(0)
    pool = [
        *"<>~=,.-+eE %µnuM/19",
        "nan",
        "inf",
        "1e999",
        "٣",
        "−5",
        "\u200b",
        "yes",
        "N",
        "",
        "1,5",
        "> 3 nM",
        "ca. 5",
    ]
    for _ in range(60):
        cells = ["".join(draw.choices(pool, k=draw.randint(0, 4))) for _ in range(12)]
        found = molgraph.audit(messy(cells), targets=["y"], workers=1)
        odd = ("decimal comma", "qualifier", "unit", "not a number")
        listed = sum(len(f) for f in found.findings if f.kind.removesuffix(" in y") in odd)
        assert found.text(80) and found._repr_html_() and found.targets[0].n + found.targets[0].missing == 12
        assert found.targets[0].missing == listed + sum(map(is_missing, cells))
        for cell in cells:
            assert read_cell(cell).kind


def test_a_cell_whose_unit_contradicts_its_column_marks_its_row_or_is_listed() -> None:
    values, units = ["0.25 uM", "250", "250 nM", "1 nmol/L", "2 uM"], ["nM", "nM", "nM", "nM", ""]
    table = read(values, beside={"units": units}, unit="nM")
    assert table.ok.tolist() == [False, True, True, True, True] and "'0.25 uM'" in table.reason[0]
    assert "correct the one that is wrong" in table.notes[-1]
    agreed = read(values[1:], beside={"units": units[1:]}, unit="nM")
    assert agreed.y[:, 0].tolist() == [250, 250, 1, 2000]  # an empty unit contradicts nothing
    found = molgraph.audit(messy(values, units=units), targets=["y"], unit="nM", workers=1)
    assert found.finding("two units in y").rows.tolist() == [0]
    assert found.targets[0].missing == 1


@pytest.mark.parametrize("dimensionless", ["score", "score:regression"])
def test_a_column_of_units_that_could_be_several_targets_converts_none(dimensionless: str) -> None:
    table = {"smiles": ["CCO", "CCN"], "IC50": ["0.25", "250"], "score": ["2.5", "3"]}
    with pytest.raises(AmbiguousColumnError, match=r"'units' .*'IC50', 'score'") as caught:
        read_table({**table, "units": ["uM", "nM"]}, targets=["IC50", dimensionless], unit="nM")
    assert "IC50_units" in caught.value.hint
    for units in ({"IC50_units": ["uM", "nM"]}, {"IC50_units": ["uM", "nM"], "units": ["", ""]}):
        made = read_table({**table, **units}, targets=["IC50", dimensionless], unit="nM")
        assert made.y.tolist() == [[250, 2.5], [250, 3]]
        assert any("score: no units are known, so its values are read as they stand" in n for n in made.notes)
    same = read_table({**table, "units": ["nM", ""]}, targets=["IC50", dimensionless], unit="nM")
    assert same.y.tolist() == [[0.25, 2.5], [250, 3]]
    one = read_table({**table, "units": ["uM", "nM"]}, targets=["IC50"], unit="nM")
    same = read_table({**table, "units": ["nM", "NA"]}, targets=["IC50", dimensionless], unit="nM")
    assert same.y.tolist() == [[0.25, 2.5], [250, 3]]
    assert one.y.tolist() == [[250], [250]]
    with pytest.raises(FormatError, match=r"'IC50' .*nM"):
        read_table(table, targets=["IC50", dimensionless], unit="nM")


def test_units_are_found_by_the_name_of_their_value() -> None:
    names = ["smiles", "standard_value", "pchembl_value", "standard_units"]
    found = find_side_columns(names, ["smiles"], ["standard_value", "pchembl_value"])
    assert found == {"standard_value": SideColumns(unit="standard_units")}
    assert find_side_columns(names, ["smiles"], ["pchembl_value"]) == {}  # the units are those of standard_value
    found = find_side_columns(["smiles", "y", "class", "units"], ["smiles"], ["y"])
    assert found == {"y": SideColumns(unit="units")}


def test_a_kind_says_which_target_has_no_unit() -> None:
    table = {"smiles": ["CCO", "CCN"], "IC50": ["0.25", "250"], "active": ["1", "0"], "units": ["uM", "nM"]}
    made = read_table(table, targets=["IC50", "active:binary"], unit="nM")
    assert made.y.tolist() == [[250, 1], [250, 0]]


def test_decimal_commas_are_decided_by_all_rows_where_a_file_is_read_in_parts(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("smiles;dose;n\nCCO;0,5;1\nCCN;1,5;2\nCCC;2,345;3\nCCCC;;4\n")
    parts = [part.features for part in iter_tables(path, chunk_rows=2, features=["dose", "n"])]
    np.testing.assert_array_equal(np.concatenate(parts), [[0.5, 1], [1.5, 2], [2.345, 3], [nan, 4]])
    path.write_text("smiles;dose\nCCO;1,234\nCCN;1,5\n")  # thousands, were the first row alone
    assert [part.features.item() for part in iter_tables(path, chunk_rows=1, features=["dose"])] == [1.234, 1.5]
    path.write_text("smiles;dose\nCCO;1,5\nCCN;2.5\n")  # both signs
    assert [part.ok.item() for part in iter_tables(path, chunk_rows=1, features=["dose"])] == [False, True]


def test_a_model_reads_descriptors_as_its_training_did(tmp_path: Path) -> None:
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    rows = [f'{"C" * (i % 9 + 1)}O{"N" * (i // 9)},{i},"{i},25"' for i in range(40)]
    path.write_text("\n".join(["smiles,y,dose", *rows]) + "\n")
    result = molgraph.train(
        path, targets=["y"], features=["dose"], decimal=",", model="linear", params={"features": "morgan"}
    )
    model = result.model
    expected = model.predict(path).value
    molgraph.predict_file(model, path, out)
    np.testing.assert_allclose(read_table(out, targets=["y_predicted"]).y, expected, rtol=1e-6)
    path.write_text("\n".join(["smiles,y,dose", *(row.replace(',25"', '.25"') for row in rows)]) + "\n")
    np.testing.assert_array_equal(model.predict(path).value, expected)  # points are read as ever
    path.write_text('smiles,dose\nCCO,"1,234"\n')
    assert model.predict(path).ok.all()
    assert "--decimal ," in model.predict(path, decimal=".").reason[0]


def test_a_unit_that_is_not_known_silences_no_note_on_the_others() -> None:
    """ChEMBL's columns of units hold such as ug.mL-1 in nearly every large assay."""
    units = ["nM", "uM", "ug.mL-1"] * 4
    frame = pd.DataFrame({"smiles": ["C" * (i + 1) for i in range(12)], "IC50": range(10, 22), "units": units})
    (note,) = read_table(frame, targets=["IC50"]).notes
    assert "names several units (nM 4, uM 4, ug.mL-1 4)" in note and "--unit nM" in note
    words = frame.assign(units=["a", "b", "c"] * 4)  # a column of something else
    assert not read_table(words, targets=["IC50"]).notes


@pytest.mark.parametrize("log", [False, True])
def test_labels_in_another_unit_than_the_training_table_are_refused(log: bool, tmp_path: Path) -> None:
    """Such scores, a factor of 1,000 off, are of no model."""
    smiles, y = [*map("C".__mul__, range(1, 31))], np.arange(1.0, 31)
    frame = pd.DataFrame({"smiles": smiles, "IC50": y, "units": "nM"})
    other = frame.assign(units="µM", IC50=y / 1000)
    options = {"targets": "IC50", "model": "mean", "split": "random", "log": log}
    model = molgraph.train(frame, **options).model
    assert set(model.card.units.values()) == {"log10(nM)" if log else "nM"}
    mixed = pd.concat([frame, other])
    for odd in (other, mixed):
        for score in (lambda: model.evaluate(odd), lambda: molgraph.train(frame, test=odd, **options)):  # noqa: B023
            with pytest.raises(MismatchError, match=r"uM.* nM") as error:
                score()
            assert "--unit nM" in str(error.value)
    brought, same = model.evaluate(other, unit="nM"), model.evaluate(frame.drop(columns="units"))
    np.testing.assert_allclose(brought["value"], same["value"])
    assert model.evaluate(other, unit="none")["value"][0] != same["value"][0]
    assert molgraph.train(frame, test=other, unit="nM", **options).scores.loc["mean", "rmse"] < 100


def test_a_logarithm_takes_no_unit_from_a_column_of_units() -> None:
    """The units belong to the value that it was taken of, which stands beside it."""
    smiles, p = [*map("C".__mul__, range(1, 31))], np.linspace(4, 9, 30)
    frame = pd.DataFrame({"smiles": smiles, "pIC50": p, "IC50": 10 ** (9 - p), "units": "nM"})
    model = molgraph.train(frame, targets="pIC50", model="mean", split="random").model
    assert not model.card.units
    scores = [model.evaluate(frame.assign(units=unit))["value"] for unit in ("nM", "uM")]
    np.testing.assert_array_equal(*scores)
    assert find_side_columns(["logD", "units"], ["logD"], ["logD"]) == {}
    columns = find_side_columns(["p_a", "p_a_units"], ["p_a"], ["p_a"])
    assert columns == {"p_a": SideColumns(unit="p_a_units")}

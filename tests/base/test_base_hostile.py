"""Text that people write, gone wrong: brackets without end and numbers without end are a sentence, not a traceback."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest

from molgraph.base.errors import BadValueError, DataError, FormatError, MissingOptionError, UsageError
from molgraph.base.run_config import RunConfig
from molgraph.base.toml_config import parse_json, parse_toml
from molgraph.data.cards import read_card
from molgraph.data.read import read_table
from molgraph.data.splits import split_table

DEEP, LONG, HEX = "[" * 5000, "9" * 5000, "0x" + "f" * 5000


@pytest.mark.parametrize("text", [DEEP, LONG, HEX, "{a=" * 3000, "-" + LONG, f"[{LONG}]", str(2**63), "1e999999"])
@pytest.mark.parametrize("key", ["epochs", "seed", "learning_rate", "fractions", "class_weights", "path", "params.k"])
def test_set_takes_it_or_says_why_not(key: str, text: str) -> None:
    key = {"seed": "training.seed"}.get(key, key)
    if key in ("path", "params.k"):
        recipe = RunConfig().override(f"{key}={text}")
        assert RunConfig.from_dict(parse_toml(recipe.to_toml().replace("inf", "0"))) or text == "1e999999"
        return
    if (key, text) == ("learning_rate", str(2**63)):
        return  # a number like others
    with pytest.raises((BadValueError, MissingOptionError)) as caught:
        RunConfig().override(f"{key}={text}")
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("value", [DEEP, LONG, HEX])
def test_a_recipe_file_and_a_card_say_it(tmp_path: Path, value: str) -> None:
    path = tmp_path / "r.toml"
    path.write_text(f"[training]\nepochs = {value}\n")
    with pytest.raises(UsageError, match="TOML"):
        RunConfig.from_toml(path)
    with pytest.raises(FormatError, match=path.name):
        read_card(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(FormatError, match=path.name):
        read_card(path)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="a device that gives bytes without end")
def test_a_recipe_without_end_is_refused() -> None:
    with pytest.raises(UsageError, match="10,000,000"):
        RunConfig.from_toml("/dev/zero")


def test_python_numbers_without_end_are_shown_shortened() -> None:
    for value in (10**5000, [10**5000], "x" * 9999):
        with pytest.raises(BadValueError) as caught:
            RunConfig.from_dict({"training": {"epochs": value}})
        assert len(str(caught.value)) < 400


@pytest.mark.parametrize("text", [DEEP, LONG, f'{{"train": [{LONG}]}}', '{"a":' * 5000, f"[{2**63}]"])
def test_json_without_end_is_a_value_error_and_a_split_of_it_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever it is
        parse_json(text)
    path = tmp_path / "split.json"
    path.write_text(text)
    table = read_table({"smiles": ["C", "CC", "CCC"]})
    with pytest.raises(FormatError, match=path.name):
        split_table(table, "file", path=str(path))


def test_cells_without_end(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f"smiles,y\nC,{LONG}\nCC,1\n")
    assert read_table(path, targets=["y"]).ok.tolist() == [False, True]
    assert read_table(path, targets=["y:multiclass"], id="y").ids[0] == LONG
    assert read_table(path).smiles.tolist() == ["C", "CC"]
    for frame in ({"smiles": ["C", "CC"], "y": [10**5000, 1]}, {"smiles": ["C", "CC"], "y": [10**300, 1]}):
        with contextlib.suppress(DataError):
            read_table(frame, targets=["y"])

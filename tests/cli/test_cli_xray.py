"""``molgraph bench xray`` from a shell's point of view."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from molgraph.cli.bench_xray import xray
from molgraph.data.sources.builtin import chembl2321810


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    smiles = chembl2321810().smiles[:120]
    frame = pd.DataFrame({"smiles": smiles, "y": range(120), "part": ["train"] * 90 + ["test"] * 30})
    frame.to_csv("d.csv", index=False)
    return Path("d.csv")


def test_recipes_files_and_the_tables_own_column(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("lists.json").write_text(json.dumps({"train": list(range(100)), "test": list(range(100, 120))}))
    xray(str(data), target=["y"], split=["random", "lists.json", "column"], split_column="part", out=Path("x.csv"))
    said = capsys.readouterr()
    for word in ("random", "lists.json", "column", "close analogue", "published lists", "standard deviations"):
        assert word in said.out
    frame = pd.read_csv("x.csv")
    assert frame["split"].tolist() == ["random", "lists.json", "column"]
    assert frame["test"].tolist()[1:] == [20, 30]
    assert "written to x.csv" in said.err


def test_what_is_left_out_is_said(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data.write_text(data.read_text() + "C1CC,3,test\n")
    xray(str(data), split=["random"], split_column=None, out=Path("x.csv"))
    said = capsys.readouterr().out
    assert "d.csv, 120 of 121 rows; 1 cannot be read" in said and "left out" in said
    assert pd.read_csv("x.csv")["left_out_why"].tolist() == ["1 cannot be read"]


def test_without_out_the_page_is_offered(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    xray(str(data), split=["scaffold/deepchem"], split_column=None)
    assert "-o xray.html" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["x.txt", "nowhere/x.html"])
def test_what_cannot_be_written_is_refused_before_the_work(data: Path, out: str) -> None:
    with pytest.raises(Exception, match="cannot write"):
        xray(str(data), out=Path(out))

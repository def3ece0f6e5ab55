"""``molgraph bench xray`` from a shell's point of view."""

from __future__ import annotations

import base64
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pandas as pd
import pytest

from molgraph.base.errors import CannotWriteError, UnknownNameError
from molgraph.cli.bench_xray import xray
from molgraph.data.sources.builtin import chembl2321810


@pytest.fixture
def data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    smiles = chembl2321810().smiles[:120]
    frame = pd.DataFrame({"smiles": smiles, "y": range(120), "part": ["train"] * 90 + ["test"] * 30})
    frame.to_csv("d.csv", index=False)
    return Path("d.csv")


def test_splitters_files_and_the_tables_own_column(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
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
    assert "d.csv, 120 of 121 rows; 1 cannot be read" in said and "left" in said
    assert pd.read_csv("x.csv")["left_out_why"].tolist() == ["1 cannot be read"]


def test_without_out_the_page_is_offered(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    xray(str(data), split=["scaffold/deepchem"], split_column=None)
    assert "-o xray.html" in capsys.readouterr().err


@pytest.mark.parametrize(("out", "error"), [("x.txt", UnknownNameError), ("nowhere/x.html", CannotWriteError)])
def test_what_cannot_be_written_is_refused_before_the_work(data: Path, out: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=out):
        xray(str(data), out=Path(out))


EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'& $\\frac{$ ]]>"


class Tags(HTMLParser):
    """Names of a page's tags, and of attributes that run code."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.running: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.running += [name for name, value in attrs if name.startswith("on") or "javascript:" in (value or "")]


@pytest.mark.parametrize("ending", ["html", "svg"])
def test_hostile_names_ids_classes_and_molecules_run_nothing(data: Path, ending: str) -> None:
    frame = pd.read_csv(data)
    frame[f"id {EVIL}"] = [f"{EVIL}{i % 50}" for i in range(120)]
    frame[f"k {EVIL}"] = [f"{EVIL} {i % 3}" for i in range(120)]
    frame["part"] = frame["part"].where(frame.index % 7 > 0, "test")
    frame.loc[3, "smiles"] = EVIL
    frame = pd.concat([frame, frame[:40]])  # leaks, which the page lists
    name = "<script>alert('f')</script> & 'q'.csv".replace("/", "\N{DIVISION SLASH}")
    frame.to_csv(name, index=False)
    lists = Path("<img src=x onerror=alert(3)>.json")
    lists.write_text(json.dumps({"train": list(range(100)), "test": list(range(100, 160))}))
    targets = ["y", f"k {EVIL}:multiclass"]
    xray(name, target=targets, split=["random", "column", str(lists)], split_column="part", out=Path(f"x.{ending}"))
    text = Path(f"x.{ending}").read_text()
    for each in (text, *(base64.b64decode(found).decode() for found in re.findall(r"svg\+xml;base64,([^\"]+)", text))):
        page = Tags()
        page.feed(each)
        assert not page.running and not page.tags & {"script", "iframe", "object", "embed", "foreignobject"}
        assert "img" not in page.tags and "<img src=x" not in each
    assert ending == "svg" or "&lt;script&gt;alert" in text

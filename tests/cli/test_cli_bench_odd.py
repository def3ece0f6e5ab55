"""Recipes that ask for the impossible, and places that cannot be read or written: a sentence, never a traceback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

from molgraph.cli.main import app

RECIPE = """datasets = ["mine"]
[[table]]
name = "mine"
path = "a.csv"
targets = ["y"]
[[split]]
splitter = "random"
[[method]]
name = "mean"
"""
RANDOM = 'splitter = "random"'


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rows = "".join(f"{'C' * (i + 1)}O,{i},{i % 3}\n" for i in range(30))
    Path("a.csv").write_text(f"smiles,y,fold\n{rows}")
    Path("deep.json").write_text("[" * 100_000)
    Path("long.json").write_text('{"train": [%s], "test": [1]}' % ("9" * 5000))
    Path("broken.py").write_text("raise ValueError('no')")
    os.mkfifo("pipe.json")
    os.mkfifo("pipe.csv")
    Path("loop").symlink_to("loop")
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, " ".join(result.output.split())


def split(splitter: str, params: str = "") -> tuple[str, str]:
    return RANDOM, f'splitter = "{splitter}"' + (f"\nparams = {{ {params} }}" if params else "")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "code", "words"),
    [
        (split("cluster/butina", 'similarity = "much"'), 2, "'similarity' of 'cluster/butina' is 'much', not a number"),
        (split("cluster/butina", "n_bits = -5"), 3, "n_bits is -5"),
        (split("cluster/butina", "n_bits = 99999999999"), 3, "up to 65,536"),
        (split("cluster/butina", "radius = -1"), 3, "radius is -1"),
        (split("pipe.json"), 3, "cannot read pipe.json: it is no file"),
        (split("index/file", 'path = "pipe.csv"'), 3, "cannot read pipe.csv: it is no file"),
        (split("deep.json"), 3, "nested too deeply"),
        (split("index/file", 'path = "deep.json"'), 3, "nested too deeply"),
        (split("long.json"), 3, "cannot read long.json"),
        (split("index/file", "path = 5"), 3, "needs a path"),
        (split("index/file", 'test = [1], first = "a"'), 2, "not a whole number"),
        (split("stratified/deepchem", "target = 5"), 3, "no target 5"),
        (split("column", 'column = ""'), 3, "no column ''"),
        (split("random", "x = 1"), 2, "no setting 'x'"),
        (("a.csv", "pipe.csv"), 5, "pipe.csv is a pipe or a device"),
        (("a.csv", "x" * 5000), 5, "File name too long"),
        (("[[method]]", '[run]\nimports = [""]\n[[method]]'), 2, "the recipe imports '', which fails"),
        (("[[method]]", '[run]\nimports = ["broken"]\n[[method]]'), 2, "the recipe imports 'broken', which fails: no"),
    ],
)
def test_a_recipe_that_asks_for_the_impossible(change: tuple[str, str], code: int, words: str, folder: Path) -> None:
    Path("r.toml").write_text(RECIPE.replace(*change))
    found, said = run("bench", "run", "r.toml", "--dry-run")
    assert (found, words in said) == (code, True), said


@pytest.mark.parametrize("out", ["a.csv", "a.csv/x", "loop", "loop/x", "pipe.csv", "o" * 300])
@pytest.mark.parametrize("verb", ["run", "report", "verify"])
def test_a_place_that_is_no_folder(out: str, verb: str, folder: Path) -> None:
    Path("r.toml").write_text(RECIPE)
    words = ["r.toml", "-o", out] if verb == "run" else [out]
    found, said = run("bench", verb, *words)
    assert found == 5 and "fault in molgraph" not in said, said


def test_links_that_lead_in_a_circle_and_seeds_that_others_do_not_take(folder: Path) -> None:
    Path("loop.html").symlink_to("loop.html")
    for words in (("a.csv", "-o", "loop.html"), ("a.csv", "-o", "loop/x.html")):
        found, said = run("bench", "xray", *words)
        assert found == 5 and "lead in a circle" in said, said
    for seed in ("-1", str(2**32)):
        found, said = run("data", "split", "a.csv", "--split", "scaffold/chemprop", "--seed", seed)
        assert found == 2 and f"seed is {seed}" in said, said


@pytest.mark.parametrize("name", ["pipe.json", "deep.json", "long.json", "loop"])
def test_a_split_that_is_no_list_of_rows(name: str, folder: Path) -> None:
    for words in (("data", "split", "a.csv"), ("bench", "xray", "a.csv"), ("train", "a.csv", "-t", "y", "-m", "mean")):
        found, said = run(*words, "--split", name)
        assert found in (2, 3, 5) and "fault in molgraph" not in said, (words, said)

"""Leaderboard and README of the benchmarks are what the stored records give, byte for byte."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from molgraph.evaluate.benchmark.board import make_boards
from molgraph.evaluate.benchmark.report_data import BenchReport
from pipelines.readme.block import page_of, replace_block
from tests.evaluate.bench_scores import made_up

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def boards() -> ModuleType:
    """``pipelines/boards/run.py``, a script."""
    spec = importlib.util.spec_from_file_location("boards_run", ROOT / "pipelines" / "boards" / "run.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def report() -> BenchReport:
    made = make_boards(made_up({"mean": 1.2, "random_forest": 0.5, "as_good": 0.5}, noise=0.05))
    facts = {"recipe": "some.toml", "recipe sha256": "0", "computed": "2001-02-03", "CPU time of all cells": "3.0 min"}
    return BenchReport("Some | title", tuple(made), facts=facts, done=75, wanted=75)


def test_the_block_names_those_that_nothing_is_better_than(boards: ModuleType, report: BenchReport) -> None:
    text = boards.block([report])
    leaders = [n for n in report.boards[0].ranking.ranked if n != "mean"]
    assert f"| esol | random-5x5 | {', '.join(leaders)} | 3 |".replace("_", "\\_") in text
    assert "Some \\| title" in text and "75 of 75 cells, none failed, 3.0 min of CPU time, 2001-02-03" in text


@pytest.mark.slow
def test_all_is_written_in_one_go(
    boards: ModuleType, report: BenchReport, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = tmp_path / "README.md"
    marks = [
        f"<!-- {name}:begin -->\nstale\n<!-- {name}:end -->\n" for name in ("board", "headline-board", "headline-peers")
    ]
    readme.write_text("".join(marks), "utf-8")
    monkeypatch.setattr(boards, "ROOT", tmp_path)
    monkeypatch.setattr(boards, "LEADERBOARD", tmp_path / "LEADERBOARD.md")
    monkeypatch.setattr(boards, "replace_block", lambda name, text: replace_block(name, text, readme))
    for name in ("docs", "pipelines"):
        (tmp_path / name).mkdir()
    boards.write([report, report])
    assert (tmp_path / boards.PICTURE).read_bytes()[:4] == b"\x89PNG"
    assert "stale" not in readme.read_text("utf-8") and "board.png" in readme.read_text("utf-8")
    assert (tmp_path / "LEADERBOARD.md").read_text("utf-8").count("# Some \\| title") == 2


def test_pages_of_methods_that_went_go(boards: ModuleType, report: BenchReport, tmp_path: Path) -> None:
    (tmp_path / "method-gone.html").write_text("old")
    written = boards.write_pages([report], tmp_path)
    assert {*tmp_path.iterdir()} == {*written} and written[0].name == "index.html"


@pytest.mark.slow
def test_what_stands_in_the_repository_is_made_of_the_records(boards: ModuleType, tmp_path: Path) -> None:
    reports = boards.read_records()
    page = page_of("board").read_text("utf-8")
    assert "<!-- board:begin -->" in page
    if not reports:
        assert not boards.LEADERBOARD.exists(), "a leaderboard without the scores that it was made of"
        pytest.skip("no board has been run yet")
    assert boards.LEADERBOARD.read_text("utf-8") == boards.leaderboards(reports)
    stored = (ROOT / "pipelines" / boards.FILE).read_text("utf-8")
    assert stored == boards.make_standings(reports).to_csv(index=False)
    copy = tmp_path / "README.md"
    copy.write_text(page, "utf-8")
    replace_block("board", boards.block(reports), copy)
    assert copy.read_text("utf-8") == page
    readme = (ROOT / "README.md").read_text("utf-8")
    assert boards.headline(reports) in readme and boards.peers(reports) in readme
    assert (ROOT / boards.PICTURE).is_file()
    names = {path.name for path in boards.write_pages(reports, tmp_path)}
    assert {"index.html", "method-dmpnn.html", *(f"board-{report.recipe_name}.html" for report in reports)} <= names

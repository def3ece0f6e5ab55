"""A benchmark's page and leaderboard: whole, honest about failures, safe with any text, and sound in a real browser."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from molgraph.base.contracts import Target
from molgraph.base.errors import EmptyError, MissingFileError
from molgraph.evaluate.benchmark.report import report_page, write_bench_report
from molgraph.evaluate.benchmark.report_data import BenchReport, positions_of
from molgraph.evaluate.benchmark.report_markdown import leaderboard
from molgraph.evaluate.benchmark.report_rows import sentences
from molgraph.evaluate.benchmark.report_slices import EDGES, Slices
from tests.evaluate.bench_scores import failed, made_up
from tests.evaluate.bench_tables import small, three_and_a_failure

pytestmark = pytest.mark.slow

NASTY = "<script>document.title = 'broken'</script> & $x_1$ | *b*"
QUOTE = {"dataset": "small", "split": "random-1x5", "method": "Paper's", "metric": "rmse", "value": 0.1}
QUOTE |= {"protocol": NASTY, "source": "Nobody 2020"}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A regression and a classification, three methods and one that fails."""
    tables = {"small": small(100), "yes": small(100, kind="binary")}
    return three_and_a_failure(tmp_path_factory.mktemp("bench") / "run", tables, quoted=[QUOTE], title=NASTY)


@pytest.fixture(scope="module")
def page(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "board.html"
    write_bench_report(run, path, path.with_suffix(".md"))
    return path


class Balance(HTMLParser):
    """Tags that are opened and closed as they should be, and addresses that the page asks for."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        self.addresses += [str(found[name]) for name in ("src", "href", "xlink:href", "data") if found.get(name)]
        self.ids += [str(found["id"])] if "id" in found else []
        if tag not in ("meta", "link", "br", "wbr", "img", "input", "hr", "path", "use"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [str(value) for name, value in attrs if name in ("src", "href", "xlink:href") and value]
        self.ids += [str(value) for name, value in attrs if name == "id"]

    def handle_endtag(self, tag: str) -> None:
        if tag not in ("path", "use"):
            assert self.open.pop() == tag


def test_the_page_is_whole_and_says_who_failed(page: Path) -> None:
    text = page.read_text("utf-8")
    read = Balance()
    read.feed(text)
    assert read.open == [] and len(read.ids) == len(set(read.ids))
    assert all(a.startswith(("#", "data:")) for a in read.addresses) and "@import" not in text
    assert {a[1:] for a in read.addresses if a.startswith("#")} <= set(read.ids)
    assert "not ranked: 0 of 5 folds: crashed" in text and "Failed cells: 10 crashed" in text
    assert "random_forest leads alone" in text and "loses to the forest" in text
    assert "quoted, never ranked" in text and NASTY not in text and "&lt;script&gt;" in text
    captions = ("green where it is better", "nearest training molecule", "Calibration", "against cost", "Worst")
    assert all(caption in text for caption in captions)


def test_the_leaderboard_says_the_same_in_markdown(run: Path, page: Path) -> None:
    text = page.with_suffix(".md").read_text("utf-8")
    assert text == leaderboard(write_bench_report(run)) and NASTY not in text and "\\| \\*b\\*" in text
    table = [line for line in text.splitlines() if line.startswith("|")]
    for block in re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE):
        assert len({line.replace("\\|", "").count("|") for line in block.splitlines()}) == 1, block
    assert sum("quoted" in line or "broken (" in line for line in table) > 1
    row = next(line for line in table if line.startswith("| 1 | random\\_forest") and "| the forest |" in line)
    assert re.search(r"\| \d\.\d+ ± \d\.\d+ (\| \d\.\d\d ){2}\| a \| — \| 5 \|", row)
    assert "Recipe `test.toml`" in text and "data hash of small" in text and "molgraph bench run test.toml" in text


def test_a_page_is_the_same_each_time_and_one_of_eight_datasets_stays_small() -> None:
    methods = {f"method{i}": 1 + 0.03 * i for i in range(10)}
    scores = pd.concat([made_up(methods, dataset=d, metrics=["rmse", "r2"]) for d in ("one", "two")])
    scores = failed(scores, (scores["dataset"] == "two") & (scores["method"] == "method3"), "memory", "over 4 GB")
    pages = [report_page(in_memory(scores)) for _ in range(2)]
    assert pages[0] == pages[1] and len(pages[0]) < 5e6 / 8 * 2
    assert "not ranked: 0 of 25 folds: memory: over 4 GB" in pages[0] and "mean place" not in pages[0]


def test_from_six_sets_on_methods_have_a_mean_place() -> None:
    scores = pd.concat([made_up({"a": 1.0, "b": 1.3}, dataset=name) for name in "uvwxyz"])
    text = leaderboard(in_memory(scores))
    assert (
        "| a | 1.00 | 6 | 6 | **1** |" in text
        and "loses to" not in text
        and "that each of the 6 datasets ranks" in text
    )


def in_memory(scores: pd.DataFrame) -> BenchReport:
    """A report on scores alone."""
    from molgraph.evaluate.benchmark.board import make_boards

    boards = make_boards(scores)
    return BenchReport("Made up", tuple(boards), facts={"recipe": "x.toml"})


def test_a_folder_without_cells_and_one_that_is_none(run: Path, tmp_path: Path) -> None:
    with pytest.raises(MissingFileError, match=r"recipe\.toml"):
        write_bench_report(tmp_path)
    shutil.copytree(run, tmp_path / "half")
    shutil.rmtree(tmp_path / "half" / "cells" / "small" / "random-1x5" / "noise1")
    made = write_bench_report(tmp_path / "half", slices=False)
    board = next(b for b in made.boards if b.dataset == "small")
    assert board.ranking.left_out["noise1"] == "0 of 5 folds: not run" and made.done == made.wanted - 5
    shutil.rmtree(tmp_path / "half" / "cells")
    with pytest.raises(EmptyError, match="half"):
        write_bench_report(tmp_path / "half")


def test_errors_by_distance_are_those_of_the_rows_in_the_bin(run: Path) -> None:
    made = write_bench_report(run)
    slices = made.slices["small", "random-1x5"]
    assert set(slices.p) == {"random_forest", "noise1", "noise3"} and np.isfinite(slices.distance).all()
    counts, errors = slices.by_distance(["noise1"])
    y, p = slices.y, slices.p["noise1"]
    assert np.isfinite(p).all() and np.isfinite(y).all() and len(p) == len(y) == 100 and counts.sum() == 100
    for b, (low, high) in enumerate(pairwise(EDGES)):
        rows = (slices.distance >= low) & (slices.distance < high + (b == len(EDGES) - 2))
        mean = np.abs(p - y)[rows].mean() if rows.sum() >= 10 else np.nan
        assert errors["noise1"][b] == pytest.approx(mean, nan_ok=True)
    worst = slices.worst("noise3", 3)
    assert worst[0][2] == pytest.approx(np.abs(slices.p["noise3"] - y).max())


def test_errors_of_several_targets_are_in_their_own_spread() -> None:
    y = np.array([[0.0, 0.0], [2.0, 200.0]])
    targets = (Target("a"), Target("b"))
    slices = Slices(targets, y, {"m": y + np.array([1.0, 100.0])})
    assert slices.errors("m") == pytest.approx(np.ones((2, 2)))
    lone = np.array([[np.nan], [1.0]])
    assert Slices((Target("a"),), lone, {"m": lone + 2}).worst("m") == [(1, 0, 2.0)]


def test_a_class_is_named_and_its_error_is_what_its_probability_lacks() -> None:
    y, p = np.full((2, 8, 1), np.nan)
    y[[4, 7], 0], p[[4, 7], 0] = [0.0, 2.0], [0.9, 0.2]
    smiles = np.array(["C"] * 8, dtype=object)
    slices = Slices((Target("c", "multiclass", classes=("lo", "mid", "hi")),), y, {"a": p}, smiles, smiles, np.ones(8))
    assert slices.errors("a")[[4, 7]].ravel() == pytest.approx([0.1, 0.8]) and slices.worst("a", 1)[0][:2] == (7, 0)
    made = in_memory(made_up({"a": 1.0, "b": 1.1}))
    page = report_page(replace(made, slices={("esol", "random-5x5"): slices}))
    assert "<dd>hi</dd>" in page and "<dt>P(that), a</dt><dd>0.200</dd>" in page


def test_the_verb_writes_both_and_says_who_leads(run: Path, tmp_path: Path) -> None:
    from molgraph.cli.main import app

    words = ["bench", "report", str(run), "-o", str(tmp_path / "b.html"), "--brief"]
    done = CliRunner().invoke(app, [*words, "--leaderboard", str(tmp_path / "L.md")])
    assert done.exit_code == 0, done.output
    assert "small, random-1x5, rmse: random_forest leads alone, over 5 folds" in done.output
    assert (tmp_path / "b.html").stat().st_size > 10_000 and (tmp_path / "L.md").is_file()
    assert CliRunner().invoke(app, ["bench", "report", str(tmp_path / "none")]).exit_code == 5


def test_in_a_real_browser_tables_sort_and_nothing_is_asked_of_a_network(browser: Any, page: Path) -> None:
    browser.get(page.as_uri())
    assert browser.title == NASTY  # its own script did not run
    assert browser.get_log("browser") == []
    assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
    rows = "return [...document.querySelectorAll('#small--random-1x5 table.sortable')][0].tBodies[0].rows"
    names = f"{rows.replace('return ', 'return [...')}].map(r => r.cells[1].firstChild.textContent)"
    assert browser.execute_script(names) == ["random_forest", "noise1", "noise3", "broken", "Paper's"]
    score = browser.find_elements("css selector", "#small--random-1x5 table.sortable th button")[2]
    for expected in (["random_forest", "noise1", "noise3"], ["noise3", "noise1", "random_forest"]):
        browser.execute_script("arguments[0].click()", score)
        assert browser.execute_script(names) == [*expected, "broken", "Paper's"]  # who has no number stays below
    browser.set_window_size(500, 800)
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")


def test_a_board_says_where_positions_of_atoms_come_from() -> None:
    def cell(method: str, *notes: str, dataset: str = "a") -> Any:
        return SimpleNamespace(dataset=dataset, split="random", method=method), {"notes": notes}

    done = [cell("schnet", "other", "geometry as given in the table"), cell("mean"), cell("schnet", dataset="b")]
    done += [cell("conformers", "geometry made here: 1 conformer a molecule")]
    found = positions_of(SimpleNamespace(done=done), "a", "random")  # type: ignore[arg-type]
    assert found == {"schnet": "as given in the table", "conformers": "made here: 1 conformer a molecule"}
    report = in_memory(made_up({"a": 1.0, "b": 1.3}))
    board = replace(report.boards[0], positions=found)
    assert "Positions of atoms that schnet reads: as given in the table." in sentences(board)
    assert not any("Positions" in line for line in sentences(report.boards[0]))

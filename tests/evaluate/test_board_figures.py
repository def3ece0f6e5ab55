"""A board's figures and words: pairs as they are, labels apart, one unit a column, and the order that is said."""

from __future__ import annotations

import re
from inspect import unwrap
from itertools import pairwise

import numpy as np
import pytest

from molgraph.evaluate.benchmark.board import Board, make_boards
from molgraph.evaluate.benchmark.report import report_page
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_figures import cost, distance
from molgraph.evaluate.benchmark.report_markdown import board_lines, leaderboard
from molgraph.evaluate.benchmark.report_slices import EDGES
from tests.evaluate.bench_scores import made_up


def test_labels_of_the_distance_do_not_run_into_each_other() -> None:
    counts = np.array([1_234_567, 98_765, 9_876, 12, 4_321, 5_678])
    errors = {"a_name_of_many_letters_": np.linspace(0.1, 0.5, 6), "b": np.linspace(0.2, 0.4, 6)}
    figure = unwrap(distance)(counts, errors, dict.fromkeys(errors, "#000000"), "error")
    figure.draw_without_rendering()
    axis = figure.axes[0]
    for minor in (False, True):
        boxes = [label.get_window_extent() for label in axis.get_xticklabels(minor=minor)]
        assert len(boxes) == (6 if minor else 7) and all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert [label.get_text() for label in axis.get_xticklabels()] == [f"{edge:g}" for edge in EDGES]
    under = axis.xaxis.label.get_window_extent()
    assert under.x0 >= 0 and under.y1 <= min(b.y0 for b in boxes) and under.x1 <= figure.bbox.x1


@pytest.mark.parametrize("spread", [1.01, 3.0, 1000.0])
def test_the_axis_of_costs_has_numbers_that_do_not_run_into_each_other(spread: float) -> None:
    (board,) = make_boards(made_up({"a": 1.0, "b": 1.3}))
    frame = board.to_frame().assign(cpu_minutes=[0.0003, 0.0003 * spread])
    figure = unwrap(cost)(frame, dict.fromkeys("ab", "#000000"), "RMSE", False)
    figure.draw_without_rendering()
    axis = figure.axes[0]
    low, high = axis.get_xlim()
    shown = [label for label in axis.get_xticklabels() if low <= label.get_position()[0] <= high]
    boxes = [label.get_window_extent() for label in shown]
    assert all(float(label.get_text()) > 0 for label in shown) and not axis.get_xticklabels(minor=True)
    assert 1 <= len(shown) <= 8 and all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert {text.get_text() for text in axis.get_legend().get_texts()} == {"a", "b"}


def in_memory(*boards: Board) -> BenchReport:
    return BenchReport("Made up", boards, facts={"recipe": "x.toml"})


def test_the_triangle_of_pairs_says_what_the_table_says() -> None:
    (board,) = make_boards(made_up({"a": 1.0, "b": 1.001, "c": 1.2}))
    page = report_page(in_memory(board))
    shown = re.findall(r'class="cell (better|equivalent|undecided)" title="(\w) less (\w): [^"]*">([^<]*)<', page)
    assert [(a, b, verdict) for verdict, a, b, _ in shown] == [
        tuple(row) for row in board.ranking.pairs[["a", "b", "verdict"]].itertuples(index=False)
    ]
    assert len(shown) == 3 and shown[2][3].startswith("\N{MINUS SIGN}0.2") and shown[2][0] == "better"
    assert "green where it is better" in page
    assert "green where it is better" not in report_page(in_memory(make_boards(made_up({"a": 1.0}))[0]))


def test_page_and_leaderboard_say_by_what_methods_stand() -> None:
    """Wild is last in four folds of five and far ahead in the fifth: not told from first, nor is second from it."""
    scores = made_up({"first": 1.0, "second": 1.05, "wild": 1.1}, noise=0.001)
    scores.loc[(scores["method"] == "wild") & (scores["fold"] == 0), "value"] -= 2.0
    (board,) = make_boards(scores)
    assert board.ranking.ranked == ["wild", "first", "second"] and board.ranking.verdict("first", "second") == "better"
    assert board.to_frame()["rank"].tolist() == [1, 1, 2] and board.to_frame()["groups"].tolist() == ["ab", "a", "b"]
    page, text = report_page(in_memory(board)), leaderboard(in_memory(board))
    assert "Methods stand by mean." in page and "Methods stand by their mean." in text and "| to the first |" in text
    near = make_boards(made_up({"a": 1.0, "b": 1.025, "c": 1.5}))[0]
    page, text = report_page(in_memory(near)), leaderboard(in_memory(near))
    assert near.ranking.pairs["disagrees"].sum() == 1 and page.count("(disagrees)") == 1
    assert "tells 1 more pair apart." in page and "tells 1 more pair apart." in text


def test_costs_of_a_column_have_one_unit() -> None:
    (board,) = make_boards(made_up({"a": 1.0, "b": 1.3, "c": 1.5, "d": 1.7}))  # 1.5 to 96 s
    text, page = "\n".join(board_lines(board)), report_page(in_memory(board))
    assert "| CPU a cell, s |" in text and "CPU a cell, s</button>" in page
    assert all(f"| {cell} |" in text and f">{cell}</td>" in page for cell in ("1.50", "6.00", "24.0", "96.0"))


def test_one_fold_gives_nobody_a_rank_and_says_so() -> None:
    (board,) = make_boards(made_up({"a": 1.0, "b": 1.3}, repeats=1, folds=1))
    text, page = "\n".join(board_lines(board)), report_page(in_memory(board))
    for shown in (text, page):
        assert "one fold cannot tell methods apart, so none has a rank." in shown and "share rank" not in shown
    assert "| — | a |" in text and "Not tested: " in text
    assert all(line.split()[1] == "-" for line in repr(board).splitlines() if line.startswith(("a ", "b ")))
    assert "None" not in repr(board)

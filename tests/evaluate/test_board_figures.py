"""A board's figures and words: groups as they are, labels apart, one unit a column, and the order that is said."""

from __future__ import annotations

from inspect import unwrap
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from molgraph.evaluate.benchmark import report_gallery
from molgraph.evaluate.benchmark.board import Board, make_boards
from molgraph.evaluate.benchmark.board_overall import summarise
from molgraph.evaluate.benchmark.ranking_groups import group_members, letter_groups
from molgraph.evaluate.benchmark.report import report_page
from molgraph.evaluate.benchmark.report_critical import critical
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_figures import distance
from molgraph.evaluate.benchmark.report_markdown import board_lines, leaderboard
from molgraph.evaluate.benchmark.report_slices import EDGES
from tests.evaluate.bench_scores import made_up


@pytest.fixture(scope="module")
def crossed() -> Board:
    """Wild is last in four folds of five and far ahead in the fifth: not told from first, with second between them."""
    scores = made_up({"first": 1.0, "second": 1.05, "wild": 1.1}, noise=0.001)
    scores.loc[(scores["method"] == "wild") & (scores["fold"] == 0), "value"] -= 2.0
    return make_boards(scores)[0]


def drawn(figure: Figure, position: pd.Series, letter: str) -> set[str]:
    """The methods on whose place a group's line has a dot; its line covers no other method."""
    lines = figure.axes[0].get_lines()
    (dots,) = (line for line in lines if line.get_label() == f"dots {letter}")
    assert dots.get_marker() == "o" and len({*np.asarray(dots.get_ydata())}) == 1
    members = {str(m) for m in position.index if position[m] in np.asarray(dots.get_xdata())}
    for line in (line for line in lines if line.get_label() == f"line {letter}"):
        start, stop = np.asarray(line.get_xdata(), dtype=np.float64)
        assert all(m in members for m in position.index if start <= position[m] <= stop)
    return members


def test_the_diagram_of_a_board_joins_exactly_each_group(crossed: Board, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(report_gallery, "critical", lambda *args: asked.append(args) or critical(*args))
    colour = dict.fromkeys(crossed.methods, "#000000")
    (_, caption), *_ = report_gallery.gallery(crossed, None, colour, "x")
    (args,) = asked
    position, groups = args[0], args[1]
    assert list(position.index) == ["first", "second", "wild"] and crossed.ranking.told_apart("first", "second")
    assert groups == {"a": ["first", "wild"], "b": ["wild", "second"]}  # a is on both sides of second
    figure = unwrap(critical)(*args)
    assert {letter: drawn(figure, position, letter) for letter in groups} == {k: {*v} for k, v in groups.items()}
    assert "a line joins the methods with a dot on it" in caption
    assert {t.get_text() for t in figure.axes[0].texts} >= {"first (a)", "second (b)", "wild (ab)", "a", "b"}


@settings(max_examples=15, deadline=None)
@given(st.integers(2, 7).flatmap(lambda k: st.lists(st.booleans(), min_size=k * k, max_size=k * k)))
def test_whatever_is_told_apart_the_diagram_shows_it(flags: list[bool]) -> None:
    k = int(len(flags) ** 0.5)
    different = np.triu(np.array(flags).reshape(k, k), 1)
    position = pd.Series(np.arange(1.0, k + 1), index=[f"m{i}" for i in range(k)])
    groups = group_members(dict(zip(position.index, letter_groups(different | different.T), strict=True)))
    figure = unwrap(critical)(position, groups, "mean rank")
    shown = {letter: drawn(figure, position, letter) for letter, members in groups.items() if len(members) > 1}
    assert shown == {letter: {*members} for letter, members in groups.items() if len(members) > 1}


def test_letters_beyond_z_stay_whole_and_in_order() -> None:
    groups = group_members({"x": "aa1b1", "y": "zb1", "z": "b"})
    assert groups == {"a": ["x"], "b": ["z"], "z": ["y"], "a1": ["x"], "b1": ["x", "y"]}


def test_labels_of_the_distance_do_not_run_into_each_other() -> None:
    counts = np.array([1_234_567, 98_765, 9_876, 12, 4_321, 5_678])
    errors = {"a_name_of_many_letters_": np.linspace(0.1, 0.5, 6), "b": np.linspace(0.2, 0.4, 6)}
    figure = unwrap(distance)(counts, errors, EDGES, dict.fromkeys(errors, "#000000"), "error")
    figure.draw_without_rendering()
    axis = figure.axes[0]
    for minor in (False, True):
        boxes = [label.get_window_extent() for label in axis.get_xticklabels(minor=minor)]
        assert len(boxes) == (6 if minor else 7) and all(a.x1 < b.x0 for a, b in pairwise(boxes))
    assert [label.get_text() for label in axis.get_xticklabels()] == [f"{edge:g}" for edge in EDGES]
    under = axis.xaxis.label.get_window_extent()
    assert under.x0 >= 0 and under.y1 <= min(b.y0 for b in boxes) and under.x1 <= figure.bbox.x1


def in_memory(*boards: Board) -> BenchReport:
    return BenchReport("Made up", boards, tuple(summarise(boards)), facts={"recipe": "x.toml"})


def test_page_and_leaderboard_say_by_what_methods_stand(crossed: Board) -> None:
    assert crossed.ranking.ranked == ["first", "wild", "second"]
    assert crossed.to_frame().loc["wild", "to_best"] < 0  # of errors: better than the first
    said = "wild has the best mean; first stands first by its mean rank over folds"
    page, text = report_page(in_memory(crossed)), leaderboard(in_memory(crossed))
    assert said in page and said in text and "to the best" not in page + text and "| to the first |" in text
    assert "Methods stand by rank, then by mean rank over folds." in page and "need not have the best mean" in text
    (plain,) = make_boards(made_up({"a": 1.0, "b": 1.3}))
    page = report_page(in_memory(plain))
    assert "Methods stand by rank, then by mean." in page and "has the best mean" not in page


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
    assert "| — | a |" in text and "Methods stand by mean." in page
    assert all(line.split()[1] == "-" for line in repr(board).splitlines() if line.startswith(("a ", "b ")))
    assert "None" not in repr(board)

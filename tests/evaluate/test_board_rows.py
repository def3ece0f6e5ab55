"""No row leaves a board in silence: declined ones, unreadable ones, those of refused splits and of failed methods."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from molgraph.base.contracts import Target
from molgraph.cli.main import app
from molgraph.data.splits.unused_rows import RowCount
from molgraph.data.table import Table, make_table
from molgraph.evaluate.benchmark.board import Board, make_boards
from molgraph.evaluate.benchmark.board_overall import summarise
from molgraph.evaluate.benchmark.published_record import ABOUT, read_record
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report import report_page, write_bench_report
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_markdown import board_lines, leaderboard
from molgraph.evaluate.benchmark.result import BenchmarkResult
from molgraph.evaluate.benchmark.run import Ran
from tests.evaluate.bench_scores import failed, made_up
from tests.evaluate.bench_tables import go, recipe

pytestmark = pytest.mark.slow

METHODS = {"mean": 1.9, "rf": 1.0, "knn": 0.9}
SPLITS = [{"splitter": "random", "folds": 5}, {"splitter": "scaffold/deepchem", "label": "rare", "seeds": [0]}]


def predicted(scores: pd.DataFrame, method: str, n: int, of: int, fold: int = 0, task: str = "y") -> pd.DataFrame:
    """The same scores; in a fold of the first repeat the method has no prediction for some rows of a task."""
    out = scores.copy()
    where = (out["method"] == method) & (out["repeat"] == 0) & (out["fold"] == fold) & (out["target"] == task)
    out.loc[where, ["n", "measured", "note"]] = [n, of, f"{of - n} of {of} measured rows have no prediction"]
    return out


def test_a_method_that_declines_its_hard_rows_is_not_ranked(tmp_path: Path) -> None:
    shy = {"name": "odd", "label": "shy", "params": {"how": "declines"}}
    go(tmp_path, recipe("ridge", {"name": "ridge", "label": "noise", "params": {"noise": 1.0}}, shy))
    made = write_bench_report(tmp_path, slices=False)
    for board in made.boards:
        assert set(board.ranking.ranked) == {"ridge", "noise"}
        assert board.ranking.left_out == {"shy": "0 of 5 folds: predicts 3 of 12 measured rows in r0-f0"}
    assert "0 of 5 folds: predicts 3 of 12 measured rows in r0-f0" in leaderboard(made)
    assert "0 of 5 folds: predicts 3 of 12 measured rows in r0-f0" in report_page(made)
    lone = go(tmp_path / "lone", recipe(shy))  # on its own it is the most willing, and its board says what it is
    said = "shy predicts 3 of 12 measured rows in r0-f0."
    assert all(b.ranking.ranked == ["shy"] and b.notes == (said,) for b in BenchmarkResult(lone).boards)
    done = CliRunner().invoke(app, ["bench", "report", str(lone.out), "-o", str(tmp_path / "b.html"), "--brief"])
    assert f"\n  {said}" in done.output


def test_one_row_of_five_hundred_is_said_wherever_a_board_is_read() -> None:
    whole = made_up(METHODS).assign(n=500)
    (board,) = make_boards(predicted(predicted(whole, "knn", 499, 500, 3), "knn", 498, 500, 4))
    said = "knn predicts 498 of 500 measured rows in r0-f4."
    assert board.ranking.ranked[0] == "knn" and board.notes == (said,)
    page = report_page(gathered([board]))
    assert all(said in text for text in (repr(board), board._repr_html_(), "\n".join(board_lines(board)), page))
    (board,) = make_boards(predicted(predicted(whole, "knn", 499, 500), "rf", 499, 500))
    assert board.notes == ("rf and knn predict 499 of 500 measured rows in r0-f0.",)
    for name in METHODS:
        whole = predicted(whole, name, 300, 500)
    (board,) = make_boards(whole)  # nobody has more: nobody is worse off, and it is said
    assert board.notes == ("Every ranked method predicts 300 of 500 measured rows in r0-f0.",)
    assert len(board.ranking.ranked) == 3


@settings(max_examples=25, deadline=None)
@given(most=st.integers(10, 800), share=st.floats(0.5, 1), fold=st.integers(0, 4))
def test_ninety_nine_of_a_hundred_rows_are_enough_and_all_but_one(most: int, share: float, fold: int) -> None:
    n = int(share * most)
    scores = made_up(METHODS, repeats=1, tasks=["a", "b"]).assign(n=most)
    (board,) = make_boards(predicted(scores, "knn", n, most, fold, "b"))
    enough = n >= min(0.99 * most, most - 1)
    assert ("knn" in board.ranking.ranked) == enough
    said = f"predicts {n} of {most} measured rows of b in r0-f{fold}"
    assert board.notes == ((f"knn {said}.",) if enough and n < most else ())
    assert board.ranking.left_out == ({} if enough else {"knn": f"4 of 5 folds: {said}"})


def gathered(boards: list[Board]) -> BenchReport:
    """A report on boards alone."""
    return BenchReport("Made up", tuple(boards))


def test_where_every_method_fails_the_reason_stands_with_the_folds_that_were_asked_for() -> None:
    scores = made_up(METHODS, metrics=["roc_auc"], repeats=1)
    (board,) = make_boards(failed(scores, scores["fold"] >= 0, "refused", "target y is 2.5 in every row"))
    assert set(board.ranking.left_out.values()) == {"0 of 5 folds: refused: target y is 2.5 in every row (r0-f0)"}
    text = "\n".join(board_lines(board))
    assert text.count("0 of 5 folds: refused: target y is 2.5 in every row") == 3
    assert "No method has a score in r0-f0, r0-f1, r0-f2 and 2 more: refused: target y is 2.5" in text
    lone = scores.copy()
    lone.loc[lone["fold"] == 2, ["value", "note"]] = [np.nan, "one class only (0) among the measured rows"]
    (board,) = make_boards(failed(lone, (lone["fold"] == 4) & (lone["method"] == "rf")))
    assert board.notes == ("No method has a score in r0-f2: one class only (0) among the measured rows (r0-f2).",)
    assert board.ranking.left_out == {"rf": "3 of 5 folds: timeout: over 600 s (r0-f4)"}
    assert "3 of 5 folds: timeout" in report_page(gathered([board]))


def mixed(n: int = 100) -> Table:
    """A number and a class of the same rings of twenty sizes, with chains; one molecule cannot be read."""
    smiles = [f"{'C' * (1 + i // 20)}C1{'C' * (2 + i % 20)}1" for i in range(n - 1)]
    size = np.array([i // 20 + 0.05 * (i % 20) for i in range(n)])
    y = np.c_[size, np.arange(n) // 20 % 2].astype(float)
    return make_table([*smiles, "C1CC"], targets=(Target("size"), Target("odd", "binary")), y=y)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A mixed dataset beside one that the second split cannot divide: all its molecules are chains."""
    out = tmp_path_factory.mktemp("mixed") / "run"
    chains = make_table(["C" * n + "O" for n in range(1, 61)], targets=(Target("y"),), y=np.arange(60.0))
    noisy = {"name": "ridge", "label": "noise", "params": {"noise": 3.0}}
    asked = recipe("ridge", noisy, datasets=["mixed", "chains"], split=SPLITS)
    return go(out, asked, {"mixed": mixed(), "chains": chains})


@pytest.fixture(scope="module")
def run(ran: Ran) -> Path:
    return ran.out


@pytest.fixture(scope="module")
def record(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("record") / "kept"
    write_bench_report(run, record=folder, slices=False)
    return folder


def test_a_metric_that_is_asked_for_leads_its_kind_and_no_other() -> None:
    numbers, classes = made_up(METHODS, metrics=["rmse", "mae"]), made_up(METHODS, metrics=["roc_auc"], tasks=["k"])
    both = pd.concat([numbers, classes])
    for asked, lead in (({}, "rmse"), ({"esol": "mae"}, "mae"), ({"esol": ["roc_auc", "mae"]}, "mae")):
        assert [b.metric for b in make_boards(both, primary=asked) if b.primary] == [lead, "roc_auc"]
    (whole,) = summarise(make_boards(pd.concat([both, made_up(METHODS, dataset="bace")])))
    assert whole.table["ranked"].tolist() == [3, 3, 3] and len(whole.boards) == 3


@pytest.fixture(scope="module")
def shown(run: Path, record: Path) -> list[tuple[BenchReport, str, str]]:
    """The run's report and its record's, each with leaderboard and page."""
    return [(made, leaderboard(made), report_page(made)) for made in (write_bench_report(run), read_record(record))]


def test_numbers_and_classes_of_one_dataset_lead_a_board_each(ran: Ran, shown) -> None:
    made, text, page = shown[0]
    leads = [(b.dataset, b.split, b.metric) for b in made.boards if b.primary]
    assert leads == [("mixed", "random-1x5", "rmse"), ("mixed", "random-1x5", "roc_auc"), ("mixed", "rare", "rmse"),
                     ("mixed", "rare", "roc_auc"), ("chains", "random-1x5", "rmse")]  # fmt: skip
    first = next(o for o in made.overall if o.split == "random-1x5")
    assert list(first.ranks.columns) == ["mixed, rmse", "mixed, roc_auc", "chains"]
    assert first.over == "3 boards of 2 datasets"
    metrics = [[b.metric for b in boards] for boards in made.sections() if boards[0].split == "rare"]
    assert metrics == [["rmse", "mae", "r2", "spearman"], ["roc_auc", "prc_auc", "mcc", "brier"]]
    for name in ("mixed--random-1x5--rmse", "mixed--random-1x5--roc-auc", "chains--random-1x5"):
        assert page.count(f'href="#{name}"') == 2 and page.count(f'id="{name}"') == 1
    assert "### mixed, roc\\_auc" in text and "Over 3 boards of 2 datasets" in page
    assert "Calibration" in page  # of the class alone, as on a board of its own
    rows = {"mixed random-1x5 rmse", "mixed random-1x5 roc_auc", "mixed rare rmse", "chains random-1x5 rmse"}
    assert rows <= set(BenchmarkResult(ran).summary.index)


def test_a_split_that_was_refused_is_a_line_and_the_others_rank(shown) -> None:
    for made, text, page in shown:
        (why,) = made.refused_splits.values()
        assert list(made.refused_splits) == [("chains", "rare")] and "empty" in why
        board = next(b for b in made.boards if (b.dataset, b.metric) == ("chains", "rmse"))
        assert board.split == "random-1x5" and board.ranking.ranked == ["ridge", "noise"]
        assert "chains was refused under the split rare" in text
        assert page.count("chains was refused under the split rare") == 1 and 'colspan="2">refused: ' in page


def test_rows_are_said_on_every_board_and_in_a_record(shown) -> None:
    for made, text, page in shown:
        assert text.count("99 of 100 rows; 1 cannot be read.") == 4 and text.count(" 60 rows.") == 1
        assert page.count("<li>99 of 100 rows; 1 cannot be read</li>") == 4 and page.count("<li>60 rows</li>") == 1
        assert "99 of 100 rows; 1 cannot be read" in repr(made.boards[0])
    assert str(RowCount()) == "" and str(RowCount(9, {"a": 1, "b": 2, "c": 1, "d": 1, "e": 1})) == (
        "3 of 9 rows; 2 b, 1 a, 1 c, 2 for 2 more reasons"
    )


def test_a_record_of_before_is_still_read(record: Path, tmp_path: Path) -> None:
    for path in record.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    about = json.loads((tmp_path / ABOUT).read_text())
    assert about["leading"] == {"mixed": ["rmse", "roc_auc"], "chains": ["rmse"]}
    about["leading"] = {"mixed": "rmse", "chains": "rmse"}
    del about["rows"], about["refused_splits"]
    (tmp_path / ABOUT).write_text(json.dumps(about))
    old, new = read_record(tmp_path), read_record(record)
    assert [b.primary for b in old.boards] == [b.primary for b in new.boards] and not str(old.boards[0].rows)


def test_what_was_refused_stands_with_the_result(ran: Ran) -> None:
    result = BenchmarkResult(ran)
    rows = result.scores.query("dataset == 'chains' and split == 'rare'")
    assert set(rows["status"]) == {"refused"} and len(rows) == 2 and rows["reason"].str.contains("empty").all()
    assert "chains rare (refused)" in result.summary.index
    assert "chains, rare is refused: " in repr(result) and "chains, rare is refused: " in result._repr_html_()


def test_errors_stand_beside_r2_spearman_and_the_fold_error_of_logarithms() -> None:
    scores = pd.concat([made_up({"a": 0.4, "b": 0.5}, metrics=["mae", "rmse", "r2", "spearman"], dataset="adme_hlm")])
    boards = make_boards(scores, primary={"adme_hlm": "mae"})
    main = next(board for board in boards if board.primary)
    assert all(board.beside.empty for board in boards if board is not main)
    recipe_of = BenchRecipe.from_dict(
        {"name": "x", "datasets": ["adme_hlm"], "split": [{"splitter": "random"}], "method": [{"name": "mean"}]}
    )
    target = "LOG HLM_CLint (mL/min/kg)"
    found = make_boards(scores.assign(target=target), recipe_of, primary={"adme_hlm": ["mae"]})
    main = next(board for board in found if board.primary)
    assert main.unit == "log10(mL/min/kg)" and main.censored == 0.31
    frame = main.to_frame()
    np.testing.assert_allclose(frame["fold_error"], 10 ** frame["mean"])
    r2 = scores.query("metric == 'r2'").groupby("method")["value"].mean()
    np.testing.assert_allclose(frame["r2"], r2.reindex(frame.index))
    text = "\n".join(board_lines(main))
    assert "| MAE, log10(mL/min/kg) | R² | Spearman ρ | fold error |" in text and "31% of the values stand" in text

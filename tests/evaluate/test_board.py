"""Boards: one table for one kind of row, nothing dropped without a word, cost and failures beside the score."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from molgraph.base.errors import MismatchError
from molgraph.data.replicates import replicate_sd
from molgraph.evaluate.benchmark.board import make_boards
from molgraph.evaluate.benchmark.board_overall import summarise
from molgraph.evaluate.benchmark.ranking import rank_methods
from molgraph.evaluate.benchmark.recipe import BenchRecipe, BenchSplit
from molgraph.evaluate.benchmark.report import heat
from molgraph.evaluate.benchmark.report_markdown import board_lines
from molgraph.evaluate.benchmark.report_rows import badge, board_rows, how_tested, sentences
from molgraph.evaluate.noise_ceiling import noise_ceiling
from tests.evaluate.bench_scores import failed, made_up
from tests.evaluate.bench_tables import recipe

METHODS = {"mean": 1.9, "rf": 1.0, "catboost": 0.9, "gp": 0.905}
NAN = float("nan")


def asked(*methods: str, **more: object) -> BenchRecipe:
    """A recipe of those methods on the dataset of the made-up scores."""
    split = [{"splitter": "random", "folds": 5, "repeats": 5}]
    values = {"name": "x", "datasets": ["esol"], "split": split, "method": [{"name": name} for name in methods]}
    return BenchRecipe.from_dict(values | more)


@pytest.mark.parametrize(("column", "what"), [("split_hash", "splits"), ("data_hash", "datasets")])
def test_rows_of_differing_hash_never_stand_in_one_table(column: str, what: str) -> None:
    scores = made_up(METHODS)
    scores.loc[(scores["fold"] == 3) & (scores["method"] == "gp"), column] = "another"
    with pytest.raises(MismatchError, match=f"{what}.*another"):
        make_boards(scores)
    # of another dataset, split or fold they may differ, and a failed cell that knew no hash is no contradiction
    both = pd.concat([made_up(METHODS), made_up(METHODS, dataset="bace"), made_up(METHODS, split="scaffold")])
    lost = failed(both, both["method"] == "gp")
    lost.loc[lost["method"] == "gp", column] = ""
    assert [(b.dataset, b.split) for b in make_boards(lost)] == [
        ("esol", "random-5x5"),
        ("bace", "random-5x5"),
        ("esol", "scaffold"),
    ]


def test_a_board_says_who_leads_by_how_much_and_what_it_costs() -> None:
    (board,) = make_boards(made_up(METHODS))
    assert board.sentence == "catboost and gp share the lead, over 25 folds" and board.primary
    frame = board.to_frame()
    assert list(frame.index) == ["catboost", "gp", "rf", "mean"] and frame["rank"].tolist() == [1, 1, 3, 4]
    assert frame["reference"].to_dict() == {"catboost": "better", "gp": "better", "rf": "", "mean": "worse"}
    assert np.isnan(frame.loc["catboost", "to_best"])
    low, step, high = frame.loc["rf", ["to_best_low", "to_best", "to_best_high"]]
    assert 0 < low < step < high and step == pytest.approx(frame.loc["rf", "mean"] - frame.loc["catboost", "mean"])
    assert frame.loc["mean", "cpu_minutes"] == pytest.approx(1.5 / 60) and frame["failures"].sum() == 0
    assert board.ranking.test_over_train == 0.25, "five folds: a fold's test rows are a quarter of its training rows"
    assert "share the lead" in repr(board) and "<table" in board._repr_html_()


def test_test_over_training_rows_are_those_of_the_recipe_whatever_was_run() -> None:
    rows = made_up(METHODS).query("fold < 2")
    split = str(rows["split"].iloc[0])
    plan = asked("gp").model_copy(update={"split": (BenchSplit(splitter="random", label=split, folds=5, repeats=5),)})
    assert make_boards(rows, plan)[0].ranking.test_over_train == 0.25
    assert BenchSplit(splitter="cold-both", folds=3).test_over_train == 0.25, "a ninth of the pairs, by four ninths"
    assert BenchSplit(splitter="cold-drug", folds=3).test_over_train == 0.5
    assert BenchSplit(splitter="random").test_over_train == pytest.approx(1 / 9)


def test_failed_cells_are_rows_and_their_method_is_not_ranked() -> None:
    scores = made_up(METHODS)
    scores = failed(scores, (scores["method"] == "gp") & (scores["fold"] == 2) & (scores["repeat"] > 2))
    scores = scores[~((scores["method"] == "mean") & (scores["repeat"] == 4))]  # not run yet
    (board,) = make_boards(scores, asked("dmpnn", "gp"))
    assert board.ranking.ranked == ["catboost", "rf"] and set(board.methods) == {*METHODS, "dmpnn"}
    frame = board.to_frame()
    assert frame.loc["gp", "note"] == "23 of 25 folds: timeout: over 600 s (r3-f2)" and frame.loc["gp", "failures"] == 2
    assert frame.loc["dmpnn", "note"] == "0 of 25 folds: not run"
    assert frame.loc["mean", "note"] == "20 of 25 folds: not run in r4-f0"
    assert board.failures[["method", "fold", "status"]].to_numpy().tolist() == [
        ["gp", "r3-f2", "timeout"],
        ["gp", "r4-f2", "timeout"],
    ]


def test_seeds_are_averaged_before_anything_is_tested() -> None:
    one, other = made_up(METHODS, seed=0), made_up(METHODS, seed=1).assign(seed=1)
    (board,) = make_boards(pd.concat([one, other]))
    assert board.ranking.n_folds == 25
    mean = pd.concat([one, other]).query("method == 'rf'").groupby(["repeat", "fold"])["value"].mean()
    assert board.scores.folds["rf"].to_numpy() == pytest.approx(mean.to_numpy())
    (lost,) = make_boards(pd.concat([one, failed(other, (other["method"] == "rf") & (other["fold"] == 0))]))
    assert "rf" not in lost.ranking.ranked and lost.ranking.left_out["rf"].startswith("20 of 25 folds")


def test_a_task_that_one_method_lacks_counts_for_nobody_and_is_named() -> None:
    scores = made_up(METHODS, tasks=["a", "b", "c"], metrics=["roc_auc"])
    hole = (scores["target"] == "b") & (scores["method"] == "rf") & (scores["fold"] == 1)
    scores.loc[hole, ["value", "note"]] = [NAN, "one class only (0) among the measured rows"]
    (board,) = make_boards(scores)
    assert board.scores.left_out == {"b": "left out in 5 of 25 folds: one class only (0) among the measured rows"}
    assert board.scores.counted["r0-f1"] == 2 and board.scores.counted["r0-f0"] == 3
    part = scores.query("repeat == 0 and fold == 1 and method == 'gp' and target != 'b'")["value"]
    assert board.scores.folds.loc["r0-f1", "gp"] == pytest.approx(part.mean())
    assert len(board.ranking.ranked) == 4
    # who lacks most tasks of a fold lacks the fold, and the others keep their tasks
    most = (scores["target"] != "b") & (scores["method"] == "mean") & (scores["fold"] == 0)
    scores.loc[most, ["value", "note"]] = [NAN, "all predicted values are the same"]
    (board,) = make_boards(scores)
    assert board.scores.counted["r0-f0"] == 3 and set(board.ranking.left_out) == {"mean"}
    assert board.ranking.left_out["mean"] == "20 of 25 folds: all predicted values are the same (r0-f0)"


def test_the_same_split_drawn_again_is_no_new_fold() -> None:
    scores = made_up(METHODS, repeats=5, folds=1).assign(split_hash="the one scaffold split")
    (board,) = make_boards(scores)
    assert board.ranking.n_folds == 1 and "5 folds are 1 different" in board.notes[0]
    assert board.to_frame()["rank"].isna().all()
    assert how_tested(board) == "Not tested: one fold cannot tell methods apart, so none has a rank."


def test_quoted_numbers_stand_on_their_board_and_are_not_ranked() -> None:
    quote = {"dataset": "esol", "split": "random-5x5", "method": "MPNN", "metric": "rmse", "value": 0.1}
    quote |= {"protocol": "one random split, 3 seeds", "source": "Wu et al. 2018"}
    first, second = make_boards(made_up(METHODS, metrics=["rmse", "r2"]), asked("mean", quoted=[quote]))
    assert first.quoted[0].value == 0.1 and not second.quoted and "MPNN" not in first.methods
    assert first.primary and not second.primary
    chosen = make_boards(made_up(METHODS, metrics=["rmse", "r2"]), primary={"esol": "r2"})
    assert [b.primary for b in chosen] == [False, True]
    assert [b.primary for b in make_boards(made_up(METHODS), primary={"esol": "kendall"})] == [True]


def test_the_summary_over_datasets_gives_places_from_six_sets_on() -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    parts = [made_up(METHODS, dataset=name, seed=i) for i, name in enumerate(names)]
    (whole,) = summarise(make_boards(pd.concat(parts)))
    assert list(whole.table.index[2:]) == ["rf", "mean"] and whole.table.loc["rf", "mean_place"] == 3
    assert whole.table.loc["mean", "loses"] == 6 and whole.table.loc["gp", "beats"] == 6
    places = np.array([stats.rankdata([p.query("method == @m")["value"].mean() for m in METHODS]) for p in parts])
    assert whole.table.loc[list(METHODS), "mean_place"].tolist() == pytest.approx(places.mean(axis=0).tolist())
    (few,) = summarise(make_boards(pd.concat(parts[:5])))
    assert few.table["mean_place"].isna().all() and list(few.table.index[2:]) == ["rf", "mean"]
    parts[3] = failed(parts[3], parts[3]["method"] == "gp", "memory")
    (lost,) = summarise(make_boards(pd.concat(parts)))
    assert "gp" not in lost.compared and lost.table.loc["gp", "ranked"] == 5 and np.isnan(lost.ranks.loc["gp", "d"])


def test_methods_are_percents_of_the_forests_error_over_datasets() -> None:
    metrics = {"esol": "rmse", "freesolv": "mae", "bace": "roc_auc", "lipo": "rmse"}
    parts = [made_up(METHODS, dataset=name, metrics=[m], seed=i) for i, (name, m) in enumerate(metrics.items())]
    (whole,) = summarise(make_boards(pd.concat(parts)))
    error = {name: p.groupby("method")["value"].mean() for name, p in zip(metrics, parts, strict=True)}
    error["bace"] = 1 - error["bace"]
    logs = np.log(pd.DataFrame({name: e / e["rf"] for name, e in error.items()}))
    half = stats.t.ppf(0.975, 3) * logs.std(axis=1) / np.sqrt(4)
    low, high = logs.mean(axis=1) - half, logs.mean(axis=1) + half
    table = whole.table.loc[logs.index]
    assert table["percent"].tolist() == pytest.approx((100 * np.exp(logs.mean(axis=1))).tolist())
    for ends, known in (("percent_low", low), ("percent_high", high)):
        others = table.index != "rf"
        assert table[ends][others].tolist() == pytest.approx((100 * np.exp(known))[others].tolist())
    for few in (1, 3):
        (one,) = summarise(make_boards(pd.concat(parts[:few])))
        assert one.table.loc["rf", "percent"] == 100 and one.table["percent_low"].isna().all()
    (none,) = summarise(make_boards(pd.concat(parts).query("method != 'rf'")))
    assert none.table["percent"].isna().all()


def test_a_recipe_names_the_method_that_others_are_held_against() -> None:
    parts = [made_up(METHODS, dataset=name, metrics=["rmse"], seed=i) for i, name in enumerate(("esol", "lipo"))]
    asked = recipe(*METHODS, datasets=["esol", "lipo"], reference="gp")
    boards = make_boards(pd.concat(parts), asked)
    (whole,) = summarise(boards)
    assert boards[0].against == "gp" and whole.table.loc["gp", "percent"] == 100
    means = [part.groupby("method")["value"].mean() for part in parts]
    by_hand = 100 * np.sqrt(np.prod([each["mean"] / each["gp"] for each in means]))
    assert whole.table.loc["mean", "percent"] == pytest.approx(by_hand)
    shown = board_rows(boards[0])["against"]
    assert shown["mean"] == "loses to gp" and shown["gp"] == "gp"
    assert "against gp" in board_lines(boards[0])[4]
    assert board_rows(make_boards(parts[0])[0])["against"]["rf"] == "the forest"


def test_the_noise_ceiling_is_what_a_perfect_model_scores() -> None:
    rng = np.random.default_rng(0)
    true = rng.normal(0, 2, 4000)
    y = true + rng.normal(0, 0.6, 4000)
    assert noise_ceiling(y, 0.6, "rmse") == 0.6
    assert noise_ceiling(y, 0.6, "mae") == pytest.approx(np.abs(y - true).mean(), abs=0.01)
    assert noise_ceiling(y, 0.6, "r2", n=20) == pytest.approx(
        1 - ((y - true) ** 2).sum() / ((y - y.mean()) ** 2).sum(), abs=0.01
    )
    assert noise_ceiling(y, 0.6, "spearman", n=20) == pytest.approx(stats.spearmanr(y, true).statistic, abs=0.01)
    assert np.isnan(noise_ceiling(y, 0.6, "roc_auc")) and np.isnan(noise_ceiling(y, 9.0, "r2"))
    keys = np.repeat([f"m{i}" for i in range(2000)], 2)
    sd, df = replicate_sd(list(keys), np.repeat(true[:2000], 2) + rng.normal(0, 0.6, 4000))
    assert df == 2000 and sd == pytest.approx(0.6, rel=0.05)


def test_nobody_leads_where_the_mean_label_is_not_beaten():
    scores = made_up({"good": 0.5, "mean": 0.501, "rf": 0.502}, repeats=1, folds=3)
    board = make_boards(scores)[0]
    assert board.tested and not board.leaders and (board.ranking.table["rank"] == 1).all()
    assert board.sentence == "good has the best score; over 3 folds none of rank 1 is told from the mean label"
    assert summarise([board])[0].table["first"].tolist() == [0, 0, 0]
    assert {tone for _, tone, _, _ in heat(board, board.methods)} == {"untested"}
    assert make_boards(made_up({"good": 0.5, "mean": 1.5}, repeats=5, folds=5))[0].leaders == ["good"]


def test_of_rank_1_lead_those_that_are_better_than_the_mean_label():
    scores = made_up({"good": 0.5, "wild": 0.6, "mean": 1.5}, repeats=1, folds=5)
    wild = scores["method"] == "wild"
    scores.loc[wild, "value"] += 3.0 * (scores.loc[wild, "fold"] - 2)  # its folds lie far apart
    board = make_boards(scores)[0]
    assert board.ranking.table["rank"].to_dict() == {"good": 1, "wild": 1, "mean": 2} and board.leaders == ["good"]
    assert board.sentence == "good leads, over 5 folds; 1 more method of rank 1 not told from the mean label"
    assert summarise([board])[0].table["first"].to_dict() == {"good": 1, "wild": 0, "mean": 0}
    assert (
        dict(zip(board.methods, [tone for _, tone, _, _ in heat(board, board.methods)], strict=True))["wild"] == "high"
    )


def test_a_submission_with_less_than_half_the_error_of_any_other_method_is_marked():
    board = make_boards(made_up({"theirs": 0.4, "rf": 0.9, "mean": 1.5}, repeats=2, folds=5))[0]
    assert badge(replace(board, entered={"theirs": "self-reported; code x"}), "theirs").startswith(
        "self-reported, suspicious: less than half the error"
    )
    near = make_boards(made_up({"theirs": 0.5, "rf": 0.9, "mean": 1.5}, repeats=2, folds=5))[0]
    assert badge(replace(near, entered={"theirs": "reproduced: by x"}), "theirs") == "reproduced"
    assert badge(board, "theirs") == badge(board, "rf") == "", "they were run here"


def test_a_single_fold_makes_nobody_first():
    scores = made_up({"mean": 1.2, "good": 0.5}, repeats=1, folds=1)
    board = make_boards(scores)[0]
    assert (
        not board.tested
        and board.sentence == "good has the best score of 2 methods; one fold cannot tell which are better"
    )
    overall = summarise([board])[0]
    assert overall.table["first"].tolist() == [0, 0] and list(overall.table.index) == ["good", "mean"]
    frame = make_boards(made_up({"rf": 1.2, "good": 0.5}, repeats=1, folds=1))[0].to_frame()
    assert set(frame["reference"]) == {""} and frame["rank"].isna().all(), "what was not tested has no verdict"
    both = summarise(
        [board, replace(make_boards(made_up({"mean": 1.2, "good": 0.5}, dataset="other"))[0], split=board.split)]
    )
    assert both[0].table.loc["good", ["first", "alone"]].tolist() == [1, 1] and both[0].compared == ("good", "mean")
    assert all(
        line.startswith("| \N{EM DASH} |") for line in board_lines(board) if "| good |" in line or "| mean |" in line
    )


def test_a_table_of_ones_own_may_say_which_difference_matters() -> None:
    values = {"name": "t", "datasets": ["mine"], "split": [{"splitter": "random", "folds": 5, "repeats": 5}]}
    said = {}
    for margin in (None, 0.2, 0.001):
        table = {"name": "mine", "path": "mine.csv", "targets": ["y"]} | ({} if margin is None else {"margin": margin})
        own = BenchRecipe.from_dict(values | {"table": [table], "method": [{"name": "rf"}, {"name": "knn"}]})
        scores = made_up({"rf": 1.0, "knn": 1.01}, dataset="mine", metrics=("rmse", "r2"))
        board, other = make_boards(scores, own, primary={"mine": "rmse"})
        said[margin] = "\n".join(sentences(board))
        assert board.ranking.margin == margin and other.ranking.margin is None
    assert "matter in practice" not in said[None] and "wider than twice that" not in said[0.2]
    assert "Differences below 0.200 do not matter in practice: so the recipe says." in said[0.2]
    assert "The intervals are wider than twice that" in said[0.001]


def test_neighbours_are_told_from_the_mean_label_where_every_fold_says_so() -> None:
    """Random folds of ClinTox (5 x 5) and Lipophilicity (2 x 5), ten methods: pooled ranks did not tell these apart."""
    folds = pd.read_csv(Path(__file__).with_name("clintox_lipo_folds.csv"))
    for name, x in folds.groupby("dataset"):
        found = rank_methods(x.iloc[:, 3:], name == "clintox", test_over_train=0.25, margin=0.03)
        assert found.verdict("knn", "mean") == "better" and found.verdict("mean", "knn") == "worse"
        assert (len(x) >= 20) == found.pairs["wilcoxon_p"].notna().all()

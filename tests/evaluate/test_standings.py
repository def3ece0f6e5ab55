"""Standings: counts by hand, one table a question, and what the shell shows of them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise

import pandas as pd
import pytest
from typer.testing import CliRunner

from molgraph.cli.main import app
from molgraph.evaluate.benchmark.board import make_boards
from molgraph.evaluate.benchmark.recipe import BenchMethod
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.standings import questions, read_standings
from pipelines.boards.standings import make_standings, settings_of
from tests.evaluate.bench_scores import made_up


def board(
    dataset: str, rows: int, ranks: dict[str, tuple[int, str]], split: str = "random-5x5", entity: str = "molecule"
):
    return [
        {
            "recipe": "r", "dataset": dataset, "entity": entity, "split": split, "metric": "rmse",
            "higher_is_better": False, "rows": rows, "method": name, "rank": rank,
            "leads": rank == 1 != ranks["mean"][0], "place": place, "score": 0.1 * place,
            "percent": 100 * place / ([*ranks, "random_forest"].index("random_forest") + 1),
            "against": against, "reference": "the forest", "cpu_seconds": 10.0 * place, "model": name, "settings": "",
        }
        for place, (name, (rank, against)) in enumerate(ranks.items(), 1)
    ]  # fmt: skip


def test_submitted_predictions_are_no_model_to_pick() -> None:
    (made, *_) = make_boards(made_up({"mean": 1.2, "random_forest": 0.5, "paper": 0.4}, noise=0.05))
    found = make_standings([BenchReport("A title", (replace(made, entered={"paper": "self-reported"}),))])
    assert found["method"].tolist() == ["random_forest", "mean"]


def test_methods_are_counted_over_the_boards_of_a_question() -> None:
    small = board("a", 100, {"gin": (1, "better"), "random_forest": (2, ""), "mean": (3, "worse")})
    other = board("b", 200, {"random_forest": (1, ""), "gin": (1, "undecided"), "mean": (3, "worse")})
    dull = board(
        "c", 300, {"gin": (1, "equivalent"), "mean": (1, "undecided"), "random_forest": (1, "")}
    )  # tells nothing
    large = board("d", 5_000, {"gin": (1, "better"), "random_forest": (2, ""), "mean": (3, "worse")})
    graphs = board("e", 5_000, {"gin": (1, ""), "mean": (2, "")}, "stratified-10", "graph")
    found = questions(pd.DataFrame([*graphs, *large, *small, *other, *dull]))
    assert [each.words for each in found] == [
        "Molecules, fewer than 2,000, rows at random", "Molecules, 2,000 and more, rows at random",
        "Graphs, rows at random",
    ]  # fmt: skip
    first = found[0]
    assert first.boards == ["a", "b", "c"] and [*first.table.index] == ["gin", "random_forest", "mean"]
    assert first.table["first"].tolist() == [2, 1, 0] and first.table["behind"].tolist() == [0, 0, 2]
    assert first.table["percent"].round(1).tolist() == [69.3, 100.0, 144.2], "cube roots"
    assert first.table["cpu_seconds"].tolist() == [10, 20, 30]
    rare = board("f", 100, {"chemprop": (1, "better"), "random_forest": (2, ""), "mean": (3, "worse")})
    found = questions(pd.DataFrame([*rare, *small, *other, *dull]))
    assert [*found[0].table.index] == ["gin", "random_forest", "mean", "chemprop"], "on one board of four"


def test_the_shell_says_which_model_to_pick() -> None:
    call = CliRunner().invoke
    said = call(app, ["models", "--why"], env={"COLUMNS": "80"})
    assert said.exit_code == 0 and max(map(len, said.output.splitlines())) <= 80
    assert all(name in said.output for name in read_standings()["method"]) and "Start with " in said.output
    one = json.loads(call(app, ["models", "dmpnn", "--why", "--json"]).output)
    known = read_standings().query("method == 'dmpnn' or model == 'dmpnn'")
    assert one == known.astype(object).where(known.notna(), None).to_dict("records")
    lines = call(app, ["models", "dmpnn", "--why"], env={"COLUMNS": "120"}).output.splitlines()
    assert sum(line.startswith(tuple(each["dataset"] for each in one)) for line in lines) == len(one)
    heads = {line.strip(): below for line, below in pairwise(lines)}
    assert all("the forest" in heads[f"{row}, scaffold-2x5"] for row in ("dmpnn", "dmpnn+rdkit"))
    tables = call(app, ["models", "gin", "--why"], env={"COLUMNS": "80"}).output.split("sortpool: molgraph")[0]
    assert max(map(len, tables.splitlines())) <= 80 and "attentivefp" in tables and "random_forest" in tables
    for name in ("diffpool", "pyg_pool"):
        said = call(app, ["models", name, "--why"], env={"COLUMNS": "80"}).output
        assert "-s params.pool=diffpool" in said
        assert all(f"diffpool: molgraph train dataset:{data} -m pyg_pool " in said for data in ("mutag", "dd"))
    lost = call(app, ["models", "diffpool"])
    assert lost.exit_code == 2 and "of the model pyg_pool" in lost.stderr
    graphs = call(app, ["models", "pyg_conv", "--why"], env={"COLUMNS": "80"}).output
    head, *rows = graphs.split("gcn, stratified-10")[1].splitlines()[1:]
    known = read_standings().query("method == 'gcn'")
    assert head.split()[-1] == "wl_kernel" and {*known["reference"]} == {"wl_kernel"} and "the forest" not in graphs
    words = {"better": "beaten", "worse": "better", "undecided": "undecided", "equivalent": "equivalent"}
    for each in known.itertuples():
        assert sum(r.split()[:1] == [each.dataset] and r.split()[-1] == words[each.against] for r in rows) == 1


def test_the_row_of_the_usual_model_is_trained_without_the_descriptors_that_train_adds() -> None:
    assert (
        settings_of(BenchMethod(name="dmpnn", params={"epochs": 9})) == "-s params.descriptors=none -s params.epochs=9"
    )
    assert settings_of(BenchMethod(name="dmpnn", params={"descriptors": "rdkit"})) == "-s params.descriptors=rdkit"
    assert settings_of(BenchMethod(name="gin")) == ""


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["infograph", "--why"], "of the kind objective"),
        (["schnet", "--why"], "stands on no measured board"),
        (["--kind", "metric", "--why"], "boards rank models"),
    ],
)
def test_what_no_board_ranks_is_named(words: list[str], reason: str) -> None:
    said = CliRunner().invoke(app, ["models", *words])
    assert said.exit_code == 2 and reason in str(said.exception or said.output) + said.stderr

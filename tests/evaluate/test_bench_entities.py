"""Benchmarks on graphs without chemistry, and on pairs of drugs and proteins."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from molgraph.base.errors import AmbiguousColumnError
from molgraph.base.table import Kind, Target
from molgraph.data.graph_values import Graph
from molgraph.data.splits import Split
from molgraph.data.table import OK, Entities, Table
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.run import Ran, run_benchmark
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.benchmark.verify import verify_records
from molgraph.evaluate.split_report import xray

pytestmark = pytest.mark.slow

FACTORY = "molgraph.train.make_method:make_method"
IMPORTS = ("molgraph.train.make_method", "molgraph.auxiliary", "pyarrow.parquet", "lightning.fabric", "sklearn")
DRUGS = ("CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCl", "C1CC1", "CCCC", "OCCO", "CNC", "CS")
PROTEINS = ("MKTAYIAKQRQ", "GIVEQCCTSIC", "ACDEFGHIKLM", "WWYLLA", "MSTNPKPQRK", "PPGF")
QUICK = {"epochs": 2, "head_width": 8, "batch_size": 16}
RECIPE = {
    "name": "entities",
    "datasets": ["rings", "pairs"],
    "metrics": ["accuracy", "ci", "rmse"],
    "split": [
        {"splitter": "random/stratified", "folds": 3, "datasets": ["rings"]},
        {"splitter": "cold-drug", "fractions": [0.7, 0, 0.3], "datasets": ["pairs"]},
        {"splitter": "cold-both", "folds": 2, "datasets": ["pairs"]},
    ],
    "method": [
        {"name": "mean"},
        {"name": "gin", "params": QUICK | {"epochs": 30, "d_hidden": 8, "learning_rate": 0.02}, "skip": ["pairs"]},
        {"name": "dmpnn+deepdta", "label": "both", "params": QUICK | {"deepdta.n_filters": 4}, "skip": ["rings"]},
        {"name": "dmpnn", "label": "drug", "params": QUICK | {"d_hidden": 8}, "inputs": ["drug"], "skip": ["rings"]},
        {"name": "deepdta", "label": "protein", "params": QUICK | {"inputs": ["protein"]}, "skip": ["rings"]},
        {"name": "knn", "inputs": ["drug"], "skip": ["rings"]},
        {"name": "linear", "skip": ["rings"]},
        {"name": "linear", "label": "typo", "inputs": ["durg"], "skip": ["rings"]},
    ],
    "run": {"jobs": 2},
}


def table_of(columns: dict[str, tuple[str, list]], y: np.ndarray, kind: Kind, classes: tuple[str, ...] = ()) -> Table:
    entities = []
    for name, (what, values) in columns.items():
        held = np.empty(len(y), dtype=object)
        held[:] = values
        entities.append(Entities(name, what, held))  # type: ignore[arg-type]
    status, reason = np.full(len(y), OK, object), np.full(len(y), "", object)
    ids = np.array([f"row {i}" for i in range(len(y))], object)
    return Table(ids, tuple(entities), status, reason, (Target("y", kind, classes=classes),), y.astype(float)[:, None])


def rings() -> Table:
    """Rings of marked and unmarked nodes, of which a third are all marked."""
    graphs, y = [], np.arange(36) % 3 == 0
    for i, marked in enumerate(y):
        n = 3 + i % 5
        edges = sorted((a, (a + step) % n) for a in range(n) for step in (1, n - 1))
        graphs.append(Graph(n, np.array(edges, np.int32), node_label=np.full(n, int(marked), np.int32)))
    return table_of({"graph": ("graph", graphs)}, y, "multiclass", ("no", "yes"))


def pairs() -> Table:
    """All pairs; the value is that of the drug and that of the protein together."""
    drug, protein = np.divmod(np.arange(len(DRUGS) * len(PROTEINS)), len(PROTEINS))
    columns = {"drug": ("molecule", [DRUGS[i] for i in drug]), "protein": ("sequence", [PROTEINS[i] for i in protein])}
    return table_of(columns, drug + protein, "regression")


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Ran:
    recipe = BenchRecipe.from_dict(RECIPE)
    tables, out = {"rings": rings(), "pairs": pairs()}, tmp_path_factory.mktemp("entities")
    return run_benchmark(recipe, out, factory=FACTORY, imports=IMPORTS, tables=tables)


def test_every_cell_ends_as_its_columns_let_it(ran: Ran) -> None:
    assert not ran.refusals and ran.wanted == 2 * 3 + 7 * 3
    assert {(cell.method, status) for cell, status, _ in ran.failures} == {("linear", "refused"), ("typo", "refused")}
    reasons = {cell.method: reason for cell, _, reason in ran.failures}
    assert "'protein' (sequence)" in reasons["linear"] and "no entity column 'durg'" in reasons["typo"]


def test_graphs_are_learned_in_stratified_folds(ran: Ran) -> None:
    scores = score_records(read_records(ran.out))
    found = scores[(scores["dataset"] == "rings") & (scores["metric"] == "accuracy")]
    by = found.groupby("method")["value"].agg(list)
    assert np.allclose(by["mean"], 2 / 3), "each fold has its share of the classes"
    assert np.mean(by["gin"]) > 0.9


def test_pairs_are_scored_with_a_row_for_each_side(ran: Ran) -> None:
    scores = score_records(read_records(ran.out))
    found = scores[(scores["dataset"] == "pairs") & (scores["status"] == "ok") & (scores["metric"] == "ci")]
    assert set(found["method"]) == {"mean", "both", "drug", "protein", "knn"}
    assert (found[found["method"] == "mean"]["value"] == 0.5).all()
    assert found["value"].between(0, 1).all() and len(found) == 3 * 5
    for file in sorted((ran.out / "splits" / "pairs" / "cold-both-1x2").glob("r*.json")):
        split = Split.load(file)
        assert split.sizes["left_out"] == 30 and split.sizes["test"] == split.sizes["train"] == 15


def test_the_folder_is_verified_and_its_page_says_which_sections_do_not_apply(ran: Ran, tmp_path: Path) -> None:
    assert verify_records(ran.out).ok
    report = write_bench_report(ran.out, tmp_path / "page.html", tmp_path / "board.md")
    assert {(board.name, board.metric) for board in report.boards} == {
        ("rings", "accuracy"), ("pairs", "ci"), ("pairs", "rmse"),
    }  # fmt: skip
    assert all(not board.ceilings for board in report.boards), "a drug with two proteins is no replicate"
    assert (tmp_path / "page.html").read_text().count("need one molecule a row") == 3


@pytest.mark.parametrize("make", [rings, pairs])
def test_an_xray_says_in_a_sentence_that_it_needs_molecules(make) -> None:
    with pytest.raises(AmbiguousColumnError):
        xray(make())

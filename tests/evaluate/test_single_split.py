"""One published split: methods are tested by draws of its test molecules, scaffold by scaffold."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import molgraph
from molgraph.chem.scaffold import scaffolds
from molgraph.data.datasets import load_dataset
from molgraph.evaluate.benchmark.bootstrap import bootstrap_errors
from molgraph.evaluate.benchmark.published_record import read_record
from molgraph.evaluate.benchmark.ranking import rank_methods
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.report_markdown import leaderboard
from molgraph.evaluate.benchmark.run_folder import read_records
from tests.evaluate.bench_tables import go, recipe


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three methods on the assay that comes with RDKit, under DeepChem's scaffold split."""
    out = tmp_path_factory.mktemp("bench") / "run"
    forest = {"name": "ridge", "label": "random_forest"}
    noisy = [{"name": "ridge", "label": f"noise{n}", "params": {"noise": float(n)}} for n in (1, 3)]
    split = [{"splitter": "scaffold/deepchem", "fractions": (0.6, 0.0, 0.4)}]
    table = load_dataset("chembl2321810").table
    go(out, recipe(forest, *noisy, split=split, metrics=["mae"]), tables={"small": table})
    return out


def test_errors_are_those_of_a_cluster_bootstrap(run: Path) -> None:
    """Against the variance of a mean over clusters, linearised: sum over clusters of (sum of residuals)^2 / n^2."""
    records = read_records(run)
    (board,) = write_bench_report(run).boards
    errors = bootstrap_errors(records, board)
    assert errors is not None and [*errors.index] == board.ranking.ranked
    found = {r.cell.method: records.predictions(r.cell) for r in records.done}
    loss, (target,) = {}, records.problems[board.dataset].targets
    for name, each in found.items():
        loss[name] = np.abs(each.y[target.name] - each.p[target.name])
    keys = scaffolds(load_dataset("chembl2321810").table.smiles[found["noise1"].rows].tolist()).values
    keys = np.array([key or f"row {i}" for i, key in enumerate(keys)])
    assert len(set(keys)) > 20
    for a, b in (("noise1", "noise3"), ("noise3", "random_forest")):
        apart = loss[a] - loss[b]
        sums = pd.Series(apart - apart.mean()).groupby(keys).sum()
        assert errors.loc[a, b] == errors.loc[b, a] == pytest.approx(np.sqrt((sums**2).sum()) / len(apart), rel=0.2)
        plain = apart.std() / np.sqrt(len(apart))
        assert errors.loc[a, b] != pytest.approx(plain, rel=0.01)


def test_methods_are_tested_and_ranked_and_a_record_keeps_it(run: Path, tmp_path: Path) -> None:
    report = write_bench_report(run, record=tmp_path / "kept")
    (board,) = report.boards
    assert board.tested and board.ranking.bootstrap and board.ranking.table["rank"].notna().all()
    assert board.against_reference("noise3") == "worse" and board.ranking.table["low"].notna().all()
    text = leaderboard(report)
    assert "One split: its test rows were drawn anew (molecules by scaffold" in text and "loses to the forest" in text
    assert leaderboard(read_record(tmp_path / "kept")) == text


def test_errors_give_a_normal_test_with_holms_rule() -> None:
    folds = pd.DataFrame({"a": [1.0], "b": [0.5], "c": [0.48]})
    errors = pd.DataFrame(np.full((3, 3), 0.1), folds.columns, folds.columns)
    found = rank_methods(folds, True, errors=errors)
    raw = [2 * stats.norm.sf(abs(r.difference) / 0.1) for r in found.pairs.itertuples()]
    assert found.pairs["p"].tolist() == pytest.approx([2 * raw[0], 3 * raw[1], raw[2]])
    assert (
        found.table["rank"].to_dict() == {"a": 1, "b": 2, "c": 2} and found.pairs["verdict"].tolist()[2] == "undecided"
    )
    assert (found.table["high"] - found.table["low"]).tolist() == pytest.approx([0.2 * stats.norm.ppf(0.975)] * 3)
    assert found.pairs[["d", "wilcoxon_p"]].isna().all(axis=None) and not found.pairs["tukey"].any()
    untested = rank_methods(folds, True, errors=errors.loc[["a", "b"], ["a", "b"]])
    assert not untested.tested


def test_molecules_and_proteins_of_pairs_are_drawn_apart(tmp_path: Path) -> None:
    """Against the variance of a two-way layout, linearised: the squared sums over molecules and over proteins."""
    n, rng = 40, np.random.default_rng(0)
    level = 0.1 * np.arange(n)[:, None] + rng.normal(size=(n, 1)) + rng.normal(size=(1, n))  # of drugs and proteins
    proteins = ["M" + "ACDEFGHIKL"[i % 10] * (i + 1) for i in range(n)]
    pairs = {"drug": np.repeat([f"C{'C' * i}O" for i in range(n)], n), "protein": proteins * n, "y": level.ravel()}
    table = molgraph.read_table(pd.DataFrame(pairs), smiles="drug", sequence="protein", targets=["y"])
    rows = [{"name": "ridge", "label": "line"}, {"name": "ridge", "label": "flat", "params": {"alpha": 1e9}}]
    split = [{"splitter": "random", "fractions": (0.5, 0.0, 0.5)}]
    go(tmp_path / "run", recipe(*rows, split=split, metrics=["mae"]), tables={"small": table})
    records = read_records(tmp_path / "run")
    (board,) = write_bench_report(tmp_path / "run").boards
    errors = bootstrap_errors(records, board)
    found = {r.cell.method: records.predictions(r.cell) for r in records.done}
    loss = {name: np.abs(each.y["y"] - each.p["y"]) for name, each in found.items()}
    apart, tested = loss["flat"] - loss["line"], table.take(found["flat"].rows)
    square = [(pd.Series(apart - apart.mean()).groupby(e.values).sum() ** 2).sum() for e in tested.entities]
    assert errors is not None and errors.loc["flat", "line"] == pytest.approx(
        np.sqrt(sum(square)) / len(apart), rel=0.25
    )
    assert errors.loc["flat", "line"] > 1.5 * apart.std() / np.sqrt(len(apart)), "rows are not independent"


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [[5] * 20, [60, 30, 15, 8, *[1] * 36], [1] * 200])
def test_equal_methods_on_one_split_are_told_apart_on_at_most_6_of_100_boards(sizes: list[int]) -> None:
    """Six methods whose losses have a scaffold's part; with normal quantiles 14 of 100 boards of 20 scaffolds claim."""
    clusters, claims, rng = np.repeat(np.arange(len(sizes)), sizes), 0, np.random.default_rng(0)
    names, n = list("abcdef"), len(sizes)
    df = sum(sizes) ** 2 / sum(m**2 for m in sizes) - 1
    for _ in range(400):
        loss = np.sqrt(0.3) * rng.normal(size=(n, 6))[clusters] + np.sqrt(0.7) * rng.normal(size=(len(clusters), 6))
        sums = np.stack([np.bincount(clusters, column, minlength=n) for column in loss.T])
        times = rng.multinomial(n, np.full(n, 1 / n), size=400)
        drawn = (times @ sums.T) / (times @ np.array(sizes))[:, None]
        errors = pd.DataFrame((drawn[:, :, None] - drawn[:, None, :]).std(axis=0, ddof=1), names, names)
        errors.attrs["df"] = df
        folds = pd.DataFrame([loss.mean(axis=0)], columns=names)
        claims += bool(rank_methods(folds, False, errors=errors).pairs["different"].any())
    assert claims <= 24, claims

"""Early recognition against RDKit's scoring, calibration against scikit-learn's curve; means over targets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdkit.ML.Scoring import Scoring

from molgraph.base.contracts import Prediction, Target
from molgraph.base.registry import names
from molgraph.data.table import make_table
from molgraph.evaluate.measures import Undefined
from molgraph.evaluate.metrics import Score, get_metric, score
from molgraph.evaluate.screening import bedroc, calibration_error, enrichment
from molgraph.evaluate.tasks import mean_over_tasks


def ranked(y: np.ndarray, p: np.ndarray) -> list[list[float]]:
    order = np.argsort(-p, kind="stable")
    return [[s, a] for s, a in zip(p[order], y[order], strict=True)]


@given(st.integers(0, 10_000), st.integers(2, 400), st.floats(0.01, 0.9))
def test_bedroc_and_enrichment_are_rdkits(seed: int, n: int, share: float) -> None:
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(float)
    y[:2] = [0, 1]
    p = rng.permutation(n) / n
    assert bedroc(y, p) == pytest.approx(min(max(Scoring.CalcBEDROC(ranked(y, p), 1, 20.0), 0), 1), abs=1e-9)
    assert enrichment(y, p) == pytest.approx(Scoring.CalcEnrichment(ranked(y, p), 1, [0.01])[0], rel=1e-12)


def test_rows_of_one_score_count_as_the_mean_of_all_their_orders() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(150) < 0.2).astype(float)
    p = rng.integers(0, 6, 150) / 6
    orders = [rng.permutation(150) for _ in range(4000)]
    found = [(Scoring.CalcBEDROC(r, 1, 20.0), Scoring.CalcEnrichment(r, 1, [0.01])[0]) for r in
             (ranked(y[o], p[o]) for o in orders)]  # fmt: skip
    assert bedroc(y, p) == pytest.approx(np.mean([f[0] for f in found]), abs=0.003)
    assert enrichment(y, p) == pytest.approx(np.mean([f[1] for f in found]), abs=0.1)
    for o in orders[:20]:
        assert bedroc(y[o], p[o]) == pytest.approx(bedroc(y, p), abs=1e-12)
        assert enrichment(y[o], p[o]) == pytest.approx(enrichment(y, p), abs=1e-12)


def test_calibration_of_classes_is_of_the_one_that_is_said() -> None:
    p = np.array([[0.8, 0.1, 0.1], [0.1, 0.85, 0.05], [0.4, 0.3, 0.3], [0.2, 0.2, 0.6]])
    y = np.array([0, 2, 0, 2.0])
    # bins (0.3, 0.4], (0.5, 0.6], (0.7, 0.8], (0.8, 0.9]; one row in each
    assert calibration_error(y, p) == pytest.approx((0.2 + 0.85 + 0.6 + 0.4) / 4)


@pytest.mark.parametrize("name", ["bedroc", "ef1", "f1", "balanced_accuracy"])
def test_one_class_has_no_value(name: str) -> None:
    with pytest.raises(Undefined, match="one class"):
        get_metric(name).function(np.ones(5), np.linspace(0, 1, 5))


def test_early_recognition_has_the_direction_and_range_it_claims() -> None:
    y = np.array([1.0] * 5 + [0.0] * 495)
    best, worst = np.arange(500)[::-1] / 500, np.arange(500) / 500
    assert bedroc(y, best) == pytest.approx(1) and bedroc(y, worst) == pytest.approx(0)
    assert enrichment(y, best) == 100 and enrichment(y, worst) == 0
    assert enrichment(y, np.zeros(500)) == pytest.approx(1)


def test_the_table_of_metrics_is_whole() -> None:
    table = {name: get_metric(name) for name in names("metric")}
    asked = {"rmse", "mae", "r2", "kendall", "spearman", "roc_auc", "prc_auc", "mcc", "bedroc", "ef1", "log_loss"}
    assert asked | {"brier", "ece"} <= set(table)
    assert all(each.needs and callable(each.function) for each in table.values())
    lower = {name for name, each in table.items() if not each.higher_is_better}
    assert lower >= {"rmse", "mae", "log_loss", "brier", "ece"} and not lower & {"r2", "roc_auc", "mcc", "bedroc"}


def test_a_mean_over_targets_names_those_it_leaves_out() -> None:
    targets = tuple(Target(name, "binary") for name in "abc")
    y = np.array([[0, 1, np.nan], [1, 1, np.nan], [0, 1, np.nan], [1, 1, np.nan]])
    table = make_table(["C"] * 4, targets=targets, y=y)
    p = Prediction(table.ids, targets, np.tile([[0.1], [0.9], [0.2], [0.8]], 3), table.status, table.reason)
    (mean,) = mean_over_tasks(score(table, p, metrics=["roc_auc"]))
    assert (mean.value, mean.n_tasks, mean.of, mean.n_rows) == (1.0, 1, 3, 4)
    assert [name for name, _ in mean.left_out] == ["b", "c"]
    assert "1 of 3 targets" in mean.text() and "b (one class only" in mean.text() and "c (0 rows" in mean.text()


def test_a_mean_of_nothing_is_no_number_and_says_why() -> None:
    (mean,) = mean_over_tasks([Score(f"t{i}", "rmse", float("nan"), 0, "none") for i in range(5)])
    assert np.isnan(mean.value) and mean.n_tasks == 0
    assert (
        mean.text()
        == "RMSE has no value, mean of 0 of 5 targets; left out: t0 (none), t1 (none), t2 (none), and 2 more"
    )
    assert mean_over_tasks([]) == []

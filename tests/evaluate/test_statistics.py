"""Bootstrap intervals: they hold the truth as often as they say, and pairing narrows them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.multitest import multipletests

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import ShapeError
from molgraph.data.table import make_table
from molgraph.evaluate.statistics import holm, paired_difference, score_interval
from molgraph.evaluate.verdict import Verdict, verdict

RNG = np.random.default_rng(0)
Y = RNG.normal(size=200)
NAN = float("nan")


def test_an_interval_is_scipys_percentile_bootstrap() -> None:
    p = Y + RNG.normal(size=200)
    own = score_interval(Y, p, "mae", n=4000)
    peer = stats.bootstrap((np.abs(Y - p),), np.mean, n_resamples=4000, method="percentile", rng=1).confidence_interval
    assert own.value == pytest.approx(np.abs(Y - p).mean())
    assert own.low == pytest.approx(peer.low, abs=0.01) and own.high == pytest.approx(peer.high, abs=0.01)


def test_it_covers_the_truth_about_as_often_as_it_says() -> None:
    inside = 0
    for seed in range(200):
        e = np.random.default_rng(seed).normal(size=60)
        found = score_interval(np.zeros(60), e, "mae", n=200, level=0.9, seed=seed)
        inside += found.low <= np.sqrt(2 / np.pi) <= found.high
    assert 165 <= inside <= 195  # of 200 at 90%


def test_pairing_sees_what_two_intervals_do_not() -> None:
    hard = RNG.normal(size=200) * 3
    a, b = Y + hard, Y + hard * 1.05
    difference = paired_difference(Y, a, b, "rmse")
    one, other = score_interval(Y, a, "rmse"), score_interval(Y, b, "rmse")
    assert one.high > other.low
    assert difference.high < 0 and difference.value == pytest.approx(one.value - other.value)


def test_a_seed_gives_one_interval_and_swapping_turns_the_sign() -> None:
    a, b = Y + RNG.normal(size=200), Y + RNG.normal(size=200)
    one, again, turned = (paired_difference(Y, *pair, "mae", seed=3) for pair in ((a, b), (a, b), (b, a)))
    assert one == again != paired_difference(Y, a, b, "mae", seed=4)
    assert turned == pytest.approx((-one.value, -one.high, -one.low))


def test_missing_values_are_left_out_of_both() -> None:
    y, a, b = np.append(Y, [NAN, 0.0, 0.0]), np.append(Y + 1, [0.0, NAN, 0.0]), np.append(Y + 3, [0.0, 0.0, NAN])
    assert paired_difference(y, a, b, "mae", n=50) == pytest.approx((-2.0, -2.0, -2.0))
    with pytest.raises(ShapeError, match="2 predictions"):
        paired_difference(np.zeros(3), np.zeros(2), np.zeros(3), "mae")


def test_rare_classes_and_no_rows_give_no_false_interval() -> None:
    y = np.zeros(30)
    y[0] = 1
    found = score_interval(y, np.linspace(1, 0, 30), "roc_auc", n=200)
    assert found.value == 1.0 and np.isfinite(found.low)  # resamples without the rare class are left out
    assert all(np.isnan(score_interval(np.zeros(0), np.zeros(0), "mae")))
    assert all(np.isnan(score_interval(np.zeros(5), np.zeros(5), "roc_auc")))


def _verdict(kind: str = "regression", **values: np.ndarray) -> object:
    target = Target("y", kind)  # type: ignore[arg-type]
    y = (Y > 0).astype(float) if kind == "binary" else Y
    table = make_table(["C"] * 200, targets=(target,), y=y)
    found = {
        name: Prediction(table.ids, (target,), v.reshape(-1, 1), table.status, table.reason)
        for name, v in values.items()
    }
    return verdict(table, found, target)


def test_a_verdict_names_the_winner_only_where_rows_tell() -> None:
    noise = np.random.default_rng(1).normal(size=(2, 200))
    floor = np.zeros(200)
    won = _verdict(graph=Y + noise[0], forest=Y + 0.3 * noise[1], mean=floor)
    assert won.sentence == "y: forest beats graph" and won.tone == "clear" and won.difference.high < 0
    tie = _verdict(graph=Y + 0.5 * noise[0], forest=Y + 0.5 * noise[1], mean=floor)
    assert "cannot be told apart" in tie.sentence and tie.tone == "tie"
    poor = _verdict(graph=0.05 * noise[0], forest=0.05 * noise[1], mean=floor)
    assert "neither is clearly better than the mean" in poor.sentence and poor.tone == "warning"
    alone = _verdict(graph=0.05 * noise[1], mean=floor)
    assert "not clearly better than the mean" in alone.sentence
    assert "95% interval" in alone.detail and list(alone.values) == ["mean", "graph"]


def test_a_verdict_says_when_a_model_is_worse_than_the_floor() -> None:
    floor, noise = np.full(200, Y.mean()), RNG.normal(size=(3, 200))
    lost = _verdict(graph=Y + 3 * noise[0], mean=floor)
    assert lost.sentence.endswith("which is worse than the mean") and lost.tone == "warning"
    assert "not clearly better" not in lost.sentence
    both = _verdict(graph=Y + 3 * noise[0], forest=Y + 9 * noise[1], mean=floor)
    assert both.sentence == "y: graph beats forest, and both are worse than the mean" and both.tone == "warning"
    three = _verdict(a=Y + 3 * noise[0], b=Y + 9 * noise[1], c=Y + 9 * noise[2], mean=floor)
    assert three.sentence.endswith(", and all are worse than the mean")
    labels = (Y > 0).astype(float)
    turned = _verdict("binary", graph=1 - labels, mean=np.full(200, 0.5))
    assert turned.sentence.endswith("which is worse than the mean")  # where higher is better, too


def test_a_verdict_knows_the_direction_and_when_there_is_none() -> None:
    good, bad = (Y > 0) * 0.6 + 0.2, np.random.default_rng(2).random(200)
    assert _verdict("binary", bad=bad, good=good).sentence == "y: good beats bad"
    none = _verdict("binary", good=np.full(200, NAN))
    assert none.tone == "warning" and "no verdict" in none.sentence and "0 rows" in none.detail


def _few(kind: str, y: list[float], **values: np.ndarray) -> Verdict:
    target = Target("y", kind, classes=("a", "b", "c") if kind == "multiclass" else ())  # type: ignore[arg-type]
    table = make_table(["C"] * len(y), targets=(target,), y=y)
    found = {n: Prediction(table.ids, (target,), v, table.status, table.reason) for n, v in values.items()}
    return verdict(table, found, target)


@pytest.mark.parametrize("rare", [1, 9, 10])
def test_no_verdict_on_few_of_the_rarer_class(rare: int) -> None:
    """B2: 99 negatives and one positive gave "a clear difference" with an interval."""
    y = np.r_[np.zeros(100 - rare), np.ones(rare)]
    noise = np.random.default_rng(3).normal(size=100)
    methods = {"graph": (y + 0.1 * noise)[:, None], "forest": noise[:, None], "mean": np.zeros((100, 1))}
    found = _few("binary", y.tolist(), **methods)
    assert next(iter(found.values)) == "graph", "the scores stay, best first"
    if rare == 10:
        assert found.sentence == "y: graph beats forest" and found.tone == "clear"
        return
    assert found.sentence == "y: these rows give no verdict" and found.tone == "warning"
    assert found.detail.startswith(f"{rare} of 100 test rows {'is' if rare == 1 else 'are'} of the rarer class")
    assert (
        "needs 10" in found.detail
        and "by the split random/stratified (of molecules scaffold/stratified), a larger last share" in found.detail
    )
    assert np.isnan(found.difference.low)


def test_no_verdict_on_few_rows_or_nearly_one_class() -> None:
    y = np.arange(9.0)
    found = _few("regression", y.tolist(), good=y[:, None], bad=9 - y[:, None])
    assert "no verdict" in found.sentence and found.detail.startswith("9 test rows that every method predicts: ")
    assert "test file" in found.detail and "stratified" not in found.detail
    assert "beats" in _few("regression", [*y, 9.0], good=np.r_[y, 9.0][:, None], bad=np.zeros((10, 1))).sentence
    labels = np.r_[np.zeros(90), np.ones(5), np.full(4, 2.0)]
    p = np.eye(3)[labels.astype(int)]
    found = _few("multiclass", labels.tolist(), good=p, bad=p[::-1])
    assert "no verdict" in found.sentence and found.detail.startswith("9 of 99 test rows are not of the commonest")
    several = _few("multiclass", [*labels, 1.0], good=np.r_[p, p[90:91]], bad=np.r_[p, p[90:91]][::-1])
    assert several.sentence == "y: good beats bad", "five and six rows of two rare classes are enough together"


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([0.0, 0.001, 0.004, 0.01, 0.02, 0.04, 0.2, 1.0]), min_size=1, max_size=9))
def test_holms_rule_is_statsmodels_where_values_are_equal(raw: list[float]) -> None:
    assert holm(np.array(raw)) == pytest.approx(multipletests(raw, method="holm")[1])

"""Rankings of methods over folds: equal to the libraries' tests, right as often as they say, fair to who is missing."""

from __future__ import annotations

import sys
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
import scikit_posthocs
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.anova import AnovaRM
from statsmodels.stats.multicomp import pairwise_tukeyhsd

from molgraph.base.errors import DataError, MolgraphError
from molgraph.evaluate.benchmark.ranking import CONOVER, TUKEY, UNTESTED, rank_methods
from molgraph.evaluate.benchmark.ranking_checks import check_assumptions, epsilons, mauchly, residuals
from molgraph.evaluate.benchmark.ranking_groups import letter_groups, shared_ranks
from molgraph.evaluate.benchmark.ranking_ranks import by_ranks
from molgraph.evaluate.benchmark.ranking_tukey import range_quantile, range_tail

NAN = float("nan")


def scores(seed: int, means: list[float], n: int = 25, noise: float = 0.1, fold: float = 1.0) -> pd.DataFrame:
    """Folds that are hard for all alike, and methods with true means."""
    rng = np.random.default_rng(seed)
    x = fold * rng.normal(size=(n, 1)) + noise * rng.normal(size=(n, len(means))) + np.array(means)
    return pd.DataFrame(x, columns=[f"m{i}" for i in range(len(means))])


@pytest.mark.parametrize(("k", "df"), [(2, 4), (3, 2), (10, 216), (20, 76)])
def test_the_studentised_range_is_scipys(k: int, df: int) -> None:
    q = np.array([0.0, 0.3, 1.0, 3.0, 4.5, 8.0])
    assert range_tail(q, k, df) == pytest.approx(stats.studentized_range.sf(q, k, df), abs=1e-8)
    assert range_quantile(0.95, k, df) == pytest.approx(stats.studentized_range.ppf(0.95, k, df), rel=1e-7)


def test_the_parametric_road_is_statsmodels() -> None:
    x = scores(0, [0.0, 0.0, 0.05, 0.3, 0.31])
    found = rank_methods(x, True)
    assert found.test == TUKEY and all(check.holds for check in found.checks)
    long = x.rename_axis("fold").reset_index().melt(id_vars="fold", var_name="method")
    table = AnovaRM(long, "value", "fold", within=["method"]).fit().anova_table
    assert found.omnibus is not None
    assert found.omnibus.statistic == pytest.approx(table["F Value"].iloc[0])
    assert found.omnibus.p == pytest.approx(table["Pr > F"].iloc[0])
    # Tukey's HSD with the error term of the repeated measures: the residual degrees of freedom are fewer than those of
    # independent groups, so statsmodels' is asked about the residuals plus the means, with its margin rescaled
    centred = residuals(x.to_numpy()) + x.to_numpy().mean(axis=0)
    peer = pairwise_tukeyhsd(centred.ravel(), np.tile(x.columns.to_numpy(), len(x)))
    k, n = x.shape[1], len(x)
    scale = np.sqrt((n * k - k) / ((n - 1) * (k - 1))) * range_quantile(0.95, k, (n - 1) * (k - 1))
    scale /= stats.studentized_range.ppf(0.95, k, n * k - k)
    for (a, b), difference, (_, high) in zip(combinations(x.columns, 2), peer.meandiffs, peer.confint, strict=True):
        mine = found.pair(b, a)
        assert mine["difference"] == pytest.approx(difference)
        assert mine["high"] - mine["difference"] == pytest.approx((high - difference) * scale, rel=1e-4)
        assert bool(mine["different"]) == (mine["low"] > 0 or mine["high"] < 0) == (mine["p"] < 0.05)
    assert found.floor == pytest.approx(mine["high"] - mine["difference"])


def test_the_other_road_is_scipys_and_scikit_posthocs() -> None:
    x = scores(1, [0.0, 0.02, 0.1, 0.1]) ** 3
    found = rank_methods(x, False)
    assert found.test == CONOVER and not found.checks[0].holds and found.omnibus is not None
    friedman = stats.friedmanchisquare(*x.to_numpy().T)
    assert found.omnibus[1:] == pytest.approx((friedman.statistic, friedman.pvalue))
    peer = scikit_posthocs.posthoc_conover_friedman(x, p_adjust="holm")
    order = found.ranked
    for a, b in combinations(order, 2):
        mine = found.pair(a, b)
        runs = combinations(range(5), 2)
        held = [order[i:j] for i, j in runs if {a, b} <= set(order[i:j])]
        least = max(stats.friedmanchisquare(*x[run].to_numpy().T).pvalue for run in held if len(run) > 2)
        if [a, b] in held:  # a run of two of the four methods is asked for more
            sign = stats.chi2.sf((2 * (x[a] < x[b]).sum() - 25) ** 2 / 25, 1)
            least = max(least, 1 - (1 - sign) ** 2)
        t = stats.ttest_rel(x[a], x[b])  # the printed interval has a say too: it, and the direction, have to agree
        turned = np.sign(t.statistic) == np.sign(
            stats.rankdata(x, axis=1).mean(axis=0) @ ((x.columns == b) * 1.0 - (x.columns == a))
        )
        assert mine["p"] == pytest.approx(1 if turned else max(peer.loc[a, b], least, min(1, 6 * t.pvalue)))
        t = stats.t.ppf(1 - 0.05 / 12, 24) * (x[a] - x[b]).std() / 5
        assert (mine["low"], mine["high"]) == pytest.approx(
            ((x[a] - x[b]).mean() - t, (x[a] - x[b]).mean() + t), rel=1e-9
        )
        assert mine["d"] == pytest.approx((x[a] - x[b]).mean() / (x[a] - x[b]).std())
    # Conover 1999, equation 5.8: the critical difference of rank sums
    r = stats.rankdata(x, axis=1)
    sums = r.sum(axis=0)
    error = 2 * (25 * (r**2).sum() - (sums**2).sum()) / (24 * 3)
    least = stats.t.ppf(1 - 0.05 / 12, 72) * np.sqrt(error) / 25
    assert by_ranks(x.to_numpy(), r, 0.05)[2] == pytest.approx(least)
    # and it is not said where it does not hold: the guard, or the interval, keeps two methods further apart together
    apart = max(
        abs(sums[i] - sums[j]) / 25 for i, j in combinations(range(4), 2) if not found.told_apart(*x.columns[[i, j]])
    )
    assert apart > least and np.isnan(found.rank_floor)
    clear = rank_methods(np.exp(scores(1, [0.0, 0.08, 0.2, 1.2], fold=0.1)), False)
    assert clear.test == CONOVER and 0.3 < clear.rank_floor < least


def test_sphericity_is_judged_as_published() -> None:
    # Huynh-Feldt's and Greenhouse-Geisser's definitions through the double-centred covariance of the methods
    x = scores(2, [0.0] * 4, n=12).to_numpy() * np.array([1, 1, 2, 5])
    s = np.cov(x, rowvar=False)
    c = s - s.mean(0) - s.mean(1)[:, None] + s.mean()
    low = np.trace(c) ** 2 / (3 * (c**2).sum())
    high = (12 * 3 * low - 2) / (3 * (11 - 3 * low))
    assert epsilons(x) == pytest.approx((low, high))
    spherical = [mauchly(scores(seed, [0.0] * 4, n=30).to_numpy()) for seed in range(200)]
    assert stats.kstest(spherical, "uniform").pvalue > 0.01
    assert mauchly(x) < 0.001 and not check_assumptions(x)[2].holds
    assert np.mean([check_assumptions(scores(s, [0.0] * 10).to_numpy())[2].holds for s in range(50)]) > 0.95


@pytest.mark.parametrize("road", ["tukey", "conover"])
def test_equal_methods_share_rank_one_in_95_of_100_worlds(road: str) -> None:
    shared = 0
    for seed in range(150):
        x = scores(seed, [0.0] * 4)
        found = rank_methods(x if road == "tukey" else np.exp(4 * x), True)
        shared += bool((found.table["rank"] == 1).all())
    assert 134 <= shared <= (149 if road == "tukey" else 150)


@pytest.mark.parametrize("k", [3, 6])
def test_a_floor_that_is_always_last_does_not_make_equal_methods_differ(k: int) -> None:
    wrong = 0
    for seed in range(100):
        x = scores(seed, [0.0] * k)
        x["m0"] -= 5 + 0.6 * np.random.default_rng(seed).normal(size=25)
        found = rank_methods(x, True)
        assert found.test == CONOVER and found.table.loc["m0", "rank"] == k
        wrong += found.table["worse_than"].drop("m0").sum() > 0
    assert wrong <= 10  # scikit-posthocs alone: 24 and 9 of 100


def test_power_grows_with_the_difference_and_is_what_the_floor_says() -> None:
    def seen(gap: float) -> float:
        return float(np.mean([rank_methods(scores(s, [0, gap]), True).table["rank"].max() > 1 for s in range(60)]))

    floor = rank_methods(scores(0, [0, 0]), True).floor
    assert seen(0.25 * floor) < 0.35 < seen(floor) < 0.75 < seen(2 * floor)


def test_correction_for_shared_training_rows_widens_by_nadeau_and_bengios_factor() -> None:
    x = scores(3, [0.0, 0.1, 0.5])
    found = rank_methods(x, True, test_over_train=0.25)
    # their corrected resampled t: (1/n + ratio) in place of 1/n
    assert found.floor_wide == pytest.approx(found.floor * np.sqrt((1 / 25 + 0.25) / (1 / 25)))
    near, far = found.pair("m1", "m0"), found.pair("m2", "m0")
    assert near["different"] and not near["survives"] and far["survives"]
    assert np.isnan(rank_methods(x, True).floor_wide) and not rank_methods(x, True).pairs["survives"].any()


def test_who_lacks_a_fold_is_printed_and_not_ranked() -> None:
    x = scores(4, [0.0, 0.5, 1.0])
    x.loc[3, "m2"], x.loc[[5, 6], :] = NAN, NAN
    found = rank_methods(x, True, why={"m2": "timeout in r0-f3"})
    assert found.left_out == {"m2": "22 of 23 folds: timeout in r0-f3"} and found.ranked == ["m1", "m0"]
    assert list(found.table.index) == ["m1", "m0", "m2"] and np.isnan(found.table.loc["m2", "rank"])
    assert found.table.loc["m2", "folds"] == 22 and np.isfinite(found.table.loc["m2", "mean"])
    assert found.n_folds == 23 and "2 of 25 folds" in found.notes[0]


def test_few_methods_and_few_folds() -> None:
    one = rank_methods(scores(0, [1.0]), True)
    assert one.test == UNTESTED and one.ranked == ["m0"] and one.table["rank"].tolist() == [1]
    single = rank_methods(scores(0, [0.0, 5.0], n=1), True)
    assert single.test == UNTESTED and single.table["rank"].tolist() == [1, 1] and "one fold" in single.notes[0]
    assert single.ranked == ["m1", "m0"]
    two = rank_methods(np.exp(4 * scores(0, [0.0, 0.2])), True)
    assert two.omnibus is not None and two.omnibus.name.startswith("Wilcoxon")
    nobody = rank_methods(pd.DataFrame({"a": [NAN, NAN]}), True)
    assert nobody.ranked == [] and nobody.left_out == {"a": "0 of 0 folds"} and nobody.table["folds"].tolist() == [0]
    with pytest.raises(DataError, match="name of its own"):
        rank_methods(pd.DataFrame([[1.0, 2.0]], columns=["a", "a"]), True)


def test_constant_differences_and_equal_scores() -> None:
    base = np.random.default_rng(0).normal(size=(10, 1))
    same = rank_methods(pd.DataFrame(np.repeat(base, 3, axis=1), columns=list("abc")), True)
    assert same.table["rank"].tolist() == [1, 1, 1] and set(same.table["groups"]) == {"a"}
    apart = rank_methods(pd.DataFrame(base + np.array([0.0, 1.0, 1.0]), columns=list("abc")), True)
    assert apart.table["rank"].to_dict() == {"b": 1, "c": 1, "a": 3}


@settings(max_examples=30)
@given(st.integers(0, 10_000), st.integers(2, 7), st.integers(2, 12), st.booleans(), st.sampled_from([0.01, 0.3, 2.0]))
def test_what_holds_for_every_ranking(seed: int, k: int, n: int, higher: bool, gap: float) -> None:
    rng = np.random.default_rng(seed)
    x = scores(seed, list(gap * rng.integers(0, 3, k)), n=n)
    found = rank_methods(x, higher)
    table, pairs = found.table, found.pairs
    assert len(pairs) == k * (k - 1) // 2 and pairs["p"].between(0, 1).all()
    assert (table["rank"] >= 1 + table["worse_than"]).all() and table["rank"].is_monotonic_increasing
    for row in pairs.itertuples():
        assert bool(set(table.loc[row.a, "groups"]) & set(table.loc[row.b, "groups"])) == (not row.different)
        assert table.loc[row.a, "rank"] <= table.loc[row.b, "rank"]
        assert row.low <= row.difference <= row.high
        assert table.loc[row.a, "rank"] < table.loc[row.b, "rank"] or not row.different
        assert row.different == (row.p < 0.05) and (row.low > 0 or row.high < 0 or not row.different)
    # neither the order of the columns, nor that of the folds, nor the sign convention changes what is said
    turned = rank_methods(-x.sample(frac=1, axis=1, random_state=seed).sample(frac=1, random_state=seed), not higher)
    assert turned.table["rank"].to_dict() == table["rank"].to_dict() and turned.test == found.test
    moved = rank_methods(3 * x + 7, higher)
    assert moved.table["rank"].to_dict() == table["rank"].to_dict()
    assert moved.floor == pytest.approx(3 * found.floor, nan_ok=True)


@settings(max_examples=50)
@given(st.integers(1, 8), st.integers(0, 2**28 - 1))
def test_letters_say_exactly_who_is_told_apart(k: int, bits: int) -> None:
    different = np.zeros((k, k), dtype=bool)
    for n, (i, j) in enumerate(combinations(range(k), 2)):
        different[i, j] = different[j, i] = bool(bits >> n & 1)
    letters = letter_groups(different)
    assert all(bool(set(letters[i]) & set(letters[j])) != different[i, j] for i, j in combinations(range(k), 2))
    assert all(letters) and letters[0].startswith("a")


def test_ranks_count_those_that_are_better() -> None:
    better = np.array([[0, 0, 1, 1], [0, 0, 0, 1], [0, 0, 0, 0], [0, 0, 0, 0]], dtype=bool)
    assert shared_ranks(better).tolist() == [1, 1, 2, 3]


def test_a_missing_library_is_said_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    x = scores(1, [0.0, 0.02, 0.1, 0.1]) ** 3
    monkeypatch.setitem(sys.modules, "scikit_posthocs", None)
    with pytest.raises(MolgraphError, match=r"molgraph-platform\[bench\]"):
        rank_methods(x, False)
    assert rank_methods(scores(0, [0.0, 0.1, 0.2]), True).test == TUKEY  # that road does not need it


def test_methods_of_the_same_scores_are_never_told_apart_nor_ranked_differently(rng):
    for folds in (2, 3, 5, 25):
        x = pd.DataFrame({f"m{i}": rng.normal(i / 2, 0.3, folds) for i in range(6)})
        for twin in ("z", "a", "b"):
            x[twin] = 0.9  # as a metric gives to whoever predicts one class alone
        found = rank_methods(x, True)
        table = found.table.loc[["z", "a", "b"]]
        assert table["rank"].nunique() == 1 and table["groups"].nunique() == 1
        pairs = found.pairs.set_index(["a", "b"])["p"]
        for other in (f"m{i}" for i in range(6)):
            each = {pairs[(t, other) if (t, other) in pairs.index else (other, t)] for t in ("z", "a", "b")}
            assert len(each) == 1

"""Labels that are limits, such as >8: read, learnt by a censored normal, scored apart, refused where they cannot be."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import norm

import molgraph
from molgraph.auxiliary.censored_gp import derivatives, laplace
from molgraph.base.errors import LabelError, UnsupportedError
from molgraph.data.read import read_table
from molgraph.nn.censored_normal import censored_normal_loss

INF = float("inf")


def test_the_loss_is_scipys_censored_normal_with_its_gradient() -> None:
    rng = np.random.default_rng(0)
    mean, log_sigma = (torch.tensor(rng.normal(size=60) * s, requires_grad=True) for s in (3, 0.5))
    low = torch.tensor(rng.normal(size=60) * 3)
    high, far = low + torch.tensor(rng.random(60) + 0.01), torch.full_like(low, INF)
    own = {"loc": mean.detach().numpy(), "scale": log_sigma.exp().detach().numpy()}
    a, b = low.numpy(), high.numpy()
    inside = np.where(a > own["loc"], norm.sf(a, **own) - norm.sf(b, **own), norm.cdf(b, **own) - norm.cdf(a, **own))
    cases = [(low, low, norm.logpdf(a, **own)), (low, far, norm.logsf(a, **own))]
    cases += [(-far, low, norm.logcdf(a, **own)), (low, high, np.log(inside))]
    for lower, upper, expected in cases:
        made = censored_normal_loss(mean, log_sigma, lower, upper)
        assert np.abs(made.detach().numpy() + expected).max() < 1e-6
        assert torch.autograd.gradcheck(partial(censored_normal_loss, low=lower, high=upper), (mean, log_sigma))
    wide = torch.tensor([-60.0, 60.0], requires_grad=True)
    censored_normal_loss(wide, torch.full((2,), -3.0), torch.zeros(2), torch.full((2,), INF)).sum().backward()
    assert torch.isfinite(wide.grad).all()


def test_laplace_is_the_exact_process_without_limits_and_the_mode_with_them() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(30, 3))
    kernel, noise = np.exp(-((x[:, None] - x) ** 2).sum(-1)), np.full(30, 0.1)
    y = rng.normal(size=30)
    alpha, own = laplace(kernel, 0.3, 2.0, noise, y, y)
    assert np.allclose(alpha, np.linalg.solve(2 * kernel + np.diag(noise), y - 0.3), atol=1e-9)
    assert np.allclose(own, noise)
    low, high = np.where(np.arange(30) % 3 == 1, -INF, y), np.where(np.arange(30) % 3 == 2, INF, y)
    alpha, _ = laplace(kernel, 0.3, 2.0, noise, low, high)
    slope, curve = derivatives(0.3 + 2 * kernel @ alpha, np.sqrt(noise), low, high)
    inner = curve > 1e-4  # where the least curvature does not stand in
    assert np.abs(alpha - slope)[inner].max() < 1e-6, "at the mode the prior's slope is the likelihood's"


def test_limits_are_read_scaled_logged_and_kept_with_their_rows() -> None:
    frame = {"smiles": ["C", "CC", "CCC", "CCCC"], "y": [">10 uM", "<= 100 nM", "~3 uM", "1 uM"]}
    table = read_table(frame, targets=["y"], qualifiers="learn", unit="nM", log=True)
    assert np.allclose(table.y[:, 0], [np.nan, np.nan, np.log10(3000), 3], equal_nan=True)
    assert table.limits[:2, 0].tolist() == [[4, INF], [-INF, 2]] and table.limited[:, 0].tolist() == [1, 1, 0, 0]
    assert table.take(np.array([1])).limits[0, 0].tolist() == [-INF, 2]
    assert any("2 labels are limits (1 above and 1 below a value)" in note for note in table.notes)
    beside = {"smiles": ["C", "CC"], "y": [5.0, 6.0], "y_relation": [">", "="]}
    assert read_table(beside, targets=["y"], qualifiers="learn").limits[0, 0].tolist() == [5, INF]
    with pytest.raises(LabelError, match="no logarithm"):
        read_table({"smiles": ["C", "CC"], "y": ["<0", "1"]}, targets=["y"], qualifiers="learn", log=True)


def censored(seed: int, n: int = 260) -> tuple[pd.DataFrame, list[str], np.ndarray]:
    """A table censored at the 60th percentile of solubility, and molecules beyond it with their true values."""
    table = read_table("dataset:esol")
    y, order = table.y[:, 0], np.random.default_rng(seed).permutation(len(table))
    cut = np.quantile(y, 0.6)
    cells = [f">{cut:.4f}" if y[i] > cut else f"{y[i]:.4f}" for i in order[:n]]
    beyond = [i for i in order[n:] if y[i] > cut][:150]
    return pd.DataFrame({"smiles": table.smiles[order[:n]], "y": cells}), list(table.smiles[beyond]), y[beyond]


def error(model: str, data: pd.DataFrame, new: list[str], y: np.ndarray, qualifiers: str, **how: object) -> float:
    """RMSE of the true values of new molecules after a training."""
    options = {"split": "random", "fractions": (0.9, 0.1, 0.0), "baseline": False, "threads": 1, **how}
    made = molgraph.train(data, targets=["y"], model=model, qualifiers=qualifiers, **options)
    return float(np.sqrt(np.mean((made.model.with_coverage(None).predict(new).value[:, 0] - y) ** 2)))


SMALL = {"xgboost": {"params": {"n_estimators": 40, "n_bits": 256, "learning_rate": 0.1}}, "gp": {}}
SMALL["dmpnn"] = {"epochs": 15, "params": {"d_hidden": 64}, "batch_size": 32}


@pytest.mark.data
@pytest.mark.slow
@pytest.mark.parametrize("model", SMALL)
def test_values_beyond_a_limit_are_nearer_than_with_limits_dropped_or_taken_as_values(model: str) -> None:
    for seed in (101,) if model == "dmpnn" else (101, 102, 103):  # a minute each
        case = censored(seed)
        learn, drop, strip = (error(model, *case, way, **SMALL[model]) for way in ("learn", "drop", "strip"))
        print(f"{model}, seed {seed}: {learn / drop:.2f} of dropped, {learn / strip:.2f} of taken as values")
        assert learn < 0.9 * drop and learn < strip


@pytest.mark.data
def test_a_training_counts_limits_scores_them_apart_and_its_file_reads_on(tmp_path: Path) -> None:
    data, _, _ = censored(5, 120)
    made = molgraph.train(
        data, targets=["y"], model="xgboost", qualifiers="learn", split="random", params={"n_bits": 64}
    )
    n = made.table.limited.sum()
    assert n == data["y"].str.startswith(">").sum() == sum(made.model.card.n_limits.values())
    in_test = int(made.test.limited.sum())
    assert made.score_rows.query("metric == 'limits_met' and method == 'xgboost'")["n"].tolist() == [in_test]
    assert made.score_rows.query("metric == 'rmse' and method == 'xgboost'")["n"].tolist() == [len(made.test) - in_test]
    assert "limits" in made.model.summary() and f"{n} labels are limits" in repr(made)
    assert "limits are left out" in " ".join(made.floor.card.notes)
    page = made.report(tmp_path / "page.html").read_text()
    assert "limits met" in page and "limits such as &gt;8" in page
    model = molgraph.load(made.save(tmp_path / "m.mgm"))
    scores = model.evaluate(data).set_index("metric")
    assert scores.loc["limits_met", "n"] == n and scores.loc["limits_met", "value"] > 0.8
    aft = made.model.method.fitted
    assert aft.targets[0].kind == "regression" and np.isfinite(model.predict(["CCO"]).value).all()


@pytest.mark.data
def test_what_cannot_learn_limits_says_so() -> None:
    data, _, _ = censored(6, 60)
    for model, objective in (("random_forest", None), ("gin", "mean-teacher"), ("linear", None)):
        how = {} if objective is None else {"objective": objective}
        with pytest.raises(UnsupportedError, match="measured values alone"):
            molgraph.train(data, targets=["y"], model=model, qualifiers="learn", **how)
    table = read_table(data, targets=["y"], qualifiers="learn")
    with pytest.raises(LabelError, match="limits such as >8"):
        molgraph.train(table, model="xgboost")
    every = data.assign(y=">5")
    with pytest.raises(LabelError, match="60 limits such as >8 and 0 measured values"):
        molgraph.train(every, targets=["y"], model="gin", qualifiers="learn")

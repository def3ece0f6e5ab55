"""TD-VAE: jumps of a noisy autoregressive series beside Kalman's filter, and a torsion of butane beside persistence."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch

from molgraph.auxiliary.study.td_vae import TDVAE, TDVAEStudy, series_of, train_td_vae
from molgraph.chem.trajectory import simulate
from molgraph.data.graph_values import Geometry
from molgraph.data.sources.graph_files import plain_table
from molgraph.train.runtime import torch_settings
from tests.systems.effect import Effect

A, NOISE, REACH, PAST = 0.9, 0.5, 8, 20


def windows(n: int, seed: int) -> np.ndarray:
    """``z' = a z + n``, of variance 1, seen as ``x = z + e``: float [n, past + reach]."""
    rng, length = np.random.default_rng(seed), PAST + REACH
    z = rng.standard_normal((n, length))
    for t in range(1, length):
        z[:, t] = A * z[:, t - 1] + np.sqrt(1 - A * A) * z[:, t]
    return z + NOISE * rng.standard_normal(z.shape)


def kalman(x: np.ndarray) -> tuple[np.ndarray, float]:
    """Mean and variance of the state behind the last value."""
    mean, variance = np.zeros(len(x)), 1.0
    for t in range(x.shape[1]):
        if t:
            mean, variance = A * mean, A * A * variance + 1 - A * A
        gain = variance / (variance + NOISE**2)
        mean, variance = mean + gain * (x[:, t] - mean), (1 - gain) * variance
    return mean, variance


@pytest.mark.system("td-vae", rung="exact", twins=("off", "shuffled"))
def test_jumps_of_a_noisy_autoregressive_series_are_kalmans(off: str) -> None:
    """The mean of ``x_(t + k)`` has a slope of ``a^k`` on the filter's mean within 10%, its variance is within 20%."""
    series, test = windows(4000, 0), windows(2000, 1)
    if off == "shuffled":
        series = np.random.default_rng(2).permuted(series, axis=1)
    with torch_settings(1, 0):
        model = TDVAE(1, 1, 32, REACH, weight=0.0 if off == "off" else 1.0)
        train_td_vae(series[..., None], model, steps=1500)
        mean, variance = kalman(test[:, :PAST])
        past = torch.from_numpy(test[:, :PAST, None].astype(np.float32))
        for k in (1, 4, 8):
            draws = model.predict(past, k, 200)[..., 0].numpy()
            slope = np.polyfit(mean, draws.mean(axis=0), 1)[0]
            known = A ** (2 * k) * variance + 1 - A ** (2 * k) + NOISE**2
            ratios = slope / A**k, draws.var(axis=0).mean() / known
            print(f"{k} ahead: slope {ratios[0]:.3f} of a^k, variance {ratios[1]:.3f} of Kalman's")
            assert ratios == (pytest.approx(1, abs=0.1), pytest.approx(1, abs=0.2))
            errors = [
                np.mean((guess - test[:, PAST + k - 1]) ** 2) for guess in (draws.mean(axis=0), test[:, PAST - 1])
            ]
            assert errors[0] < errors[1], "better than persistence"


@cache
def butane() -> np.ndarray:
    """The torsion angle's cosine and sine in 4,000 frames of 20 fs."""
    frames = simulate("CCCC", steps=160_000, every=40)
    shapes = [Geometry(frames.numbers, at) for at in frames.positions]
    series, _ = series_of(plain_table({"geometry": shapes}, (), np.zeros((len(shapes), 0))))
    return series


@pytest.mark.system("td-vae", rung="works")
def test_a_torsion_of_butane_is_predicted_better_than_by_persistence(off: str, effect: Effect) -> None:
    study = TDVAEStudy(steps=500, weight=0.0 if off else 1.0)
    last = [study.errors(butane(), seed, 60)[0].iloc[-1] for seed in (0, 1, 2)]
    beside = {name: [float(row[name]) for row in last] for name in ("error", "persistence", "mean")}
    shares = [float(row["error"] / row["persistence"]) for row in last]
    effect("error 8 frames ahead as a share of persistence's", shares, at_most=0.9, beside=beside)

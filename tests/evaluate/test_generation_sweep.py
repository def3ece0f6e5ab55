"""Frontiers of generators whose trade of quality for diversity is known."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr

import molgraph
from molgraph.base.errors import EmptyError, UnknownNameError, UnsupportedError
from molgraph.evaluate.generation.sweep import Sweep, frontier_report, telling_quality
from molgraph.generate.ngram import NgramGenerator
from tests.tiny import series

T = tuple(np.linspace(0.5, 1.5, 7).round(3))


def binomial(name: str, quality: np.ndarray, diversity: np.ndarray, seed: int, n: int = 1000) -> Sweep:
    """A sweep whose two measures are counts of n draws with these probabilities, and its half-samples."""
    rng = np.random.default_rng(seed)
    values = {}
    for key, p in (("valid", quality), ("unique", diversity)):
        drawn = rng.random((len(p), n)) < p[:, None]
        halves = [drawn[:, rng.permutation(n)[: n // 2]].mean(axis=1) for _ in range(200)]
        values[key] = np.stack([drawn.mean(axis=1), *halves], axis=1)
    return Sweep(name, T, n, values)


def curve(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Validity falls and uniqueness rises with the temperature."""
    return 1 / (1 + np.exp(6 * (t - 1.2))), 0.4 + 0.5 * t / 1.5


def test_the_front_leaves_out_what_another_temperature_beats_in_both() -> None:
    values = {"valid": np.array([[0.5], [0.9], [0.8], [0.2]]), "frechet": np.array([[3.0], [2.0], [1.0], [4.0]])}
    sweep = Sweep("a", (0.1, 0.2, 0.3, 0.4), 9, values)
    assert sweep.front("valid", "frechet") == [0.2, 0.3], "a low distance is good"


def test_the_quality_is_one_that_tells_something() -> None:
    all_valid, some = np.ones((2, 1)), np.array([[0.5], [0.4]])
    values = {"int_div": some, "valid": all_valid, "filters": some, "frechet": some}
    whole = Sweep("a", T[:2], 9, values)
    without = Sweep("b", T[:2], 9, {name: values[name] for name in ("int_div", "valid", "filters")})
    mixed = Sweep("c", T[:2], 9, {"int_div": some, "valid": some, "filters": some})
    assert [telling_quality(each) for each in (whole, without, mixed)] == ["frechet", "filters", "valid"]
    assert telling_quality(without, mixed) == "valid" and frontier_report(whole, without).quality == "filters"


def test_frontiers_without_anything_in_common_say_so() -> None:
    a = Sweep("a", T[:2], 9, {"valid": np.ones((2, 1)), "unique": np.array([[0.1], [0.2]])})
    b = Sweep("b", T[:2], 9, {"valid": np.ones((2, 1)), "unique": np.array([[0.8], [0.9]])})
    assert "no diversity in common" in frontier_report(a, b, diversity="unique").sentence
    with pytest.raises(UnknownNameError, match="'int_div'"):
        frontier_report(a, b)
    with pytest.raises(EmptyError, match="temperature"):
        frontier_report(a, Sweep("c", T[:1], 9, {"valid": np.full((1, 1), np.nan), "unique": np.ones((1, 1))}),
                        diversity="unique")  # fmt: skip


def test_a_generator_is_swept_and_left_as_it_was(tmp_path: Path) -> None:
    made = NgramGenerator(order=10, temperature=0.9).fit(series(200))
    found = molgraph.temperature_sweep(made, [2.0, 0.3, 1.0], n=120, measures=["unique", "int_div", "valid"])
    assert found.temperatures == (0.3, 1.0, 2.0) and made.temperature == 0.9
    assert spearmanr(found.temperatures, found.values["int_div"][:, 0]).statistic == 1
    for name in ("a.png", "a.svg", "a.csv"):
        assert found.save(tmp_path / name).stat().st_size > 100
    with pytest.raises(UnknownNameError, match="'validity'"):
        molgraph.temperature_sweep(made, [1.0], n=5, measures=["validity"])
    frame = {"smiles": ["C" * k for k in range(1, 9)], "y": list(range(8))}
    model = molgraph.train(frame, targets=["y"], model="mean", split="random").model
    with pytest.raises(UnsupportedError, match="mean"):
        molgraph.temperature_sweep(model)

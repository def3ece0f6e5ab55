"""Sparsity normalisation: identity without gaps, outputs that do not grow with the columns observed, and files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.data.audit import audit
from molgraph.data.observed import observed_correlation
from molgraph.data.read import read_table
from molgraph.train import outputs
from molgraph.train.outputs import DescriptorScale
from tests.systems.effect import Effect
from tests.tiny import series, small

NAMES = tuple(f"assay {j}" for j in range(40))


def zeros(x: np.ndarray, known: np.ndarray, mean: float) -> np.ndarray:
    """In the place of the normalisation."""
    return np.where(known, x, 0.0)


@pytest.mark.system("sparsity-normalization", rung="exact")
def test_a_row_has_the_sum_of_a_row_of_mean_length(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """``K (x * m) / |m|_1``; without a gap the values as they are, and RDKit's columns are no part of it."""
    rng = np.random.default_rng(0)
    x = rng.gamma(2.0, size=(30, 40))
    whole = DescriptorScale.fit(x, NAMES, gaps="scale")
    rms = np.sqrt((x**2).mean(axis=0))
    np.testing.assert_allclose(whole.apply(x, NAMES), x / rms, rtol=1e-6)
    if off:
        monkeypatch.setattr(outputs, "sparsity_normalised", zeros)
    known = rng.random((30, 40)) < 0.3
    known[0] = False
    scale = DescriptorScale.fit(np.where(known, x, np.nan), NAMES, gaps="scale")
    found = scale.apply(np.where(known, x, np.nan), NAMES)
    k = known.sum() / 30
    expected = np.where(known, x, 0) / scale.scale * (k / np.maximum(known.sum(axis=1), 1))[:, None]
    assert scale.observed == pytest.approx(k) and not scale.mean.any()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    names = (*NAMES[:39], "rdkit:MolWt")
    mixed = DescriptorScale.fit(np.where(known, x, np.nan), names, gaps="scale")
    assert mixed.mean[:39].max() == 0 < mixed.mean[39]


@pytest.mark.system("sparsity-normalization", rung="works")
def test_answers_of_a_random_network_do_not_follow_the_share_observed(
    off: str, effect: Effect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """2,000 rows of positive values, of which 10% to 90% are observed, in networks of positive weights.

    Weights of both signs, where what a column adds another takes off, follow it less, and are printed beside.
    """
    found = dict[str, list[float]]()
    for name in ("normalised", "zeros in the gaps"):
        with monkeypatch.context() as patch:
            if name != "normalised" or off:
                patch.setattr(outputs, "sparsity_normalised", zeros)
            for seed in range(5):
                rng = np.random.default_rng(seed)
                known = rng.random((2000, 40)) < rng.uniform(0.1, 0.9, (2000, 1))
                x = np.where(known, rng.gamma(4.0, size=known.shape), np.nan)
                scaled = DescriptorScale.fit(x, NAMES, gaps="scale").apply(x, NAMES)
                w, v = rng.normal(size=(40, 64)), rng.normal(size=64)
                for signs, a, b in (("", abs(w), abs(v)), (", both signs", w, v)):
                    r = observed_correlation(x, np.maximum(scaled @ a, 0) @ b)
                    found.setdefault(name + signs, []).append(abs(r))
    own = found.pop("normalised")
    assert np.mean(found["zeros in the gaps"]) > 0.5
    words = "correlation of a random network's answers with the share of columns observed"
    effect(words, own, at_most=0.1, beside=found)


def test_the_gaps_are_kept_from_the_table_to_the_file(tmp_path: Path) -> None:
    """Rows with gaps learn and are predicted, by a model that was read from its file; without the word they are not."""
    rng = np.random.default_rng(0)
    few = series(48)
    frame = pd.DataFrame(np.where(rng.random((48, 3)) < 0.5, np.nan, rng.normal(3, 1, (48, 3))), columns=[*"abc"])
    frame = frame.assign(smiles=[str(text) for text in few.smiles], y=few.y[:, 0])  # type: ignore[index]
    frame.to_csv(tmp_path / "profile.csv", index=False)
    how: dict[str, Any] = {"targets": ["y"], "features": ["a", "b", "c"]}
    assert read_table(frame, **how).ok.mean() < 0.5
    table = read_table(frame, **how, gaps="scale")
    assert table.ok.all() and table.take(np.arange(4)).gaps == "scale"
    assert "share of feature columns" in small(threads=1).fit(table).notes[-1]
    result = molgraph.train(
        str(tmp_path / "profile.csv"), **how, gaps="scale", model="dmpnn", params={"d_hidden": 8}, epochs=1,
        threads=1, baseline=False, split="random",
    )  # fmt: skip
    again = molgraph.load(result.model.save(tmp_path / "m.mgm"))
    assert 0 < again.method.ready().descriptors.observed <= 3
    found = again.predict(str(tmp_path / "profile.csv"))
    assert np.isfinite(found.value).all() and found.value.tobytes() == result.model.predict(frame).value.tobytes()
    assert "share of feature columns" in " ".join(audit(frame, **how).notes)

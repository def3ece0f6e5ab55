"""Weighted conformal intervals: the quantile of equation 7, coverage of a library unlike the training set."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import EmptyError
from molgraph.chem.properties import properties
from molgraph.data.sources import builtin
from molgraph.data.table import make_table
from molgraph.train.make_method import make_method
from molgraph.trust.conformal import Conformal
from molgraph.trust.weighted_conformal import WeightedConformal
from tests.trust.test_conformal import predicted


def learned(scores: np.ndarray, weights: np.ndarray, coverage: float) -> WeightedConformal:
    method = WeightedConformal("mean", coverage=coverage)
    method.learned = {"scores": scores[:, None], "weights": weights}
    return method


def test_equal_weights_give_conformals_own_width() -> None:
    scores = np.random.default_rng(0).exponential(size=57)
    for coverage in (0.5, 0.8, 0.9):
        plain = Conformal("mean", coverage=coverage)
        width = plain.learn(*predicted(scores))["width"][0]
        assert learned(scores, np.ones(57), coverage).half_widths(np.ones(3)).tolist() == [[width]] * 3


def test_the_width_is_the_weighted_quantile() -> None:
    rng = np.random.default_rng(1)
    scores, weights = rng.exponential(size=40), rng.uniform(0.1, 3, size=40)
    for own in (0.1, 1.0, 30.0):
        share = np.append(weights, own) / (weights.sum() + own)
        order = np.argsort(scores)
        reached = np.flatnonzero(np.cumsum(share[:-1][order]) >= 0.8)
        expected = scores[order][reached[0]] if len(reached) else np.nan
        found = learned(scores, weights, 0.8).half_widths(np.array([own]))[0, 0]
        assert found == expected or (np.isnan(found) and np.isnan(expected))


def test_intervals_hold_for_a_library_of_larger_molecules(tmp_path: Path) -> None:
    """The noise grows with the size: conformal holds too little of the library, weights mend it; blind ones do not."""
    table, covered = builtin.nci(), []
    smiles = table.smiles[:4000][table.ok[:4000]].astype(str)
    size = properties(smiles)[:, 0]
    smiles, size = smiles[np.isfinite(size)], size[np.isfinite(size)]
    library, blind = tmp_path / "library.smi", tmp_path / "blind.smi"
    ways = ("conformal(mean, split=random)", *(f"weighted_conformal(mean, toward={each})" for each in (library, blind)))
    for seed in (11, 12, 13):
        rng = np.random.default_rng(seed)
        y = rng.normal(size=len(size)) * (size / size.mean()) ** 2
        there = rng.random(len(size)) < 1 / (1 + np.exp(-(size - np.quantile(size, 0.8)) / 5))
        library.write_text("\n".join(smiles[there][::2]))
        blind.write_text("\n".join(smiles[~there]))
        train = make_table(smiles[~there], targets=(Target("y"),), y=y[~there])
        test, measured = make_table(smiles[there][1::2]), y[there][1::2]
        ends = [make_method(how).fit(train).predict(test).interval for how in ways]
        covered.append([np.mean((low[:, 0] <= measured) & (measured <= high[:, 0])) for low, high in ends])
    plain, weighted, untold = np.mean(covered, axis=0)
    assert plain < 0.75 and untold < 0.75 and 0.86 <= weighted <= 0.95, covered


def test_a_library_that_cannot_be_read_is_refused_and_no_row_is_lost(tmp_path: Path) -> None:
    table = builtin.chembl2321810()
    empty = tmp_path / "empty.smi"
    empty.write_text("oops\nCCO\n")
    with pytest.raises(EmptyError, match="molecules"):
        make_method(f"weighted_conformal(linear, toward={empty}, share=0.4)").fit(table)
    how = {"model": "weighted_conformal(linear, toward=builtin:chembl2321810, share=0.4)"}
    model = molgraph.train("builtin:chembl2321810", split="random", baseline=False, **how).model
    found = model.predict(["", "C(C", str(table.smiles[0])])
    assert np.isnan(found.interval[0][:2]).all() and len(found) == 3
    assert found.status[2] == "ok"

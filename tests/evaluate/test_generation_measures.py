"""Distances against scipy, intervals against their meaning, and control rows that expose bad metrics."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy import linalg, stats

import molgraph
from molgraph.base.errors import BadValueError, EmptyError, UnknownNameError
from molgraph.chem.add_carbon import add_carbon
from molgraph.chem.identity import molecule_keys
from molgraph.data.sources import builtin
from molgraph.evaluate.generation import distances
from molgraph.evaluate.generation.judge import Draws, half_samples, judge_samples
from molgraph.evaluate.generation.sample import describe

ALL = builtin.chembl2321810().smiles.tolist()
TRAIN, REFERENCE, HELD = ALL[:60], ALL[60:120], ALL[120:160]


@pytest.fixture(scope="module")
def report() -> molgraph.evaluate.generation.generation_report.GenerationReport:
    """Held-out molecules and two copies of one, beside the controls."""
    samples = {"held out": Draws([*HELD, "C1C", None]), "one molecule": Draws(["CCO"] * 42)}
    return judge_samples(samples, reference=REFERENCE, train=TRAIN, halves=40, embedding="descriptors")


def test_distances_are_scipys() -> None:
    rng = np.random.default_rng(0)
    for _ in range(5):
        a, b = rng.gamma(2, 1, rng.integers(50, 400)), rng.normal(3, rng.uniform(0.3, 2), rng.integers(50, 400))
        assert distances.wasserstein(a, b) == pytest.approx(stats.wasserstein_distance(a, b), abs=1e-12)
        grid = np.linspace(min(a.min(), b.min()), max(a.max(), b.max()), distances.POINTS)
        p, q = (stats.gaussian_kde(x)(grid) + distances.TINY for x in (a, b))
        assert distances.kl_continuous(a, b) == pytest.approx(stats.entropy(p, q), rel=1e-4)
        x, y = rng.normal(size=(200, 6)) @ rng.normal(size=(6, 6)), rng.normal(1, 2, (150, 6))
        (m, c), (n, d) = distances.gaussian_fit(x), distances.gaussian_fit(y)
        known = ((m - n) ** 2).sum() + np.trace(c + d - 2 * linalg.sqrtm(c @ d).real)
        assert distances.frechet((m, c), (n, d)) == pytest.approx(known, rel=1e-8)
    ones = np.ones(9)
    assert distances.kl_continuous(ones, ones) == 0 and distances.kl_continuous(ones, np.arange(9.0)) == np.inf
    assert distances.frechet((m, c), (m, c)) == pytest.approx(0, abs=1e-9)


def test_half_samples_spread_as_whole_samples_do() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 3))
    masks = half_samples(400, 400, 0)
    means = np.array([x[mask, 0].mean() for mask in masks[1:]])
    assert means.std() == pytest.approx(x[:, 0].std() / 20, rel=0.12)
    fit = distances.gaussian_fit(rng.normal(0.5, 1, (5000, 3)))
    halves = [distances.frechet(fit, distances.gaussian_fit(x[mask])) for mask in masks[1:]]
    fresh = [distances.frechet(fit, distances.gaussian_fit(rng.normal(size=(400, 3)))) for _ in range(400)]
    assert np.std(halves) == pytest.approx(np.std(fresh), rel=0.2)


def test_every_draw_counts_and_the_numbers_are_right(report) -> None:
    assert report.n == 42 and all(row.n in (30, 42) for row in report.rows)
    assert report.value("held out", "valid") == pytest.approx(40 / 42)
    assert report.value("one molecule", "unique") == pytest.approx(1 / 42)
    assert report.value("one molecule", "int_div") == pytest.approx(0, abs=1e-6)
    assert report.value("one molecule", "novel") == 1
    frame = report.to_frame()
    inside = frame.dropna(subset=["low"])
    assert ((inside["low"] <= inside["value"]) & (inside["value"] <= inside["high"])).all()
    assert len(frame) == 5 * 17 and set(frame["kind"]) == {"sample", "control"}


def test_controls_expose_metrics_that_copies_do_well(report) -> None:
    assert report.value("training sample", "novel") == 0
    for name in ("valid", "unique", "novel"):
        assert report.value("AddCarbon", name) == 1
    held = report.matched(report.rows[0])
    assert {"valid", "unique", "novel"} <= {*held["AddCarbon"]}
    assert "novel" not in held["training sample"] and "Fréchet (descriptors)" in held["training sample"]
    worst = report.value("one molecule", "frechet")
    assert worst > 2 * report.value("AddCarbon", "frechet") > 2 * report.value("train half against half", "frechet")


def test_add_carbon_makes_distinct_new_molecules() -> None:
    known = [each.canonical for each in describe(TRAIN).readable]
    keys = molecule_keys(known, stereo=False).values
    made = add_carbon(known, {*keys}, 40, np.random.default_rng(3))
    again = [each.canonical for each in describe(made).readable]
    assert len(made) == 40 == len({*made}) and made == again
    assert not {*molecule_keys(made, stereo=False).values} & {*keys}


def test_the_same_seed_gives_the_same_report_and_the_order_of_the_reference_does_not_count() -> None:
    asked = {"train": TRAIN[:20], "halves": 3, "embedding": "fingerprint"}
    one = judge_samples({"a": Draws(HELD)}, reference=REFERENCE, **asked).to_frame()
    two = judge_samples({"a": Draws(HELD)}, reference=REFERENCE[::-1], **asked).to_frame()
    assert np.allclose(one["value"], two["value"], atol=1e-9) and (one["metric"] == two["metric"]).all()


def test_validity_before_the_check_stands_beside_that_after() -> None:
    drawn = Draws(["CCO", "CCN"], unchecked=["CCO", "C1C"])
    found = judge_samples({"a": drawn}, halves=0)
    assert found.value("a", "valid") == 1 and found.value("a", "valid_unchecked") == 0.5


def test_files_and_pages(report, tmp_path: Path) -> None:
    report.save(tmp_path / "a.html"), report.save(tmp_path / "a.md"), report.save(tmp_path / "a.csv")
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "AddCarbon" in page and "<svg" in page and "http" not in page.replace("http://www.w3.org", "")
    assert (tmp_path / "a.md").read_text("utf-8").count("|") > 100
    assert page.count("<h3>") == 4, "each sample has a heading, over its molecules too"
    alone = judge_samples({"held out": Draws(HELD)}, train=TRAIN, halves=0).save(tmp_path / "b.html").read_text("utf-8")
    assert "<h3>" not in alone and "training sample</dt>" in alone, "one sample needs none over its two lists"
    with pytest.raises(UnknownNameError, match=r"a\.txt"):
        report.save(tmp_path / "a.txt")


def test_words_for_what_cannot_be_judged() -> None:
    with pytest.raises(EmptyError):
        molgraph.judge_generation([])
    with pytest.raises(EmptyError, match="train"):
        molgraph.judge_generation(["CCO"], train=["C1C"])
    with pytest.raises(BadValueError, match="2 draws"):
        molgraph.judge_generation(["CCO"], n=2)
    with pytest.raises(UnknownNameError, match="'descriptor'"):
        molgraph.judge_generation(["CCO"], embedding="descriptor")
    nothing = molgraph.judge_generation(["C1C", "not"], reference=["CCO", "CCN"])
    assert nothing.value("sample", "valid") == 0 and np.isnan(nothing.value("sample", "frechet"))

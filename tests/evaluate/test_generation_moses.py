"""Metrics of generators agree with MOSES's public functions on stored values of the same samples."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from molgraph.base.optional import missing
from pipelines.generation.compare_moses import our_values
from pipelines.generation.samples import OF_DATA, SAMPLES, samples_of

STORED = json.loads((Path(__file__).parent / "moses_metrics.json").read_text("utf-8"))["samples"]


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=[pytest.mark.data, pytest.mark.slow] * (n in OF_DATA)) for n in SAMPLES]
)
def test_values_are_those_of_moses(name: str) -> None:
    parts, stored = samples_of(name), dict(STORED[name])
    del stored["chemnet"]
    found = our_values(*parts, embedding="descriptors")
    for key, value in stored.items():
        assert found[key] == pytest.approx(value, abs=2e-7), key


@pytest.mark.skipif(bool(missing(["fcd"])), reason="needs the package fcd")
def test_the_distance_in_chemnet_is_fcd() -> None:
    parts = samples_of("series")
    assert our_values(*parts, embedding="chemnet")["frechet"] == pytest.approx(STORED["series"]["chemnet"], rel=1e-4)

"""Trials of every domain score: it knows its training molecules from others, depends on the seed alone, is stored."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import get, names
from molgraph.base.table import Target
from molgraph.chem.fingerprints import morgan
from molgraph.data.sources import builtin
from molgraph.trust.with_domain import WithDomain
from tests.tiny import series

TEXTS = {"seen": builtin.chembl2321810().smiles[:60], "other": builtin.nci().smiles[:60]}


def read(kind: str, rows: str) -> Any:
    """What a score reads of the seen molecules or of others; logits are drawn, those of others without a class."""
    if kind == "fingerprints":
        return morgan([str(text) for text in TEXTS[rows]]).x
    if kind == "smiles":
        return TEXTS[rows]
    rng, sure = np.random.default_rng(len(rows)), 6.0 * (rows == "seen")
    several = rng.normal(size=(60, 5)) + sure * np.eye(5)[rng.integers(0, 5, 60)]
    return [several, rng.normal(size=(60, 1)) + sure * rng.integers(0, 2, (60, 1))]


def few(x: Any, n: int) -> Any:
    """The first n."""
    return [each[:n] for each in x] if isinstance(x, list) else x[:n]


def fitted(name: str, seed: int = 0) -> Any:
    """The score at its trial's settings, fitted on the seen molecules."""
    made = get("domain", name)(**get("domain", name).small)
    made.seed = seed
    return made.fit(read(made.reads, "seen"))


@pytest.mark.parametrize("name", names("domain"))
class TestEveryDomain:
    def test_one_finite_score_a_molecule_whatever_stands_beside_it(self, name: str) -> None:
        made = fitted(name)
        other = read(made.reads, "other")
        score = made.score(other)
        assert score.shape == (60,) and score.dtype == np.float64 and np.isfinite(score).all()
        np.testing.assert_allclose(made.score(few(other, 7)), score[:7], rtol=1e-5, atol=1e-7)
        assert made.score(few(other, 0)).shape == (0,)

    def test_other_molecules_are_farther_than_those_that_were_learned(self, name: str) -> None:
        made = fitted(name)
        seen, other = (made.score(read(made.reads, rows)) for rows in ("seen", "other"))
        assert np.median(other) > np.median(seen)

    def test_the_same_seed_gives_the_same_scores(self, name: str) -> None:
        one, two = fitted(name), fitted(name)
        other = read(one.reads, "other")
        np.testing.assert_array_equal(one.score(other), two.score(other))

    def test_it_comes_back_from_its_arrays_and_refuses_others(self, name: str) -> None:
        made, again = fitted(name), get("domain", name)(**get("domain", name).small)
        arrays, other = made.state(), read(made.reads, "other")
        assert {*arrays} == {*made.learns}
        np.testing.assert_array_equal(again.restore(arrays).score(other), made.score(other))
        if arrays:
            with pytest.raises((ValueError, RuntimeError)):
                again.restore({key: np.zeros((3, 3, 3), value.dtype) for key, value in arrays.items()})


def test_scores_of_logits_fit_once_more_for_their_percentiles_and_need_classes() -> None:
    table = series(60)
    y = (table.y > np.median(table.y)).astype(float)
    classes = replace(table, targets=(Target("active", "binary"),), y=y)
    made = WithDomain("random_forest(n_estimators=10)", by="max_logit+nearest").fit(classes)
    found = made.predict(classes)
    assert {*found.extra["domain"]} <= {"inside", "edge", "outside"}
    p = np.clip(found.value[:, 0], 1e-12, 1 - 1e-12)
    np.testing.assert_allclose(found.extra["domain_max_logit"], -np.abs(np.log(p / (1 - p))), atol=1e-9)
    both = WithDomain("random_forest(n_estimators=10)", by="nearest").fit(classes).predict(classes)
    np.testing.assert_array_equal(found.extra["domain_nearest_percentile"], both.extra["domain_nearest_percentile"])
    again = WithDomain.from_state(made.state()).predict(classes)
    np.testing.assert_array_equal(again.extra["domain_max_logit"], found.extra["domain_max_logit"])
    with pytest.raises(UnsupportedError, match="classes"):
        WithDomain("random_forest", by="max_logit").fit(table)

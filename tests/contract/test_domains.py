"""Trials of every domain score: it knows its training molecules from others, depends on the seed alone, is stored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from molgraph.base.registry import get, names
from molgraph.chem.fingerprints import morgan
from molgraph.data.sources import builtin

SEEN = morgan([str(text) for text in builtin.chembl2321810().smiles[:60]]).x
OTHER = morgan([str(text) for text in builtin.nci().smiles[:60]]).x


def fitted(name: str, seed: int = 0) -> Any:
    """The score at its trial's settings, fitted on the seen molecules."""
    made = get("domain", name)(**get("domain", name).small)
    made.seed = seed
    return made.fit(SEEN)


@pytest.mark.parametrize("name", names("domain"))
class TestEveryDomain:
    def test_one_finite_score_a_molecule_whatever_stands_beside_it(self, name: str) -> None:
        made = fitted(name)
        score = made.score(OTHER)
        assert score.shape == (60,) and score.dtype == np.float64 and np.isfinite(score).all()
        np.testing.assert_allclose(made.score(OTHER[:7]), score[:7], rtol=1e-5, atol=1e-7)
        assert made.score(OTHER[:0]).shape == (0,)

    def test_other_molecules_are_farther_than_those_that_were_learned(self, name: str) -> None:
        made = fitted(name)
        assert np.median(made.score(OTHER)) > np.median(made.score(SEEN))

    def test_the_same_seed_gives_the_same_scores(self, name: str) -> None:
        np.testing.assert_array_equal(fitted(name).score(OTHER), fitted(name).score(OTHER))

    def test_it_comes_back_from_its_arrays_and_refuses_others(self, name: str) -> None:
        made, again = fitted(name), get("domain", name)(**get("domain", name).small)
        arrays = made.state()
        assert {*arrays} == {*made.learns}
        np.testing.assert_array_equal(again.restore(arrays).score(OTHER), made.score(OTHER))
        with pytest.raises((ValueError, RuntimeError)):
            again.restore({key: np.zeros((3, 3, 3), value.dtype) for key, value in arrays.items()})

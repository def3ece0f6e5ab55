"""Trials that every registered oracle and every registered search meets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from molgraph.base.registry import entry, names
from molgraph.data.table import make_table
from molgraph.generate.oracles.oracle import Oracle, make_oracle, parameters_of
from molgraph.generate.searches.search import Search, make_search
from molgraph.train.model import Model
from tests.tiny import series, small

MOLECULES = [*series(12).smiles]
BAD = ["not a molecule", "C(C", ""]


@pytest.fixture(scope="module")
def arguments() -> dict[str, Any]:
    """A value for each parameter that an oracle cannot do without, by its name."""
    table = series(32)
    return {
        "lead": MOLECULES[0],
        "table": make_table(MOLECULES[:5]),
        "file": Model(small().fit(table), targets=table.targets),
    }


def make(name: str, arguments: dict[str, Any]) -> Oracle:
    cls = entry("oracle", name).value
    needed = {key: arguments[key] for key, must in parameters_of(cls).items() if must and key in arguments}
    return make_oracle(name, **{**needed, **cls.small})


@pytest.mark.parametrize("name", names("oracle"))
class TestEveryOracle:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("oracle", name)
        assert issubclass(found.value, Oracle) and found.summary and found.value.__doc__
        assert found.value.name == name and found.value.better in (1, -1) and found.value.scale > 0

    def test_a_score_for_each_molecule_in_order(self, name: str, arguments: dict[str, Any]) -> None:
        oracle = make(name, arguments)
        value, reason = oracle.score([*MOLECULES, *BAD])
        assert value.shape == reason.shape == (len(MOLECULES) + len(BAD),) and value.dtype == np.float64
        n = len(MOLECULES)
        assert np.isfinite(value[:n]).all() and (reason[:n] == "").all()
        assert np.isnan(value[n:]).all() and (reason[n:] != "").all()
        assert oracle.score([]).value.shape == (0,)

    def test_a_score_depends_on_its_molecule_alone(self, name: str, arguments: dict[str, Any]) -> None:
        oracle, state = make(name, arguments), np.random.get_state()[1].tolist()  # noqa: NPY002 - to see that it is left
        whole = oracle.score(MOLECULES).value
        order = np.argsort([hash(text) % 7 for text in range(len(MOLECULES))])
        assert np.allclose(oracle.score([MOLECULES[i] for i in order]).value, whole[order], atol=1e-5)
        assert np.allclose([oracle.score([text]).value[0] for text in MOLECULES[:3]], whole[:3], atol=1e-5)
        assert np.array_equal(oracle.score(MOLECULES).value, whole)
        assert state == np.random.get_state()[1].tolist()  # noqa: NPY002


def begun(name: str, starts: np.ndarray | None = None) -> Search:
    """A search that was told forty points, whose score is their first value."""
    search = make_search(name, **entry("search", name).value.small)
    search.begin(4, starts, seed=1)
    z = np.random.default_rng(0).standard_normal((40, 4))
    search.tell(z, np.where(np.arange(40) == 7, np.nan, z[:, 0]))
    return search


@pytest.mark.parametrize("name", names("search"))
class TestEverySearch:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("search", name)
        assert issubclass(found.value, Search) and found.summary and found.value.__doc__ and found.value.name == name

    def test_points_of_the_space_with_a_promise_each(self, name: str) -> None:
        search = begun(name)
        assert len(search.z) == 39, "a point without a score is passed over"
        for step, n in enumerate((1, 5, 12)):
            z, promise = search.ask(n, step)
            assert z.shape[1] == 4 and len(z) >= n and promise.shape == (len(z),)
            assert np.isfinite(z).all() and np.isfinite(promise).all()

    def test_the_same_seed_and_scores_ask_for_the_same_points(self, name: str) -> None:
        np.random.seed(3)  # noqa: NPY002 - the global state on purpose
        first = begun(name).ask(6, 2)
        np.random.seed(4)  # noqa: NPY002
        again = begun(name).ask(6, 2)
        assert np.array_equal(first.z, again.z) and np.array_equal(first.promise, again.promise)
        assert not np.array_equal(first.z, begun(name).ask(6, 3).z)

    def test_begins_at_the_starts_and_with_scores_that_say_nothing(self, name: str) -> None:
        search = make_search(name, **entry("search", name).value.small)
        starts = np.array([[3.0, 0, 0, 0], [0, 3.0, 0, 0]])
        search.begin(4, starts, seed=1)
        assert np.array_equal(search.ask(6, 0).z[:2], starts)
        search.tell(np.zeros((60, 4)), np.zeros(60))
        assert len(search.ask(6, 1).z) >= 6

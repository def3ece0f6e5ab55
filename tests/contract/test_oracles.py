"""Trials that every registered oracle meets."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from molgraph.base.registry import entry, names
from molgraph.data.read import read_table
from molgraph.data.table import make_table
from molgraph.generate.oracles.oracle import Oracle, make_oracle, parameters_of
from molgraph.train.model import Model
from tests.tiny import series, small

MOLECULES = [*series(12).smiles]
BAD = ["not a molecule", "C(C", ""]


CHAINS = ["C" * i for i in range(1, 15)]


@pytest.fixture(scope="module")
def arguments() -> dict[str, Any]:
    """A value for each parameter that an oracle cannot do without, by its name."""
    table = series(32)
    return {
        "lead": MOLECULES[0],
        "table": make_table(MOLECULES[:5]),
        "series": read_table({"from": CHAINS, "to": [f"{text}O" for text in CHAINS]}, smiles=("from", "to")),
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

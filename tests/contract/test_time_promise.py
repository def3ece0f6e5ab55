"""Two members of each base class of methods, and MapLight with its own features, answer hard molecules in time."""

from __future__ import annotations

import resource
import time

import numpy as np
import pytest

from molgraph.chem import bounded
from molgraph.data.table import make_table
from tests.contract.test_methods import SHARED, labelled, quick
from tests.hard_molecules import worst


@pytest.mark.slow
@pytest.mark.parametrize("name", [*SHARED, "maplight"])
def test_no_row_takes_more_than_two_seconds(name: str) -> None:
    method = quick(name).fit(labelled("regression", 16))
    table = make_table(["CCO", *worst().values(), "CCN"])
    before = cpu_seconds()
    found = method.predict(table)
    assert cpu_seconds() - before < 2 * len(worst())
    assert np.isfinite(found.value[found.ok]).all() and all(found.reason[~found.ok])
    assert found.ok[[0, -1]].all() and found.ok[2], "a star is described, whatever is left out"
    assert "takes longer than" in found.reason[3]


def cpu_seconds() -> float:
    """Of this process and of its workers, which are ended for that."""
    bounded._end()
    return time.process_time() + sum(resource.getrusage(resource.RUSAGE_CHILDREN)[:2])

"""A model file that any released version wrote loads now, and answers as it did then."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import molgraph.auxiliary
import molgraph.trust  # noqa: F401 - the imports register the methods
from molgraph.train.modelfile import load_model, verify
from tests.golden.make import answers

FOLDER = Path(__file__).parent
EXPECTED = {name: rows for path in FOLDER.glob("*.json") for name, rows in json.loads(path.read_text()).items()}


def test_every_golden_file_has_its_answers():
    assert {p.name for p in FOLDER.glob("*.mgm")} == set(EXPECTED) and EXPECTED
    assert all(p.stat().st_size < 50_000 for p in FOLDER.glob("*.mgm"))


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_golden_file(name):
    model = load_model(FOLDER / name)
    expected = np.array(EXPECTED[name], dtype=float)
    found = np.array(answers(model), dtype=float)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    assert verify(FOLDER / name).n_molecules >= 20
    assert "Model(" in repr(model) and model._repr_html_()

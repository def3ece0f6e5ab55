"""A model file that any released version wrote loads now, and answers as it did then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

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


@pytest.mark.slow
def test_the_loader_alone_knows_every_method():
    paths = [str(FOLDER / name) for name in sorted(EXPECTED)]
    code = f"from molgraph.train.modelfile import load_model\nfor path in {paths!r}: load_model(path)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr

"""Model files and graph stores that any released version wrote load now, and answer as they did then."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from molgraph.base.run_config import RunConfig
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.graph_io import MANIFEST, load_store
from molgraph.data.standardise import standardise
from molgraph.train.golden_predictions import SAMPLES_TOLERANCE
from molgraph.train.modelfile import load_model, verify
from tests.golden.make import answers, questions

FOLDER = Path(__file__).parent
EXPECTED = {name: rows for path in FOLDER.glob("*.json") for name, rows in json.loads(path.read_text()).items()}


def same(found: list[Any], expected: list[Any]) -> None:
    """Numbers are close; of texts, which a rounding may turn, all but a few are equal."""
    assert len(found) == len(expected) > 0
    if isinstance(expected[0], str):
        assert sum(a != b for a, b in zip(found, expected, strict=True)) <= SAMPLES_TOLERANCE * len(expected)
        return
    for row, then in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.array(row, float), np.array(then, float), rtol=1e-5, atol=1e-5)


def test_every_golden_file_has_its_answers():
    assert {p.name for p in FOLDER.glob("*.mgm")} == set(EXPECTED) and EXPECTED
    assert all(p.stat().st_size < 30_000 for p in FOLDER.rglob("*") if p.suffix != ".py" and p.is_file())
    assert any(isinstance(row[0], float) for row in EXPECTED["0.1.0-charges.mgm"])


@pytest.mark.parametrize("name", sorted(EXPECTED))
def test_golden_file(name):
    model = load_model(FOLDER / name)
    same(answers(model), EXPECTED[name])
    assert verify(FOLDER / name).n_molecules >= 20
    assert "Model(" in repr(model) and model._repr_html_()


@pytest.mark.parametrize(
    ("folder", "model", "index"),
    [("0.1.0-store-without-index", "0.1.0-mpnn.mgm", False), ("0.1.0-store-graphs", "0.1.0-graphs.mgm", True)],
)
def test_golden_store(folder, model, index):
    """A store of an earlier version, with a model on it, gives what the model answered then on graphs of its own."""
    assert ("index" in json.loads((FOLDER / folder / MANIFEST).read_text())["body"]) == index
    store, loaded = load_store(FOLDER / folder), load_model(FOLDER / model)
    table = standardise(questions(loaded), loaded.standardiser)
    found = loaded.method.predict_graphs(table, [CachedGraphs(store, np.arange(len(store)))])
    same(found.value.tolist(), EXPECTED[model])
    assert store.spec == loaded.method.graph_inputs()[0].spec
    assert list(found.ok) == list(store.status == "ok") and 3 < found.ok.sum() < len(store)


def test_a_card_of_before_has_a_recipe_that_trains_again():
    """The splitter was called ``recipe`` in it."""
    stored = load_model(FOLDER / "0.1.0-pair.mgm").card.recipe
    assert "recipe" in stored["split"] and RunConfig.from_dict(stored).split.splitter == "random"


@pytest.mark.slow
def test_the_loader_alone_knows_every_method():
    paths = [str(FOLDER / name) for name in sorted(EXPECTED)]
    code = f"from molgraph.train.modelfile import load_model\nfor path in {paths!r}: load_model(path)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr

"""Trials of every explainer: values of the molecules' own parts in any order, and other models refused."""

from __future__ import annotations

import numpy as np
import pytest

import molgraph
from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import get, names
from molgraph.train.model import Model
from tests.tiny import series

#: a model that an explainer refuses, where it reads the network ``gin``
REFUSED = {"occlusion": "ngram", "infill": "ngram", "gradients": "random_forest", "coupling": "random_forest"}
SMILES = ["CC(=O)Nc1ccccc1Cl", "C(C", "C", "Clc1ccccc1NC(C)=O"]


@pytest.fixture(scope="module")
def models() -> dict[str, Model]:
    """A quickly trained model that each explainer reads, and those that one refuses."""
    options = {"epochs": 1, "baseline": False, "params": {"d_hidden": 8}}
    wanted = {get("explainer", name).model for name in names("explainer")}
    made = {
        name: molgraph.train(series(60), model=name, **options).model for name in {*wanted, "gin"} - {"random_forest"}
    }
    forest = molgraph.train(series(60), model="random_forest", params={"n_estimators": 5}, baseline=False).model
    return {**made, "random_forest": forest, "ngram": molgraph.train_generator(series(60), model="ngram")}


@pytest.mark.parametrize("name", names("explainer"))
class TestEveryExplainer:
    def test_values_are_of_parts_of_the_molecules(self, name: str, models: dict[str, Model]) -> None:
        found = molgraph.explain(models[get("explainer", name).model], SMILES, by=name)
        assert {"molecule", "atom", "value"} <= {*found.values} and np.isfinite(found.values["value"]).all()
        assert {*found.values["molecule"]} <= {0, 2, 3} and found.reasons[1] and not found.reasons[0]
        assert len(found.svgs) == len(found.captions) and all(svg.startswith("<svg") for svg in found.svgs)
        assert found.level in ("atom", "bond", "fragment") and name in repr(found)

    def test_the_order_of_atoms_does_not_matter(self, name: str, models: dict[str, Model]) -> None:
        model = models[get("explainer", name).model]
        one, two = (molgraph.explain(model, SMILES[i], by=name).values["value"].sort_values() for i in (0, 3))
        np.testing.assert_allclose(one, two, atol=1e-5)

    def test_a_model_that_it_cannot_read_is_refused(self, name: str, models: dict[str, Model]) -> None:
        with pytest.raises(UnsupportedError, match=get("explainer", name).reads):
            molgraph.explain(models[REFUSED.get(name, "gin")], "CCO", by=name)

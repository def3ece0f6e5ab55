"""Trials of the head atomwise under the encoders that give states of atoms: two molecules far apart have their sum."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from molgraph.base.contracts import Target
from molgraph.base.errors import DamagedModelError, UnsupportedError
from molgraph.base.finite import NO_VALUE
from molgraph.base.registry import entry
from molgraph.base.table import EntityKind
from molgraph.data.featurize_geometry import METHANE, WATER
from molgraph.data.graph_values import Geometry
from molgraph.data.table import Entities, Table, make_table
from molgraph.train.method import GraphMethod
from molgraph.train.outputs import Outputs
from molgraph.train.references import References
from tests.contract.test_encoder_positions import READERS
from tests.contract.test_encoders import build_small, entities
from tests.tiny import series

ENERGY = (Target("energy"),)
APART = 1000.0  # angstrom
FREE = {1: -0.5, 6: -38.0, 7: -55.0, 8: -75.0}


def table_of(kind: EntityKind, values: list[Any], y: np.ndarray | None = None) -> Table:
    base = make_table(["C"] * len(values), targets=() if y is None else ENERGY, y=y)
    column = np.empty(len(values), object)
    column[:] = values
    return replace(base, entities=(Entities("molecule", kind, column),))


def geometries(name: str) -> list[Geometry]:
    """Positions in whole multiples of 1 / 1024 angstrom, which single precision has 1,000 angstrom away too."""
    values = entities(name)[1]
    return [replace(each, positions=np.round(each.positions * 1024) / 1024) for each in values]


def far(one: Geometry) -> Geometry:
    """Two copies of it."""
    at = np.concatenate([one.positions, one.positions + np.float32(APART)])
    return Geometry(np.concatenate([one.numbers, one.numbers]), at)


def energies(values: list[Geometry]) -> np.ndarray:
    """Energies of atoms, and a pair potential."""
    found = []
    for each in values:
        d = np.linalg.norm(each.positions[:, None] - each.positions, axis=2)[np.triu_indices(len(each.numbers), 1)]
        found.append([sum(FREE[int(z)] for z in each.numbers) - np.exp(-d).sum()])
    return np.array(found)


def method(encoder: str, head: str = "atomwise") -> GraphMethod:
    params = {**GraphMethod.small, "params": dict(entry("encoder", encoder).value.small), "threads": 1}
    return GraphMethod(encoder, **{**params, "head": head})


@pytest.mark.parametrize("head", ["atomwise", "perceptron"])
@pytest.mark.parametrize("name", READERS)
def test_two_copies_far_apart_have_twice_the_energy(name: str, head: str) -> None:
    values = geometries(name)
    table = table_of("geometry", values, energies(values))
    if head == "atomwise" and not build_small(name).d_rows:
        with pytest.raises(UnsupportedError, match="states of atoms"):
            method(name, head).fit(table)
        return
    fitted = method(name, head).fit(table)
    one = fitted.predict(table_of("geometry", values)).value
    two = fitted.predict(table_of("geometry", [far(each) for each in values])).value
    error = np.abs(two / (2 * one) - 1).max()
    if head == "perceptron" or entry("encoder", name).line[1] == "all pairs":  # which hears atoms however far
        assert error > 1e-5
    else:
        assert error < 1e-5
    assert np.array_equal(GraphMethod.from_state(fitted.state()).predict(table_of("geometry", values)).value, one)


@pytest.mark.parametrize("name", ["dmpnn", "gin"])
def test_two_molecules_of_a_row_have_the_sum_of_both(name: str) -> None:
    smiles = list(series(24).smiles)
    fitted = method(name).fit(make_table(smiles, targets=ENERGY, y=np.array([[1e3 + len(text)] for text in smiles])))
    one = fitted.predict(make_table(smiles)).value
    two = fitted.predict(make_table([f"{text}.{text}" for text in smiles])).value
    np.testing.assert_allclose(two, 2 * one, rtol=1e-5)


def test_an_element_without_a_reference_is_a_row_with_a_reason() -> None:
    train = make_table(["C", "CC", "CCO", "CO"], targets=ENERGY, y=np.array([[-40.0], [-79.0], [-154.0], [-115.0]]))
    odd = make_table(["CCl", "C"], targets=ENERGY, y=np.array([[-500.0], [-40.0]]))
    fitted = method("gin").fit(train, odd)
    found = fitted.predict(odd)
    assert found.status.tolist() == [NO_VALUE, "ok"] and "Cl" in found.reason[0] and np.isnan(found.value[0, 0])
    assert any("no reference value of Cl" in note for note in fitted.notes)
    references = fitted.ready().outputs.references
    assert references is not None and references.known.sum() == 3, "hydrogens are counted, though they are no atoms"


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"encoder": "deepdta"}, "reference"),
        ({"descriptors": "rdkit"}, "descriptors"),
        ({"encoder": "gin", "objective": "mean-teacher"}, "states of graphs"),
        ({"encoder": "schnet", "params": {"frames": "se3"}}, "frames"),
    ],
)
def test_what_the_head_does_not_read_is_refused(params: dict[str, Any], words: str) -> None:
    kinds: dict[str, EntityKind] = {"deepdta": "sequence", "schnet": "geometry"}
    kind = kinds.get(params.get("encoder", ""), "molecule")
    values = {"sequence": ["ACDEF" * i for i in range(1, 9)], "geometry": [WATER, METHANE] * 4}
    table = table_of(kind, values.get(kind, [*series(8).smiles]), np.arange(8.0)[:, None])
    with pytest.raises(UnsupportedError, match=words):
        GraphMethod(**{**GraphMethod.small, "head": "atomwise", "threads": 1, **params}).fit(table)


def test_targets_of_atoms_are_refused() -> None:
    table = replace(table_of("molecule", ["C", "CC"]), targets=(Target("charge", level="atom"),))
    with pytest.raises(UnsupportedError, match="one of each atom"):
        method("gin").fit(table)


def test_references_are_weighted_least_squares_and_each_target_has_its_elements() -> None:
    rng = np.random.default_rng(0)
    counts, weights = rng.integers(0, 5, (40, 3)).astype(float), rng.uniform(0.1, 2, 40)
    y = counts @ [[1.0, 2.0], [-3.0, 0.5], [8.0, 1.0]] + rng.normal(size=(40, 2))
    y[counts[:, 2] > 0, 1] = np.nan  # no label of the second target has an atom of the third element
    made = References.fit(counts, y, weights)
    known = LinearRegression(fit_intercept=False).fit(counts, y[:, 0], weights).coef_
    np.testing.assert_allclose(made.value[:, 0], known, rtol=1e-9)
    assert made.known.tolist() == [True, True, False] and made.value[2, 1] == 0
    outputs = Outputs.fit((Target("a"), Target("b")), y, None, weights, counts)
    residual = y[:, 0] - counts @ known
    assert outputs.scale[0] == pytest.approx(np.sqrt(np.average(residual**2, weights=weights))) and not outputs.mean[0]
    back = outputs.values(outputs.labels(y, counts), counts)
    np.testing.assert_allclose(back[:, 0], y[:, 0], rtol=1e-5)


def test_references_of_a_file_that_are_none_are_refused() -> None:
    table = make_table(["C", "CC", "CCO", "CO"], targets=ENERGY, y=np.array([[-40.0], [-79.0], [-154.0], [-115.0]]))
    state = method("gin").fit(table).state()
    for wrong in ({"reference.value": np.zeros((3, 1))}, {"reference.known": np.zeros(3, np.uint8)}):
        with pytest.raises(DamagedModelError, match="references of elements"):
            GraphMethod.from_state(replace(state, arrays={**state.arrays, **wrong}))

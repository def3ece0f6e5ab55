"""A model of atoms in space on tables of SMILES: conformers made alike in training and prediction, none in silence."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import molgraph as mg
from molgraph.base.errors import ConflictError, MissingColumnError, UnsupportedError, UnusedSettingError
from molgraph.chem.conformer import make_conformers
from molgraph.data.graph_values import Geometry
from molgraph.data.table import Target, make_table
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import verify
from molgraph.trust.conformers import MadeConformers

PARAMS = {"params": {"d_hidden": 16, "depth": 1}, "epochs": 2, "head_width": 32, "batch_size": 8, "threads": 1}
SMILES = ["CCO", "CCN", "CCC", "c1ccccc1", "CC(C)O", "CCCCCC", "OCC(O)CO", "CCOC(=O)C"] * 2
ROWS = ["CCO", "C(", "CC(C)CC(=O)NCCO", "*CC", "CC"]


def fitted(n: int, **more: object) -> MadeConformers:
    table = make_table([*SMILES, "*CC"], targets=(Target("y"),), y=[float(len(text)) for text in SMILES] + [1.0])
    return MadeConformers("schnet", conformers=n, params=PARAMS, **more).fit(table)  # type: ignore[arg-type]


@pytest.fixture(scope="module")
def several() -> MadeConformers:
    return fitted(3)


def test_the_prediction_is_the_mean_over_conformers_and_their_deviation(several: MadeConformers) -> None:
    found, (inside,) = several.predict(make_table(ROWS)), several.members
    assert isinstance(inside, GraphMethod)
    (made,) = make_conformers(ROWS[2:3], n=3)
    alone = mg.read_table({"g": [Geometry(made.numbers, at) for at in made.positions]}, geometry="g")
    values = inside.predict(alone).value
    np.testing.assert_allclose([found.value[2], found.spread[2]], [values.mean(0), values.std(0)], rtol=1e-4, atol=1e-7)
    assert found.spread[2] > 0 and found.inputs.tolist() == ROWS


def test_a_molecule_without_conformer_is_a_marked_row_and_nothing_else(several: MadeConformers) -> None:
    found = several.predict(make_table(ROWS))
    assert found.status.tolist() == ["ok", "unreadable", "ok", "unreadable", "ok"]
    assert np.isnan(found.value[[1, 3]]).all() and "no parameters" in found.reason[3]
    assert any("left out of the training part: 1 x no conformer" in note for note in several.notes)
    assert several.notes[0].startswith("geometry made here: 3 conformers a molecule (ETKDGv3, seed 0")


def test_a_stored_model_makes_the_same_conformers(several: MadeConformers, tmp_path: Path) -> None:
    seeded = fitted(1, conformer_seed=5, relax="uff")
    path = Model(seeded, targets=(Target("y"),)).save(tmp_path / "m.mgm")
    again = mg.load(path)
    assert again.summary()["geometry"] == "made here: 1 conformer a molecule (ETKDGv3, seed 5, relaxed by UFF)"
    assert again.predict(ROWS).value.tobytes() == seeded.predict(make_table(ROWS)).value.tobytes()
    assert again.predict(ROWS).spread is None
    verify(path)


def test_train_makes_them_for_schnet_alone_and_says_so(tmp_path: Path) -> None:
    frame = {"smiles": SMILES * 3, "y": [float(len(text)) for text in SMILES] * 3}
    how = {"targets": "y", "split": "random", "epochs": 1, "baseline": False, "params": PARAMS["params"], "threads": 1}
    model = mg.train(frame, model="schnet", conformers=2, relax="none", ensemble=2, **how).model
    assert model.kind == "ensemble of 2 schnet on 2 conformers"
    assert model.summary()["geometry"] == "made here: 2 conformers a molecule (ETKDGv3, seed 0, not relaxed)"
    wrapped = mg.train(
        frame, model="conformal(schnet, coverage=0.5, split=random)", conformers=1, **how | {"params": {}}
    ).model
    found = wrapped.predict(["CCO"])
    assert wrapped.kind == "conformal of schnet on 1 conformer" and (found.interval[0] < found.interval[1]).all()
    refused = [
        (UnsupportedError, "dmpnn reads no atoms", {"model": "dmpnn", "conformers": 1}),
        (UnsupportedError, "random_forest reads no atoms", {"model": "random_forest", "conformers": 1}),
        (ConflictError, "conformers by itself", {"model": "conformers(schnet)", "conformers": 1}),
        (ConflictError, "positions are read", {"model": "schnet", "conformers": 1, "geometry": "smiles"}),
        (UnusedSettingError, "none are made", {"model": "schnet", "relax": "uff"}),
    ]
    for kind, noun, options in refused:
        with pytest.raises(kind, match=noun):
            mg.train(frame, targets="y", **options)
    with pytest.raises(MissingColumnError, match="no atoms in space") as caught:
        mg.train(frame, targets="y", model="schnet")
    assert "--conformers 1" in str(caught.value.hint)


def test_charges_of_atoms_and_pairs_are_refused() -> None:
    pairs = {"a": ["CC"] * 4, "b": ["CO"] * 4, "y": [1.0, 2, 3, 4]}
    with pytest.raises(UnsupportedError, match="one column of molecules"):
        mg.train(pairs, smiles=("a", "b"), targets="y", model="schnet", conformers=1)
    atoms = {"smiles": ["CO"] * 4, "y": ["[1, 2]"] * 4}
    with pytest.raises(UnsupportedError, match="hydrogens"):
        mg.train(atoms, targets="y:atom", model="schnet", conformers=1)

"""Distances as a pretraining and beside labels; conformers of what was learned, a row for every row."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch.nn import functional as F

import molgraph
from molgraph.base.errors import BadValueError, EmptyError, UnsupportedError
from molgraph.chem.atom_positions import embedded_positions
from molgraph.cli.train import more_commands
from molgraph.data.batch import collate
from molgraph.data.graph_values import Geometry
from molgraph.data.position_labels import with_positions
from molgraph.data.table import Entities, Table, Target, make_table
from molgraph.nn.atom_pairs import MOST_ATOMS
from molgraph.train.inputs import input_graphs
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.objectives.distogram import HEAD, pair_losses
from tests.cli.test_cli_entities import call
from tests.tiny import same_bits, weights_of

SMILES = ["CCO", "C[C@H](N)C(=O)O", "c1ccccc1O", "CCC", "F/C=C/Cl", "CC#N", "O", "CC(C)CO"]
SMALL = {"params": {"d_hidden": 8}, "threads": 1, "fractions": (0.8, 0.2, 0.0)}


def labelled() -> Table:
    return make_table([*SMILES, "bad"] * 2, targets=(Target("y"),), y=np.arange(18.0))


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("distogram") / "encoder.mgm"
    molgraph.pretrain(SMILES * 3, model="gin", objective="distogram", epochs=2, **SMALL).save(path)
    return path


def test_the_loss_is_the_cross_entropy_of_all_pairs_of_known_distance(encoder: Path) -> None:
    fitted = molgraph.load(encoder).method.ready()
    table = make_table([*SMILES, "[H][H]"])
    (graphs,) = input_graphs(table, fitted.inputs)
    graphs, _ = with_positions(table, table.entity(), graphs)
    batch, head = collate(graphs.store, graphs.graph_of_row), fitted.network.parts[HEAD]
    (h,) = (rows.h for rows in fitted.network.encoder(batch, rows=True).rows)
    total, count = pair_losses(head, h, batch)
    at, offsets = embedded_positions([str(text) for text in table.smiles]), batch["atom"].offsets.tolist()
    expected, n = 0.0, 0
    for first, x, text in zip(offsets, at, table.smiles, strict=False):
        far = Chem.GetDistanceMatrix(Chem.MolFromSmiles(str(text)))
        for i, j in zip(*np.triu_indices(len(x), 1), strict=True):
            z = head.ends(h[first + i]) + head.ends(h[first + j]) + head.both(h[first + i] * h[first + j])
            logits = head.out((z + head.apart.weight[int(far[i, j])]).relu())
            label = int(np.clip((np.linalg.norm(x[i] - x[j]) - 1) // (10 / 64), 0, 63))
            expected, n = expected + F.cross_entropy(logits, torch.tensor(label)).item(), n + 1
    assert count == n and abs(total.item() / expected - 1) < 1e-5


def test_an_encoder_starts_another_model_and_is_what_it_was(encoder: Path) -> None:
    found = molgraph.embed(molgraph.load(encoder), ["CCO", "bad"])
    assert found.value.shape == (2, 48) and np.isfinite(found.value[0]).all()
    options = {"epochs": 1, "baseline": False, "split": "random", "fractions": (0.8, 0.2, 0.0), "threads": 1}
    assert molgraph.train(labelled(), model="gin", init=str(encoder), **options).model.predict(["CCO"]).ok.all()


def test_beside_labels_it_changes_training_and_with_weight_0_nothing() -> None:
    def fit(callback: str | None) -> GraphMethod:
        how = {"epochs": 2, "batch_size": 8, "threads": 1, "callback": callback, "head_width": 8}
        return GraphMethod("dmpnn", {"d_hidden": 8}, **how).fit(labelled())

    plain, none, some = (fit(each) for each in (None, "distogram(weight=0)", "distogram(weight=1)"))
    ours = {k: v for k, v in weights_of(none).items() if f"parts.{HEAD}" not in k}
    assert same_bits(weights_of(plain), ours)
    assert not same_bits(weights_of(plain), {k: v for k, v in weights_of(some).items() if k in ours})
    assert some.curves is not None and (some.curves["train_distogram"] > 0).all()
    calls = []
    some.ready().network.encoder.register_forward_hook(lambda *_: calls.append(1))
    assert not some.ready().network.encoder._forward_pre_hooks and not calls


def test_positions_come_from_a_column_of_atoms_in_space_where_there_is_one() -> None:
    heavy = [embedded_positions([text])[0] for text in SMILES]
    numbers = [[a.GetAtomicNum() for a in Chem.MolFromSmiles(text).GetAtoms()] for text in SMILES]
    shapes = np.empty(8, dtype=object)
    shapes[:] = [Geometry(np.array(z), 2 * np.eye(3)[:1] + x) for z, x in zip(numbers, heavy, strict=True)]
    shapes[3] = Geometry(np.array([6, 8, 8]), heavy[3])  # of another molecule
    table = make_table(SMILES)
    table = replace(table, entities=(*table.entities, Entities("geometry", "geometry", shapes)))
    method = GraphMethod("gin", {"d_hidden": 8}, objective="distogram", epochs=1, threads=1).fit(table)
    inputs = method.graph_inputs()
    assert any("other atoms" in note for note in method.notes) and [each.kind for each in inputs] == ["molecule"]
    (graphs,) = input_graphs(table, inputs)
    made, _ = with_positions(table, table.entity(), graphs)
    at = collate(made.store, np.array([0]))["atom"].arrays["position"].numpy()
    np.testing.assert_allclose(at, heavy[0] + 2 * np.eye(3)[:1], atol=1e-5)
    other = table.take([3])
    with pytest.raises(EmptyError, match="positions"):
        with_positions(other, other.entity(), input_graphs(other, inputs)[0])


def test_conformers_have_a_row_for_each_row_and_the_stereochemistry_of_the_smiles(
    encoder: Path, tmp_path: Path
) -> None:
    texts = ["CCO", "bad", "C" * (MOST_ATOMS + 1), "O", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "[Na+].[Cl-]"]
    found = molgraph.conformers(encoder, texts, restarts=3)
    assert found.status.tolist() == ["ok", "unreadable", "too large", *["ok"] * 3, "no conformer"]
    assert "no bonds" in found.reason[-1] and found.reason[2] and found.n_placed == 4
    assert [len(each) for each in found.positions] == [3, 0, 0, 1, 6, 6, 0] and np.isnan(found.potential[1])
    again = molgraph.conformers(encoder, texts[4:6], restarts=3)
    np.testing.assert_array_equal(again.positions[0], found.positions[4])
    for path in (tmp_path / "a.sdf",):
        found.save(path)
        mols = [*Chem.SDMolSupplier(str(path), sanitize=False, removeHs=False)]
        assert len(mols) == 7 and [mol.GetNumAtoms() for mol in mols] == [9, 0, 0, 3, 13, 13, 0]
        assert mols[1].GetProp("reason") == found.reason[1] and mols[0].GetConformer().Is3D()
    code, said = call(tmp_path, "conformers", str(encoder), "CCO", "bad", "-o", "b.sdf")
    assert (
        code == 0
        and "1 conformer of 2 rows" in said
        and "1 without one" in said
        and len(Chem.SDMolSupplier(str(tmp_path / "b.sdf"))) == 2
    )


def test_what_a_model_can_do_next_is_printed(encoder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    more_commands(molgraph.load(encoder), Path("e.mgm"), "new.csv")
    assert "molgraph conformers e.mgm new.csv" in capsys.readouterr().err
    energies = Model(GraphMethod("schnet", objective="energy-forces"), targets=[Target("E")])
    more_commands(energies, Path("e.mgm"), "new.xyz")
    assert "molgraph.forces" in capsys.readouterr().err


def test_what_has_no_distances_is_refused() -> None:
    options = {"epochs": 1, "baseline": False, "split": "random", **SMALL}
    model = molgraph.train(labelled(), model="gin", **options).model
    with pytest.raises(UnsupportedError, match="distances"):
        molgraph.conformers(model, ["CCO"])
    with pytest.raises(BadValueError, match="bins"):
        molgraph.pretrain(SMILES, objective="distogram", params={"objective.first": 5.0, "objective.last": 4.0})
    with pytest.raises(BadValueError, match="reaction"):
        molgraph.pretrain(
            ["[CH4:1]>>[CH3:1]O", "[CH4:1]>>[CH3:1]N"], objective="distogram", model="gin", fractions=(1, 0, 0)
        )

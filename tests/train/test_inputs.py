"""Tables of several entity columns, of graphs and of geometries: each column read by an encoder, none in silence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import (
    BadValueError,
    ModelFileError,
    MolgraphError,
    UnknownNameError,
    UnsupportedError,
    UnusedSettingError,
)
from molgraph.base.registry import names
from molgraph.base.table import Entities, Table
from molgraph.data.graph_values import Geometry, Graph
from molgraph.data.replicates import find_replicates
from molgraph.data.splits.structures import find_leaks
from molgraph.train.golden_predictions import compare_vectors, make_vectors, vector_table
from molgraph.train.inputs import choose_columns
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model

PROTEINS = ("MKTAYIAKQRQISFVKSHFSRQ", "GIVEQCCTSICSLYQLENYCN", "ACDEFGHIKLMNPQRSTVWY")
DRUGS = ("CCO", "c1ccccc1", "CC(=O)O", "CCN", "CCCl", "C1CC1")
SMALL = {"epochs": 2, "head_width": 8, "batch_size": 8}
WIDTHS = {"dmpnn.d_hidden": 8, "deepdta.n_filters": 4, "deepdta.d_embed": 8}


def table_of(columns: dict[str, tuple[str, list]], y: np.ndarray) -> Table:
    entities = []
    for name, (kind, values) in columns.items():
        array = np.empty(len(values), dtype=object)
        array[:] = values
        entities.append(Entities(name, kind, array))  # type: ignore[arg-type]
    n = len(y)
    ids = np.array([str(i) for i in range(n)], dtype=object)
    empty, ok = np.full(n, "", dtype=object), np.full(n, "ok", dtype=object)
    return Table(ids, tuple(entities), ok, empty, (Target("y"),), y.reshape(n, 1))


def pairs(n: int = 18) -> Table:
    """Drugs with proteins; one row has a bad drug, one a bad protein."""
    drugs, proteins = [DRUGS[i % 6] for i in range(n)], [PROTEINS[i % 3] for i in range(n)]
    drugs[4], proteins[7] = "C1CC", "MKJ"
    y = np.array([len(d) + 0.1 * len(p) for d, p in zip(drugs, proteins, strict=True)])
    return table_of({"drug": ("molecule", drugs), "target": ("sequence", proteins)}, y)


@pytest.mark.parametrize("encoder", ["deepdta", "dmpnn+deepdta"])
@pytest.mark.parametrize("joiner", ["concat", "bilinear"])
def test_pairs_train_predict_and_are_kept(encoder: str, joiner: str, tmp_path: Path) -> None:
    params = WIDTHS if "+" in encoder else {"n_filters": 4, "d_embed": 8}
    method = GraphMethod(encoder, params=params, joiner=joiner, **SMALL)
    table = pairs()
    method.fit(table, table)
    found = method.predict(table)
    assert list(np.flatnonzero(~found.ok)) == [4, 7]
    assert found.reason[4].startswith("drug: SMILES Parse Error") and found.reason[7].startswith("target: 'J' is no")
    again = GraphMethod.from_state(method.state())
    assert again.predict(table).value.tobytes() == found.value.tobytes()
    alone = np.concatenate([method.predict(table.take(np.array([i]))).value for i in range(len(table))])
    np.testing.assert_allclose(alone, found.value, rtol=0, atol=1e-5)
    renamed = replace(table, entities=tuple(replace(e, name=f"my_{e.name}") for e in table.entities))
    assert method.predict(renamed).value.tobytes() == found.value.tobytes()
    model = Model(method, targets=table.targets)
    model.save(tmp_path / "m.mgm")
    assert molgraph.load(tmp_path / "m.mgm").predict_table(table).value.tobytes() == found.value.tobytes()


def test_cross_attention_reads_atoms_of_both() -> None:
    y = np.arange(12.0)
    table = table_of({"a": ("molecule", [*DRUGS, *DRUGS]), "b": ("molecule", [*DRUGS[::-1], *DRUGS])}, y)
    method = GraphMethod("dmpnn", params={"d_hidden": 8}, joiner="cross_attention", **SMALL).fit(table)
    found = method.predict(table)
    assert found.ok.all()
    alone = np.concatenate([method.predict(table.take(np.array([i]))).value for i in range(len(table))])
    np.testing.assert_allclose(alone, found.value, rtol=0, atol=1e-5)
    with pytest.raises(UnsupportedError, match="deepdta"):
        GraphMethod("dmpnn+deepdta", joiner="cross_attention", **SMALL).fit(pairs())


def test_each_distinct_entity_is_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    table = pairs()
    method = GraphMethod("dmpnn+deepdta", params=WIDTHS, **SMALL).fit(table)
    seen = []
    for encoder in method.ready().network.encoders:
        encoder.register_forward_hook(lambda module, given, out: seen.append(out.graphs.shape[0]))
    method.predict(table)
    assert seen == [6, 3]


@pytest.mark.parametrize(
    ("encoder", "inputs", "error", "words"),
    [
        ("dmpnn", None, UnsupportedError, "'target'"),
        ("schnet", None, UnsupportedError, "'drug'"),
        ("dmpnn", ["drugg"], UnknownNameError, "'drugg'"),
        ("dmpnn+deepdta", ["drug"], UnsupportedError, "deepdta"),
    ],
)
def test_a_column_that_is_not_read_is_an_error(
    encoder: str, inputs: list[str] | None, error: type[MolgraphError], words: str
) -> None:
    with pytest.raises(error, match=words):
        GraphMethod(encoder, inputs=inputs, **SMALL).fit(pairs())


def test_columns_may_be_left_out_by_name() -> None:
    drug = make_method("dmpnn", inputs=["drug"], d_hidden=8, **SMALL).fit(pairs())
    assert list(np.flatnonzero(~drug.predict(pairs()).ok)) == [4]
    protein = make_method("deepdta", inputs=["target"], n_filters=4, **SMALL).fit(pairs())
    assert list(np.flatnonzero(~protein.predict(pairs()).ok)) == [7]
    options = {
        "model": "random_forest",
        "params": {"n_estimators": 2},
        "split": "random",
        "fractions": (0.5, 0.25, 0.25),
    }
    assert molgraph.train(pairs(), inputs=["drug"], **options).predict(["CCO"]).ok.all()


def test_two_molecule_columns_may_have_an_encoder_each() -> None:
    both = table_of({"solute": ("molecule", list(DRUGS)), "solvent": ("molecule", list(DRUGS[::-1]))}, np.arange(6.0))
    chosen = [(e.name, encoder) for e, encoder in choose_columns(both, "dmpnn+gin", None)]
    assert chosen == [("solute", "dmpnn"), ("solvent", "gin")]
    widths = {"dmpnn.d_hidden": 8, "gin.d_hidden": 8}
    assert GraphMethod("dmpnn+gin", params=widths, **SMALL).fit(both).predict(both).ok.all()
    assert [encoder for _, encoder in choose_columns(both, "gin", None)] == ["gin", "gin"]


def test_a_joiner_of_one_column_is_refused() -> None:
    with pytest.raises(UnusedSettingError, match="bilinear"):
        GraphMethod("dmpnn", joiner="bilinear", inputs=["drug"], **SMALL).fit(pairs())


def test_graphs_and_geometries_train() -> None:
    rng, y = np.random.default_rng(0), np.arange(12.0)
    rings = []
    for n in range(3, 15):
        a = np.arange(n)
        edges = np.concatenate([np.stack([a, (a + 1) % n]), np.stack([(a + 1) % n, a])], axis=1).T
        rings.append(Graph(n, edges, node_label=a % 2))
    for encoder in ("gin", "dmpnn", "mpnn"):
        table = table_of({"graph": ("graph", rings)}, y)
        method = GraphMethod(encoder, params={"d_hidden": 8}, **SMALL).fit(table)
        assert method.predict(table).ok.all()
        again = GraphMethod.from_state(method.state()).predict(table)
        assert again.value.tobytes() == method.predict(table).value.tobytes()
    features = [replace(ring, node_features=np.ones((ring.n_nodes, 2), np.float32)) for ring in rings]
    features[5] = replace(rings[5], node_features=np.full((rings[5].n_nodes, 2), np.nan))
    table = table_of({"graph": ("graph", features)}, y)
    found = GraphMethod("gin", params={"d_hidden": 8}, **SMALL).fit(table, table).predict(table)
    assert found.reason[5] == "node features must be finite numbers" and found.ok.sum() == 11
    atoms = [Geometry(np.array([6, 1, 8], np.uint8), rng.normal(size=(3, 3)).astype(np.float32)) for _ in range(12)]
    table = table_of({"geometry": ("geometry", atoms)}, y)
    assert GraphMethod("schnet", params={"d_hidden": 8}, **SMALL).fit(table).predict(table).ok.all()
    with pytest.raises(UnsupportedError, match=r"enn_s2s.*schnet"):
        GraphMethod("dmpnn", **SMALL).fit(table)


def test_one_way_edges_train_and_the_vectors_of_labelled_graphs_hold_values() -> None:
    graphs = [Graph(n, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1), np.arange(n) % 3) for n in range(3, 15)]
    table = table_of({"graph": ("graph", graphs)}, np.arange(12.0))
    for encoder in ("mpnn", "gin"):
        method = GraphMethod(encoder, params={"d_hidden": 8}, **SMALL).fit(table)
        vectors = make_vectors(method, vector_table(method, ()))
        assert method.predict(table).ok.all() and {*vectors["status"]} == {"ok"}
        assert compare_vectors(method, vector_table(method, ()), vectors) == (25, 0.0)
        empty = vectors | {"value": [[None]] * 25}
        with pytest.raises(ModelFileError, match="no value"):
            compare_vectors(method, vector_table(method, ()), empty)


def test_every_encoder_and_joiner_reads_a_kind_with_a_featuriser() -> None:
    for name in names("encoder"):
        made = make_method(name)
        made.check_network()
    assert {"concat", "bilinear", "cross_attention"} <= set(names("joiner"))


def test_columns_that_are_named_are_the_models_in_its_order(tmp_path: Path) -> None:
    """One column never serves two inputs, and none that was named is left unread."""
    columns = {"solute": ["C" * k + "O" for k in range(12)], "solvent": ["CN", "CO", "CN"] * 4}
    frame = pd.DataFrame({**columns, "y": np.arange(12.0)})
    options = {"model": "dmpnn", "split": "random", "epochs": 1, "baseline": False}
    model = molgraph.train(frame, smiles=("solute", "solvent"), targets=["y"], **options).model
    new = pd.DataFrame({"solute": ["CCO", "CCN"], "solvent": ["CN", "CO"], "other": ["c1ccccc1", "CC#N"]})
    plain = model.predict(new).value
    other = model.predict(new, smiles=("solute", "other")).value
    assert np.isfinite(other).all() and not np.array_equal(other, plain)
    moved = new.rename(columns={"solute": "a", "other": "b"})
    assert np.array_equal(model.predict(moved, smiles=("a", "b")).value, other)
    both = model.predict(new, smiles=("solvent", "other")).value  # neither is read in the other's place
    asked = new.assign(solute=new["solvent"], solvent=new["other"])
    assert np.array_equal(both, model.predict(asked).value)
    with pytest.raises(BadValueError, match="solvent, solute"):
        model.predict(new, smiles=("solvent", "solute"))
    for named in ("solute", ("solute", "solvent", "other")):
        with pytest.raises(BadValueError, match="2 molecule columns"):
            model.predict(new, smiles=named)
    for name in ("dmpnn", "mean"):
        own = options | {"model": name, "epochs": 1 if name == "dmpnn" else None}
        single = molgraph.train(frame, smiles="solute", targets=["y"], **own).model
        with pytest.raises(BadValueError, match="1 molecule column"):
            single.predict(new, smiles=("solute", "solvent"))


def test_rows_are_replicates_where_all_of_their_molecules_are_the_same() -> None:
    solute, solvent = ["CCO", "OCC", "CCO", "CCN", "CCO"], ["O", "O", "CO", "O", "OC"]
    frame = pd.DataFrame({"solute": solute, "solvent": solvent, "y": [1.0, 3.0, 5.0, 7.0, 9.0]})
    table = molgraph.read_table(frame, smiles=("solute", "solvent"), targets=["y"])
    assert find_replicates(table).rows.tolist() == [0, 1, 2, 4]
    found = molgraph.audit(table).finding("duplicate")
    assert sorted(found.rows.tolist()) == [0, 1, 2, 4] and "pair" in found.meaning
    made = molgraph.curate(table, replicates_alone=True).table
    assert made.ids.tolist() == ["0", "2", "3"] and made.y[:, 0].tolist() == [2.0, 7.0, 7.0]


def test_words_for_a_missing_sequence_are_no_protein() -> None:
    frame = {"drug": ["CCO"] * 6, "protein": ["NA", "NULL", "nan", "None", "", "NALA"]}
    table = molgraph.read_table(frame, smiles="drug", sequence="protein")
    assert table.ok.tolist() == [False] * 5 + [True] and set(table.reason[:5]) == {"protein: no sequence in this row"}
    none = "no sequence in this row"
    table = table_of({"target": ("sequence", ["MKT", None, float("nan"), "None", 5, "AC"])}, np.arange(6.0))
    found = make_method("deepdta", n_filters=4, **SMALL).fit(table).predict(table)
    assert found.reason.tolist() == ["", none, none, "", "not text: int", ""]


def test_one_molecule_with_two_partners_is_no_activity_cliff() -> None:
    frame = {"drug": ["CCO", "CCO", "CCN"] * 8, "protein": ["MK", "AC", "MK"] * 8, "y": [1.0, 9.0, 1.1] * 8}
    found = molgraph.audit(frame, smiles="drug", sequence="protein", targets=["y"])
    assert not [each.kind for each in found.findings if "cliff" in each.kind]


def test_pairs_that_stand_in_training_are_counted(caplog: pytest.LogCaptureFixture) -> None:
    drug, protein = ["CCO", "OCC.Cl", "CCN", "CCO"] * 5, [PROTEINS[0], PROTEINS[0], PROTEINS[0], PROTEINS[1]] * 5
    frame = pd.DataFrame({"drug": drug, "protein": protein, "y": np.arange(20.0)})
    table = molgraph.read_table(frame, smiles="drug", sequence="protein", targets=["y"])
    leaks = find_leaks(table, np.array([0]), np.array([1, 2, 3]))
    assert [(leak.train, leak.test, leak.what) for leak in leaks] == [("0", "1", "salt form")]
    frame = pd.DataFrame({"drug": ["C" * k + "O" for k in range(20)], "protein": PROTEINS[0], "y": np.arange(20.0)})
    columns = {"smiles": "drug", "sequence": "protein", "targets": ["y"]}
    small = {"model": "dmpnn+deepdta", "epochs": 1, "split": "random", "baseline": False}
    result = molgraph.train(frame, test=frame, **columns, **small)
    assert "20 of 20 test rows" in caplog.text
    caplog.clear()
    result.model.evaluate(frame)
    assert "20 of 20 rows hold a pair that the model learnt from" in caplog.text

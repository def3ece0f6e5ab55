"""Scores come from stored predictions alone, and are those of ``metrics.score``; tables reach cells as they were."""

from __future__ import annotations

import math
import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from molgraph.base.contracts import Target
from molgraph.base.errors import FormatError, LabelError, MismatchError, MissingFileError
from molgraph.base.table import Packed
from molgraph.data.content import content_hash
from molgraph.data.graph_values import Geometry, Graph
from molgraph.data.splits.split import row_contents
from molgraph.data.table import Entities, Table, make_table
from molgraph.data.table_parquet import read_handed, write_table
from molgraph.evaluate import metrics
from molgraph.evaluate.benchmark.plan import metrics_of
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import COLUMNS, score_records
from molgraph.evaluate.benchmark.store import work_folder
from tests.evaluate.bench_tables import go, plain, recipe, small
from tests.evaluate.odd_methods import Ridge


def several(n: int = 60) -> Table:
    """Three targets of three kinds of trouble: whole, with gaps, and of two classes; and rows that cannot be read."""
    table, rng = small(n), np.random.default_rng(1)
    whole = table.y[:, 0]
    gaps = np.where(rng.random(n) < 0.3, np.nan, whole**2)
    classes = (whole > np.median(whole)).astype(float)
    smiles = list(table.smiles)
    smiles[5] = None
    targets = (Target("whole"), Target("gaps"), Target("classes", "binary"))
    return make_table(smiles, targets=targets, y=np.stack([whole, gaps, classes], axis=1))


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory):
    """A run over that table."""
    out = tmp_path_factory.mktemp("several")
    go(out, recipe("ridge", metrics=["mae", "roc_auc", "rmse", "brier"]), {"small": several()})
    return read_records(out)


def test_scores_are_those_of_the_metrics_room(records):
    scores = score_records(records)
    assert tuple(scores.columns) == COLUMNS and len(scores) == 5 * 6
    for record in records:
        stored, table = records.predictions(record.cell), several()
        test = table.take(stored.rows)
        p = np.stack([stored.p[t.name] for t in table.row_targets], axis=1)
        from molgraph.base.contracts import Prediction

        prediction = Prediction(test.ids, table.row_targets, p, test.status, test.reason)
        asked = ["mae", "roc_auc", "rmse", "brier"]
        expected = {(s.target, s.metric): s for s in metrics.score(test, prediction, metrics=asked)}
        own = scores[scores["fold"] == record.cell.fold]
        assert len(own) == len(expected)
        for row in own.itertuples():
            one = expected[row.target, row.metric]
            assert (row.value, row.n, row.note) == (one.value, one.n, one.note)


def test_rows_without_a_molecule_are_in_no_part_and_missing_labels_are_not_counted(records):
    scores = score_records(records)
    rows = np.sort(np.concatenate([records.predictions(r.cell).rows for r in records]))
    assert rows.tolist() == [i for i in range(60) if i != 5]
    n = scores[scores["metric"] == "mae"].groupby("target")["n"].sum()
    gaps = int(np.isfinite(np.delete(several().y[:, 1], 5)).sum())
    assert n.to_dict() == {"whole": 59, "gaps": gaps}


def test_a_metric_that_these_rows_give_no_value_says_why(tmp_path):
    table = several()
    y = table.y.copy()
    y[:, 2] = 0
    y[0, 2] = 1
    go(tmp_path, recipe("ridge", metrics=["rmse", "roc_auc"]), {"small": Table(**vars(table) | {"y": y})})
    scores = score_records(read_records(tmp_path)).query("metric == 'roc_auc'")
    lost = scores[scores["value"].isna()]
    assert len(lost) >= 4 and lost["note"].str.contains("class").all()


def test_metrics_of_a_target_are_the_recipes_that_fit_or_the_cards_first():
    targets = (Target("a"), Target("b", "binary"))
    assert metrics_of(recipe("ridge"), targets, "spearman")["a"][0] == "spearman"
    assert metrics_of(recipe("ridge"), targets, "prc_auc")["b"][:2] == ("prc_auc", "roc_auc")
    assert metrics_of(recipe("ridge", metrics=["brier", "mae"]), targets, "rmse") == {"a": ("mae",), "b": ("brier",)}


def test_a_metric_that_judges_none_of_a_datasets_targets_refuses_that_dataset(tmp_path):
    ran = go(tmp_path, recipe("ridge", metrics=["roc_auc"]))
    assert "can judge" in ran.refused["small"] and ran.made == {}


def test_predictions_that_are_not_there_or_damaged_are_said(records, tmp_path):
    go(tmp_path, recipe({"name": "odd"}), only={"fold": ["0"]})
    own = read_records(tmp_path)
    with pytest.raises(MissingFileError, match="odd r0-f0-s0"):
        own.predictions(own.done[0].cell)
    go(tmp_path / "b", recipe("ridge"), only={"fold": ["0"]})
    own = read_records(tmp_path / "b")
    own.path(own.done[0].cell).write_bytes(b"PAR1")
    with pytest.raises(FormatError, match=r"predictions\.parquet"):
        own.predictions(own.done[0].cell)


def test_predictions_that_were_changed_by_hand_are_not_scored(tmp_path):
    asked = recipe("ridge")
    go(tmp_path, asked)
    records = read_records(tmp_path)
    before = plain(score_records(records))
    cell = records.done[2].cell
    path = records.path(cell)
    made = pq.read_table(path)
    better = made.set_column(made.schema.get_field_index("p:y"), "p:y", made["y:y"])  # a valid file of right answers
    pq.write_table(better, path)
    for look in (lambda: score_records(read_records(tmp_path)), lambda: records.predictions(cell)):
        with pytest.raises(MismatchError, match=str(path)) as error:
            look()
        assert error.value.hint == "delete its folder and run the recipe again"
    with pytest.raises(MismatchError, match=str(path)):
        go(tmp_path, asked)
    shutil.rmtree(path.parent)
    assert go(tmp_path, asked).made == {"ok": 1}
    pd.testing.assert_frame_equal(plain(score_records(read_records(tmp_path))), before)


def test_manifests_as_a_frame(records):
    frame = records.frame
    assert len(frame) == records.wanted == 5 and set(frame["status"]) == {"ok"}
    assert (frame["seconds_total"] >= frame["seconds_fit"]).all() and isinstance(frame, pd.DataFrame)
    assert "5 of 5 cells, 0 failed" in repr(records)


TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=6)


@settings(max_examples=30)
@given(data=st.lists(st.tuples(TEXT, st.floats(), st.floats(-1e9, 1e9)), min_size=1, max_size=8))
def test_a_table_reaches_a_cell_as_it_was(tmp_path_factory, data):
    ids, y, extra = zip(*data, strict=True)
    table = make_table(
        ["C"] * len(ids),
        ids=ids,
        targets=(Target("y:z"),),
        y=y,
        weights=np.arange(len(ids), dtype=float),
        features=np.array(extra)[:, None],
        feature_names=("id",),
        split=np.array(["train"] * len(ids), dtype=object),
    )
    path = tmp_path_factory.mktemp("handed") / "t.parquet"
    write_table(table, path)
    back = read_handed(path)
    assert content_hash(back) == content_hash(table) and back.targets == table.targets
    for name in ("ids", "status", "reason", "split"):
        assert list(getattr(back, name)) == list(getattr(table, name))
    for name in ("y", "weights", "features"):
        np.testing.assert_array_equal(getattr(back, name), getattr(table, name))


def test_graphs_and_geometries_come_back_as_they_were(tmp_path):
    edges = np.array([[0, 1], [1, 0]], np.int32)
    bare, rng = Graph(3, np.zeros((0, 2), np.int32)), np.random.default_rng(0)
    rich = Graph(2, edges, np.arange(2), rng.random((2, 3), np.float32), np.arange(2), rng.random((2, 0), np.float32))
    places = Geometry(np.array([6, 1], np.uint8), rng.random((2, 3), np.float32))
    columns = {"g": ("graph", [bare, None, rich]), "at": ("geometry", [None, places, places])}
    table = replace(small(3), entities=tuple(Entities(n, k, objects(v)) for n, (k, v) in columns.items()))
    write_table(table, tmp_path / "t")
    back = read_handed(tmp_path / "t")
    assert row_contents(back) == row_contents(table) and back.entities[0].values[1] is None
    assert back.column("g").values[2].edge_features.shape == (2, 0)


def test_a_target_below_the_row_is_refused(tmp_path):
    packed = {"q": Packed(np.array([0, 1]), np.zeros(1))}
    with pytest.raises(LabelError):
        write_table(replace(small(1), packed=packed), tmp_path / "t")
    assert not list(tmp_path.iterdir())


def objects(values):
    """An object array that numpy does not look into."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def test_what_an_earlier_run_left_of_a_cell_is_cleared(records, tmp_path):
    cell = records.done[0].cell
    (work_folder(tmp_path, cell) / "half").touch()
    assert not list(work_folder(tmp_path, cell).iterdir())


def test_the_tiny_ridge_learns() -> None:
    table = small()
    found = Ridge().fit(table).predict(Table(**vars(table) | {"y": None, "targets": ()}))
    assert math.sqrt(((found.value - table.y) ** 2).mean()) < 0.5

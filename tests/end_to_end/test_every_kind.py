"""Each kind of column and split through Python and the shell: several targets, weights, descriptors, classes."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph as mg
from molgraph.data.splits import Split
from tests.end_to_end.conftest import molgraph

GRAPH = {"params": {"d_hidden": 8, "head_width": 8}, "epochs": 1, "threads": 1, "baseline": False}
FOREST = {"params": {"n_estimators": 5, "n_bits": 256, "threads": 1}}
METHODS = {"dmpnn": GRAPH, "mpnn": GRAPH, "random_forest": FOREST}


@pytest.fixture(scope="module")
def frame(home: Path) -> pd.DataFrame:
    """The small table with every other kind of column, gaps included, and two rows that cannot be read."""
    frame = pd.read_csv(home / "assay.csv", dtype={"id": str})
    rng = np.random.default_rng(0)
    frame["weight"] = rng.uniform(0.5, 2, len(frame))
    frame["temperature"], frame["pH"] = rng.normal(300, 10, len(frame)), rng.uniform(5, 9, len(frame))
    frame["year"] = np.repeat(np.arange(2000, 2015), 10)
    frame["project"] = rng.choice(list("abcdefgh"), len(frame))
    frame["part"] = rng.permuted(np.repeat(["train", "valid", "test"], [100, 20, 30]))
    frame.loc[rng.choice(len(frame), 20, replace=False), "pActivity"] = np.nan
    frame.loc[[3, 7], "smiles"] = ["oops", ""]
    return frame


@pytest.fixture(scope="module", params=METHODS)
def result(request: pytest.FixtureRequest, frame: pd.DataFrame):
    """Each method on three targets of three kinds, with weights and descriptors, split by a column."""
    return mg.train(
        frame,
        targets=["pActivity", "active", "level:multiclass"],
        weight="weight",
        features=["temperature", "pH"],
        split_column="part",
        id="id",
        model=request.param,
        **METHODS[request.param],
    )


@pytest.mark.slow
def test_everything_at_once(result, frame: pd.DataFrame, tmp_path: Path) -> None:
    part = frame[frame["smiles"].isin(set(frame["smiles"]) - {"oops", ""})]["part"].value_counts()
    assert result.split.sizes["train"] == part["train"] and result.split.sizes["test"] == part["test"]
    scores = result.scores
    assert {("pActivity", "rmse"), ("active", "roc_auc"), ("level", "accuracy")} <= set(scores.columns)
    assert np.isfinite(scores.to_numpy(float)[0]).any()
    model = mg.load(result.save(tmp_path / "m.mgm"))
    found = model.predict(frame, smiles="smiles", id="id")
    assert found.columns == ("pActivity", "active", "level:high", "level:low", "level:middle")
    assert found.ids.tolist() == frame["id"].tolist()
    assert np.flatnonzero(~found.ok).tolist() == [3, 7] and np.isfinite(found.value[found.ok]).all()
    np.testing.assert_allclose(found.value[found.ok, 2:].sum(axis=1), 1, atol=1e-5)
    assert found.value.tobytes() == result.predict(frame, smiles="smiles", id="id").value.tobytes()
    later = frame[frame["level"] != "high"]
    assert {"rmse", "roc_auc", "accuracy"} <= set(model.evaluate(later, smiles="smiles")["metric"])


class Tags(HTMLParser):
    """Fails where a tag is closed that is not the last one opened."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if tag not in ("br", "hr", "img", "meta", "input"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open.pop() == tag, tag


def test_what_a_notebook_shows_is_well_formed(result) -> None:
    for shown in (result, result.model, result.predict(["CCO", "oops"]) if not result.model.feature_names else result):
        reader = Tags()
        reader.feed(shown._repr_html_())
        reader.close()
        assert not reader.open
    assert all(name in result._repr_html_() for name in result.scores.index)
    assert "TrainingResult(" in repr(result)


SPLITS = {
    "time": ("--split", "time", "--split-column", "year"),
    "group": ("--split", "group", "--split-column", "project", "--fractions", "0.6,0.2,0.2"),
    "column": ("--split-column", "part"),
    "cluster/butina": ("--split", "cluster/butina"),
    "scaffold/generic": ("--split", "scaffold/generic"),
    "scaffold/deepchem": ("--split", "scaffold/deepchem"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SPLITS)
def test_splits_from_the_shell(name: str, frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "in.csv", index=False)
    words = ("train", "in.csv", "-t", "pActivity", "-m", "mean", *SPLITS[name], "-o", "m.mgm")
    done = molgraph(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    card = mg.load(tmp_path / "m.mgm").card
    assert card.split.startswith(name) and min(card.n_train, card.n_valid, card.n_test) > 0
    split = molgraph("data", "split", "in.csv", *SPLITS[name], "-o", "split.json", cwd=tmp_path)
    assert split.returncode == 0, split.stderr
    found = Split.load(tmp_path / "split.json")
    assert ", ".join(f"{n:,} {part.replace('_', ' ')}" for part, n in found.sizes.items()) in split.stdout
    labelled = [int(frame["pActivity"].iloc[rows].notna().sum()) for rows in (found.train, found.valid, found.test)]
    assert [card.n_train, card.n_valid, card.n_test] == labelled, "the card counts the rows that have a label"


def test_columns_from_the_shell(frame: pd.DataFrame, tmp_path: Path) -> None:
    frame.to_csv(tmp_path / "in.csv", index=False)
    words = ("train", "in.csv", "-t", "pActivity", "-t", "level:multiclass", "--feature", "temperature", "--weight")
    more = ("weight", "--id", "id", "--epochs", "1", "--ensemble", "2", "-s", "params.d_hidden=8", "--split", "random")
    done = molgraph(*words, *more, "--no-baseline", "--threads", "1", "-o", "m.mgm", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    done = molgraph("predict", "m.mgm", "in.csv", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 0 and "2 without a prediction" in done.stderr, done.stderr
    found = pd.read_csv(tmp_path / "out.csv", dtype={"id": str})
    assert found["id"].tolist() == frame["id"].tolist()
    assert {"pActivity_predicted_spread", "level:low", "level:low_spread"} <= set(found.columns)
    frame.drop(columns="temperature").to_csv(tmp_path / "less.csv", index=False)
    done = molgraph("predict", "m.mgm", "less.csv", "-o", "out.csv", cwd=tmp_path)
    assert done.returncode == 3 and "'temperature'" in done.stderr

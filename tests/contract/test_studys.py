"""Trials of every study: a table, a sentence, two controls that hold, the same findings for the same seed, a page."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import MissingOptionError
from molgraph.base.registry import get, names
from molgraph.chem.fingerprints import morgan
from molgraph.chem.trajectory import simulate
from molgraph.data.read import read_table
from molgraph.study.study import Findings, Subject
from molgraph.train.model import Model
from tests.episodes import tiny_language
from tests.tiny import series

TABLE = series(120)


@pytest.fixture(scope="module")
def trajectory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulate("CCCC", steps=8000, every=10, equilibrate=100).save(tmp_path_factory.mktemp("frames") / "traj.npz")


@pytest.fixture(scope="module")
def generator() -> Model:
    return molgraph.train_generator(TABLE, model="ngram")


def pairs() -> pd.DataFrame:
    """Sixty pairs of a molecule and a protein."""
    table = read_table("builtin:chembl2321810").take(np.arange(60))
    proteins = ("MKTAYIAKQRQISFVKSHFSRQ", "GIVEQCCTSICSLYQLENYCN", "ACDEFGHIKLMNPQRSTVWY")
    return pd.DataFrame({"smiles": table.smiles, "sequence": [proteins[i % 3] for i in range(60)], "y": table.y[:, 0]})


def vectors() -> pd.DataFrame:
    """Vectors of the molecules: their fingerprints, projected at random."""
    x = morgan([str(text) for text in TABLE.smiles], 2, 256).x @ np.random.default_rng(0).normal(size=(256, 8))
    columns = {f"embedding_{i}": column for i, column in enumerate(x.T)}
    return pd.DataFrame({"smiles": TABLE.smiles, **columns})


def classes() -> pd.DataFrame:
    """The molecules, each with one of four classes."""
    return pd.DataFrame({"smiles": TABLE.smiles, "kind": ["abcd"[i % 4] for i in range(len(TABLE))]})


SMALL = "dmpnn(d_hidden=16)+deepdta(d_embed=8, n_filters=8)"


def findings(name: str, generator: Model, trajectory: Path) -> Findings:
    study = get("study", name)(**get("study", name).small)
    model = {
        "model": "random_forest(n_estimators=5)",
        "graph_model": "gin(depth=2, d_hidden=8, epochs=3)",
        "fitted": generator,
    }
    if study.reads == "pairs":
        return study.run(Subject(pairs(), SMALL, {"sequence": "sequence", "targets": ["y"]}))
    if study.reads == "texts":
        return study.run(Subject(None, Model(tiny_language(), targets=())))
    data = {"molecules": TABLE, "classes": classes(), "trajectory": trajectory, "vectors": vectors()}[study.reads]
    columns = {"targets": ["kind:multiclass"]} if study.reads == "classes" else {}
    return study.run(Subject(data, next((model[n] for n in study.needs if n in model), None), columns))


@pytest.mark.parametrize("name", names("study"))
class TestEveryStudy:
    def test_findings_have_a_table_a_sentence_and_controls_that_hold(
        self, name: str, generator: Model, trajectory: Path, tmp_path: Path
    ) -> None:
        found = findings(name, generator, trajectory)
        assert len(found.frame) and found.sentence and found.sound, repr(found)
        again = findings(name, generator, trajectory)
        pd.testing.assert_frame_equal(found.frame, again.frame)
        assert found.sentence == again.sentence
        page = found.save(tmp_path / "page.html").read_text("utf-8")
        assert found.positive.name in page and found.negative.name in page
        assert len(pd.read_csv(found.save(tmp_path / "table.csv"))) == len(found.frame)

    def test_a_study_without_what_it_needs_is_refused(self, name: str) -> None:
        with pytest.raises(MissingOptionError, match=name):
            molgraph.study(name)

"""Beside a model of pairs each side is trained alone, in train and in benchmarks, and sentences say what was used."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.api.bench_sides import with_sides
from molgraph.base.contracts import Prediction
from molgraph.base.errors import UnknownNameError, UnsupportedError
from molgraph.base.table import OK
from molgraph.data.featurize_complex import SERINE
from molgraph.data.graph_values import Geometry
from molgraph.data.read import read_table
from molgraph.data.sides import sides_of
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.job import Job
from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe
from molgraph.evaluate.sides import gap
from molgraph.study.docking_rank import without_feature
from molgraph.study.pair_bias import PairBias
from molgraph.study.pair_toys import toy_pairs
from molgraph.study.study import Subject
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from molgraph.train.one_side import one_side

SMALL = {"dmpnn.d_hidden": 8, "deepdta.d_embed": 8, "deepdta.n_filters": 4, "head_width": 8}
RECIPE = {
    "name": "pairs",
    "datasets": ["mine"],
    "split": [{"recipe": "random", "folds": 3}],
    "method": [{"name": "mean"}, {"name": "dmpnn+deepdta", "params": {"epochs": 1}}],
}


def pairs(n: int = 60) -> Table:
    """Pairs whose label is the protein's."""
    one = read_table({"drug": ["CCO"], "protein": ["MKT"]}, smiles="drug", sequence="protein")
    return toy_pairs(one, sides_of(one), "second", n=n)


@pytest.mark.slow
def test_each_side_is_a_row_of_the_scores_and_a_sentence_says_what_was_used(tmp_path: Path) -> None:
    how = {"params": SMALL, "epochs": 1, "min_steps": 150, "learning_rate": 1e-2, "batch_size": 16, "threads": 1}
    result = molgraph.train(pairs(120), model="dmpnn+deepdta", split="random", fractions=(0.6, 0.1, 0.3), **how)
    assert [*result.scores.index] == ["dmpnn+deepdta", "ligand alone", "protein alone", "mean"]
    ligand, protein = result.gaps
    assert ligand.used and ligand.sentence.startswith("The protein was used: ROC AUC"), ligand
    assert not protein.used and protein.sentence.startswith("Nothing shows that the ligand was used: ROC AUC"), protein
    assert f"{ligand.sentence}." in result.verdict and ligand.sentence in result.model.card.notes
    assert ligand.sentence in result.report(tmp_path / "page.html").read_text("utf-8")
    again = molgraph.load(result.save(tmp_path / "m.mgm"))
    assert ligand.sentence in again.card.notes


@pytest.mark.parametrize(("noise", "begins"), [(0.5, "The protein was used"), (3.0, "Nothing was learned, so nothing")])
def test_a_model_that_does_not_beat_the_mean_used_nothing(noise: float, begins: str) -> None:
    rng, y = np.random.default_rng(0), np.arange(60) % 7 - 3.0
    rows = {"drug": ["CCO", "CC", "C"] * 20, "protein": ["MKT"] * 60, "y": y}
    table = read_table(rows, smiles="drug", sequence="protein", targets=["y"])
    whole, alone, mean = (
        Prediction(table.ids, table.targets, each[:, None].astype(np.float32), table.status, table.reason)
        for each in (y + noise * rng.standard_normal(60), y + 9 * rng.standard_normal(60), 0 * y)
    )
    found = gap(table, table.targets[0], sides_of(table)[0], [whole], [alone], mean=mean)
    assert found.sentence.startswith(begins) and found.used is (noise < 1) and found.difference.high < 0, found


def test_without_baselines_there_are_no_sides() -> None:
    result = molgraph.train(
        pairs(), model="dmpnn+deepdta", split="random", params=SMALL, epochs=1, baseline=False, threads=1
    )
    assert [*result.scores.index] == ["dmpnn+deepdta", "mean"] and not result.gaps


@pytest.mark.parametrize("encoder", ["atom_context", "contact_map"])
def test_a_model_of_complexes_marks_those_without_a_side(encoder: str, tmp_path: Path) -> None:
    parts = [SERINE.part(protein=False), SERINE.part(protein=True)]
    table = read_table({"pose": [SERINE] * 8 + parts, "y": np.arange(10.0)}, geometry="pose", targets=["y"])
    model = Model(make_method(encoder, epochs=1, threads=1).fit(table), targets=table.targets)
    read = molgraph.load(model.save(tmp_path / "m.mgm"))
    made = read.predict({"pose": [SERINE, *parts]}, geometry="pose")
    assert np.isnan(made.value[:, 0]).tolist() == [False, True, True]
    assert "without its protein" in made.reason[1] and "without its ligand" in made.reason[2]
    alone = make_method(encoder, epochs=1, threads=1)
    ligands = read_table({"pose": parts[:1] * 8, "y": np.arange(8.0)}, geometry="pose", targets=["y"])
    assert (alone.fit(ligands).predict(ligands).status == OK).all()


def test_two_columns_of_a_kind_and_complexes_have_sides_too() -> None:
    frame = {"a": ["CCO"], "b": ["CN"], "y": [1.0]}
    two = read_table(frame, smiles=["a", "b"], targets=["y"])
    assert [side.title for side in sides_of(two)] == ["a alone", "b alone"] and not sides_of(two, ["a"])
    name, params = one_side(
        "dmpnn+gin", {"gin.depth": 2, "joiner": "bilinear", "joiner.rank": 4}, sides_of(two)[1], two
    )
    assert (name, params["depth"], params["joiner"]) == ("gin", 2, "concat") and "joiner.rank" not in params
    at = np.zeros((3, 3), np.float32)
    residues = np.array([0, 1, 2], np.uint8), np.array([-1, 0, 1], np.int32)
    whole = Geometry(np.array([6, 7, 8], np.uint8), at, None, *residues)
    table = read_table({"pose": [whole]}, geometry="pose")
    ligand, protein = (side.of(table).entities[0].values[0] for side in sides_of(table))
    assert ligand.numbers.tolist() == [6] and protein.numbers.tolist() == [7, 8]
    assert one_side("contact_map", {"depth": 2}, sides_of(table)[0], table)[0] == "contact_map"


def test_a_benchmark_of_pairs_has_rows_of_each_side_unless_it_has_its_own() -> None:
    recipe, tables = BenchRecipe.from_dict(RECIPE), {"mine": pairs()}
    made = with_sides(recipe, tables)
    assert [m.row for m in made.method][2:] == ["dmpnn+deepdta-ligand-alone", "dmpnn+deepdta-protein-alone"]
    assert [(m.name, m.side, m.params["epochs"]) for m in made.method[2:]] == [
        ("dmpnn", "ligand", 1),
        ("deepdta", "protein", 1),
    ]
    assert BenchRecipe.from_dict(made.model_dump(exclude_defaults=True)) == made and with_sides(made, tables) == made
    own = {**RECIPE, "method": [*RECIPE["method"], {"name": "dmpnn", "inputs": ["drug"]}]}
    assert [m.side for m in with_sides(BenchRecipe.from_dict(own), tables).method] == ["", "", "", "protein"]
    off = BenchRecipe.from_dict({**RECIPE, "sides": False})
    assert with_sides(off, tables) is off
    molecules = {"mine": tables["mine"].with_entities(["drug"])}
    assert (
        with_sides(BenchRecipe.from_dict({**RECIPE, "method": [{"name": "dmpnn"}]}), molecules).method[0].name
        == "dmpnn"
    )


def test_a_side_that_a_table_lacks_is_refused() -> None:
    job = Job("", "", "", "", BenchMethod(name="dmpnn", side="ligands"))
    with pytest.raises(UnknownNameError, match="no side"):
        job.side_in(pairs())


def test_the_study_of_pairs_refuses_what_has_no_sides_and_ranks_that_are_not_there() -> None:
    frame = pd.DataFrame({"smiles": ["CCO", "CCN"] * 10, "y": np.arange(20.0)})
    with pytest.raises(UnsupportedError, match="reads one thing a row"):
        PairBias().run(Subject(frame, "dmpnn", {"targets": ["y"]}))
    with pytest.raises(UnknownNameError, match="no feature"):
        without_feature(pairs(), "rank")

"""Registered methods, run as the runner runs them with one store of features: what they cannot know does not help."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from molgraph.base.contracts import Target
from molgraph.data.splits import Split, split_table
from molgraph.data.table import Table, make_table
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.job import Job, Outcome
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.run import run_benchmark
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.benchmark.worker import run_job
from tests.evaluate.leaky_methods import CHEATS, FACTORY

pytestmark = pytest.mark.slow

SMALL = {"n_bits": 256}
METHODS = {
    "knn": SMALL,
    "linear": SMALL | {"alpha": 10.0},
    "random_forest": SMALL | {"n_estimators": 40},
    "svm": SMALL,
    "gp": SMALL | {"steps": 10},
    "xgboost": SMALL | {"n_estimators": 40},
    "maplight": SMALL | {"iterations": 40},
}
COLUMNS = ("linear", "random_forest", "xgboost", "maplight")  # use a table's own columns beside the structure
CORES = ("c1ccccc1", "c1ccncc1", "C1CCCCC1", "c1ccoc1", "c1ccsc1", "C1CCNCC1", "c1nccnc1", "C1CC1", "C1CCOC1", "C1CCC1")
POLAR, PLAIN = ("O", "N", "C(=O)O", "C#N", "S(C)(=O)=O"), ("C", "CC", "C(C)C", "CCC", "C=C")
SHARES = (0.6, 0.0, 0.4)
SHUFFLED = ["shuffled", "again"]
CHANCE = 0.15  # of ROC AUC around a half: three standard errors of two hundred rows, methods agreeing on what is luck


class Here:
    """An engine that runs each cell at once in this process; its errors are the test's."""

    slots = 1

    def __init__(self) -> None:
        self.ended: list[tuple[int, Outcome]] = []

    @property
    def free(self) -> int:
        return 1 - len(self.ended)

    def start(self, number: int, job: Job) -> None:
        self.ended.append((number, Outcome("ok", "", run_job(job), 0.0, 0.0, 1.0)))

    def wait(self, seconds: float = 0.0) -> list[tuple[int, Outcome]]:
        ended, self.ended = self.ended, []
        return ended

    def close(self) -> None:
        pass


def tables() -> dict[str, Table]:
    """A hundred molecules: labels that follow the structure; shuffled ones; and with a column that tells them."""
    rng = np.random.default_rng(0)
    pairs = [(core, tail) for core in CORES for tail in (*POLAR, *PLAIN)]
    order = rng.permutation(len(pairs))
    smiles = ["".join(pairs[i]) for i in order]
    true = np.array([float(pairs[i][1] in POLAR) for i in order])
    noise, again = rng.permutation(true), rng.permutation(true)
    split = split_table(make_table(smiles), "random", fractions=SHARES)
    told = noise.copy()
    for label in (0.0, 1.0):  # in training, the column is as often one as zero under either label
        rows = split.train[noise[split.train] == label]
        told[rows] = rng.permutation(np.arange(len(rows)) % 2)
    made = {"true": true, "shuffled": noise, "again": again, "told_all": noise, "told_test": noise}
    column = {"told_all": noise, "told_test": told}
    targets = (Target("y", "binary"),)
    return {
        name: make_table(smiles, targets=targets, y=y)
        if name not in column
        else make_table(smiles, targets=targets, y=y, features=column[name][:, None], feature_names=("told",))
        for name, y in made.items()
    }


def auc(out: Path, methods: list[dict], data: dict[str, Table], split: dict) -> pd.DataFrame:
    """Mean ROC AUC over folds: a row a dataset, a column a method."""
    values = {"name": "leaks", "datasets": list(data), "split": [split], "method": methods, "metrics": ["roc_auc"]}
    ran = run_benchmark(BenchRecipe.from_dict(values), out, factory=FACTORY, tables=data, engine=Here())
    assert set(ran.made) == {"ok"} and not ran.refused
    return score_records(read_records(out)).groupby(["dataset", "method"])["value"].mean().unstack()


FOLDS, ONE = {"splitter": "random", "folds": 3}, {"splitter": "random", "fractions": SHARES}
HONEST = [{"name": name, "params": params} for name, params in METHODS.items()]


@pytest.fixture(scope="module")
def folds(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """True and shuffled labels, three folds, every cell of one store."""
    data, out = tables(), tmp_path_factory.mktemp("folds")
    asked = {name: data[name] for name in ("true", *SHUFFLED)}
    found = auc(out, [*HONEST, {"name": "remembers"}], asked, FOLDS)
    assert len(list((out / ".work" / "features").rglob("*.npz"))) >= 3, "or nothing was shared"
    return found


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> pd.DataFrame:
    """Labels of noise with a column that tells all of them, then one that tells those of test rows alone."""
    data, out = tables(), tmp_path_factory.mktemp("told")
    cheats = [{"name": name} for name in ("keeps_columns", "peeks")]
    found = auc(out, [*HONEST, *cheats], {name: data[name] for name in ("told_all", "told_test")}, ONE)
    known = Split.load(file_of_split(out, "told_test", "random", 0, 0))
    table = data["told_test"]
    assert (table.features[known.test, 0] == table.y[known.test, 0]).all() and len(known.test) == 40
    assert abs(np.corrcoef(table.features[known.train, 0], table.y[known.train, 0])[0, 1]) < 0.05
    return found


@pytest.mark.parametrize("method", METHODS)
def test_shuffled_labels_score_at_chance(folds, method):
    assert folds.loc["true", method] > 0.85, "it can learn"
    assert abs(folds.loc[SHUFFLED, method].mean() - 0.5) < CHANCE


@pytest.mark.parametrize("method", METHODS)
def test_a_column_that_tells_labels_of_test_rows_alone_does_not_help(told, method):
    assert told.loc["told_test", method] < 0.5 + CHANCE
    if method in COLUMNS:
        assert told.loc["told_all", method] > 0.8, "or the column could not have helped"
    else:
        assert told.loc["told_all", method] == told.loc["told_test", method]


def test_who_leaks_is_caught(folds, told):
    """The two tests above would fail for each of the cheats."""
    assert folds.loc[SHUFFLED, "remembers"].max() > 0.5 + 2 * CHANCE  # of the labels that it met first
    assert told.loc["told_test", "keeps_columns"] > 0.9 and told.loc["told_test", "peeks"] > 0.9
    assert set(CHEATS) == (set(folds) | set(told)) - set(METHODS)

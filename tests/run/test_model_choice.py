"""Which of a model and its baseline is kept: by the validation part alone, and the choice is said."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Method, Prediction, Target
from molgraph.base.errors import ConflictError
from molgraph.base.run_config import RunConfig
from molgraph.data.table import Table, make_table
from molgraph.run.baselines import check_keep
from molgraph.run.choice import choose
from molgraph.run.result import TrainingResult
from molgraph.train.model import Model
from tests.tiny import series


@cache
def result() -> TrainingResult:
    """A forest that was trained, and the mean in the place of its baseline."""
    options = {"model": "random_forest", "params": {"n_estimators": 8, "n_bits": 256, "features": "morgan"}}
    made = molgraph.train(series(200), split="random", threads=1, **options)
    return replace(made, model=made.floor, baseline=made.model)


def test_the_better_one_by_the_validation_part_is_chosen_and_says_so(tmp_path) -> None:
    found = result()
    assert found.best_model.name == "random_forest"
    said = found.choice.sentence
    assert said.startswith("random_forest is kept: RMSE 0.") and "--model auto" in said
    (note,) = molgraph.load(found.best_model.save(tmp_path / "best.mgm")).card.notes[-1:]
    assert said.startswith(note) and note.endswith("on 20 validation rows.")
    assert note not in found.baseline.card.notes, "the baseline's own card is as it was"
    smiles = ["CCO", "c1ccccc1"]
    assert found.best_model.predict(smiles).value.tolist() == found.baseline.predict(smiles).value.tolist()


def test_the_test_part_has_no_say() -> None:
    """Test rows that speak for the other model change nothing."""
    found = result()
    y = found.table.y.copy()
    y[found.split.test] = y[found.split.train].mean()  # the mean is perfect here
    other = replace(found, table=replace(found.table, y=y))
    assert other.choice.sentence == found.choice.sentence


class Says(Method):
    """Predicts what it is told."""

    name = "says"

    def __init__(self, values: np.ndarray, uses_valid: bool = False) -> None:
        self.values, self.uses_valid = values, uses_valid

    def fit(self, table, valid=None, *, workdir=None):
        return self

    def predict(self, table: Table) -> Prediction:
        return Prediction(table.ids, table.row_targets, self.values, table.status, table.reason)

    def state(self):
        raise NotImplementedError

    @classmethod
    def from_state(cls, state):
        raise NotImplementedError


def test_several_targets_ties_and_missing_scores() -> None:
    names = ("a", "b", "c")
    y = np.tile(np.arange(12.0)[:, None], 3)
    valid = make_table(["C"] * 12, targets=tuple(map(Target, names)), y=y)
    good_for = [y + np.array(off) for off in ([0, 0, 2], [1, 1, 1])]
    models = [Model(Says(v, uses_valid=i == 1), targets=valid.targets) for i, v in enumerate(good_for)]
    found = choose(models, valid)
    assert found.model.method is models[0].method
    assert found.sentence.startswith("says is kept: it is better for 2 of 3 targets on the validation part. These rows")
    assert "which flatters it" in found.sentence
    assert choose(models[::-1], valid).model.method is models[0].method
    even = choose([models[1], models[1]], valid)
    assert even.model.method is models[1].method
    empty = choose(models, valid.take(np.arange(0)))
    assert empty.model is models[0] and "no score to choose by" in empty.sentence
    few = choose(
        [Model(Says(v[:3, :1]), targets=valid.targets[:1]) for v in good_for],
        valid.with_targets(["a"]).take(np.arange(3)),
    )
    assert "on 3 validation rows, which are few" in few.sentence


@pytest.mark.parametrize(
    ("recipe", "keep", "noun"),
    [
        ({"model": {"name": "random_forest"}}, "baseline", "random_forest"),
        ({"training": {"baseline": False}}, "baseline", "--no-baseline"),
        ({"data": {"smiles": ["drug"], "sequence": "protein"}}, "baseline", "pairs"),
        ({"data": {"smiles": ["solute", "solvent"]}}, "baseline", "pairs"),
        ({"split": {"fractions": [0.9, 0, 0.1]}}, "best", "fractions"),
    ],
)
def test_what_cannot_be_kept_is_refused_before_the_training(recipe: dict, keep: str, noun: str) -> None:
    with pytest.raises(ConflictError, match=noun):
        check_keep(RunConfig.from_dict(recipe), keep)
    check_keep(RunConfig.from_dict(recipe), "all")
    check_keep(RunConfig(), keep)

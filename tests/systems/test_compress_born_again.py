"""Born-again networks: labels mixed with a teacher's answers, gaps filled, and one student in place of an ensemble."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.compress.born_again import BornAgain
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from tests.systems.effect import Effect
from tests.tiny import series

GIN = {"epochs": 40, "d_hidden": 32, "threads": 1, "batch_size": 32}


def gaps() -> Table:
    """A number and a class, a third of the labels missing."""
    few, rng = series(90), np.random.default_rng(0)
    y = np.column_stack([few.y[:, 0], few.y[:, 0] > np.median(few.y[:, 0])]).astype(float)
    y[rng.random(y.shape) < 1 / 3] = np.nan
    return make_table(list(few.smiles), targets=(Target("y"), Target("active", "binary")), y=y)


def settings(off: str, **others: object) -> dict[str, object]:
    """Off: the labels alone."""
    return {"share": 0.0, "fill": False} if off else others


@pytest.mark.system("ban", rung="exact")
def test_labels_are_mixed_with_the_teachers_answers_and_gaps_are_filled(off: str) -> None:
    table = gaps()
    teacher = make_method("random_forest(n_estimators=20)").fit(table)
    value = teacher.predict(table).value
    made = BornAgain(**settings(off, share=0.3))._mixed(table, teacher.predict(table), soft=True)
    known = np.isfinite(table.y)
    np.testing.assert_allclose(made.y[known], 0.7 * table.y[known] + 0.3 * value[known], rtol=1e-12)
    np.testing.assert_allclose(made.y[~known], value[~known], rtol=1e-12)
    hard = BornAgain(share=0.3)._mixed(table, teacher.predict(table), soft=False)
    assert set(np.unique(hard.y[:, 1])) == {0.0, 1.0} and hard.targets == table.targets
    assert [target.kind for target in made.targets] == ["regression", "bounded"]


@pytest.mark.system("ban", rung="exact")
def test_a_student_that_only_copies_comes_near_the_teacher_on_rows_without_labels(off: str, tmp_path: Path) -> None:
    """Probabilities too, under the class's own name; off: it learns nothing of them."""
    table = gaps()
    y = table.y.copy()
    y[45:] = np.nan
    teacher = Model(make_method("random_forest(n_estimators=20)").fit(table), targets=table.targets)
    few = make_table(list(table.smiles), targets=table.targets, y=y)
    how = settings(off, share=1.0)
    student = BornAgain("gin(depth=2, d_hidden=32)", **how).compress(teacher, few, few.take(np.arange(0)), 0)
    found, said = student.predict(few).value, teacher.method.predict(few).value
    gap = np.abs(found - said)[45:].mean(axis=0) / said.std(axis=0)
    assert (gap < 0.25).all(), gap
    assert student.ready().outputs.targets == table.targets
    kept = Model(student, targets=table.targets).save(tmp_path / "student.mgm")
    assert kept.stat().st_size > 0


@pytest.mark.system("ban", rung="works", null="a student of the labels alone is as good: 0.80 of the five, beside 0.90")
def test_a_student_of_an_ensemble_is_better_than_one_of_the_labels_alone(
    off: str, effect: Effect, tmp_path: Path
) -> None:
    """RMSE on rows of neither, with 400 molecules without labels beside 200 with; off: of the labels alone."""
    table, ratios, five = builtin.chembl2321810(), [], []
    for seed in (21, 22, 23):
        order = np.random.default_rng(seed).permutation(len(table))
        train, valid, more, test = (table.take(order[a:b]) for a, b in ((0, 200), (200, 250), (250, 650), (650, None)))
        library = tmp_path / f"library-{seed}.smi"
        library.write_text("\n".join(str(text) for text in more.smiles))
        teacher = make_method("ensemble(gin, n=5)", seed=seed, params=GIN).fit(train, valid)
        model = Model(teacher, targets=table.targets)
        made = [teacher] + [
            BornAgain(**how).compress(model, train, valid, seed)
            for how in (settings(off, library=str(library)), settings("off"))
        ]
        errors = [float(np.sqrt(np.mean((each.predict(test).value - test.y) ** 2))) for each in made]
        ratios.append(errors[1] / errors[2])
        five.append(errors[0] / errors[2])
    effect("RMSE of a student of an ensemble of five / of the labels alone", ratios, at_most=0.95,
           beside={"the ensemble": five})  # fmt: skip

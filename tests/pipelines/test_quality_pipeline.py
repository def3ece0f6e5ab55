"""The quality pipeline: frozen splits are those of today's code, cells are whole or refused, intervals are scipy's."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from molgraph.base.errors import DataError  # noqa: E402
from molgraph.data.splits import Split, split_table  # noqa: E402
from molgraph.evaluate.metrics import get_metric  # noqa: E402
from pipelines.quality.cells import Outcome, cell_path, read_cell, write_cell  # noqa: E402
from pipelines.quality.study import open_problem, read_dataset, read_study, split_path  # noqa: E402
from pipelines.quality.table import paired, scores, write_table  # noqa: E402


def test_frozen_splits_of_the_built_in_data_are_what_the_recipe_makes() -> None:
    study = read_study()
    dataset = study.dataset[0]
    table = read_dataset(dataset)
    for seed in study.seeds[:2]:
        frozen = Split.load(split_path(study, dataset, seed))
        frozen.check(table)
        assert frozen.hash == split_table(table, study.split, fractions=study.fractions, seed=seed).hash


@pytest.mark.data
def test_frozen_splits_fit_the_marked_data() -> None:
    study = read_study()
    for dataset in study.dataset:
        table = read_dataset(dataset)
        for seed in study.seeds:
            Split.load(split_path(study, dataset, seed)).check(table)


def test_a_cell_is_read_back_scored_and_refused_when_changed(tmp_path: Path) -> None:
    study = read_study()
    dataset = study.dataset[0]
    problem = open_problem(study, dataset, 0)
    assert problem.table.y is not None
    y = problem.table.y[problem.rows("test"), 0]
    path = cell_path(tmp_path, dataset.name, "dmpnn", 0)
    write_cell(path, problem, "dmpnn", Outcome(y + 1, {"epochs": 1}, 2.0))
    cell = read_cell(path)
    np.testing.assert_allclose(cell.prediction, y + 1, rtol=1e-6)
    assert cell.rows.tolist() == problem.split.test.tolist()
    assert scores(study, tmp_path, dataset, "dmpnn")[0] == pytest.approx(1.0)
    assert np.isnan(scores(study, tmp_path, dataset, "dmpnn")[1:]).all()
    assert "1.000 (1 seeds)" in write_table(study, tmp_path)
    text = path.read_text()
    path.write_text(text.replace('"seconds": 2.0', '"seconds": 1.0'))
    with pytest.raises(DataError, match="checksum"):
        read_cell(path)
    path.write_text(text[: len(text) // 2])
    with pytest.raises(DataError, match="not a whole cell"):
        read_cell(path)
    problem = open_problem(study, dataset, 1)
    write_cell(path, problem, "dmpnn", Outcome(problem.table.y[problem.rows("test"), 0], {}, 1.0))
    with pytest.raises(DataError, match="another split"):
        scores(study, tmp_path, dataset, "dmpnn")


def test_the_paired_interval_is_students_and_the_verdict_knows_the_direction(rng: np.random.Generator) -> None:
    first, second = rng.normal(1, 0.1, 5), rng.normal(2, 0.1, 5)
    found = paired(first, second, get_metric("rmse"))
    expected = stats.ttest_rel(first, second).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert found.verdict == "better"
    assert paired(first, second, get_metric("roc_auc")).verdict == "worse"
    assert paired(second, first, get_metric("roc_auc")).verdict == "better"
    assert paired(first, first[::-1], get_metric("rmse")).verdict == "not told apart"
    assert paired(first, first, get_metric("rmse")).verdict == "not told apart"

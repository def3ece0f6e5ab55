"""``cv`` estimates the error on repeated folds; ``final`` learns all rows and keeps the scores of the split."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import molgraph
from molgraph.auxiliary.knn import NearestNeighbours
from molgraph.base.errors import UsageError
from molgraph.base.seeds import derive
from molgraph.data.splits import repeated_kfold
from molgraph.data.table import Table

OPTIONS = {"model": "knn", "split": "random", "threads": 1}


@pytest.fixture(scope="module")
def table() -> Table:
    rng = np.random.default_rng(0)
    smiles = ["C" * (1 + i % 9) + "ON"[i % 2] + "C" * (i // 9 % 8) for i in range(90)]
    y = [len(s) + rng.normal() * 0.3 for s in smiles]
    return molgraph.read_table({"smiles": [*smiles, "not a molecule"], "y": [*y, 1.0]}, targets=["y"])


def train(table: Table, **options: Any) -> Any:
    return molgraph.train(table, **{**OPTIONS, **options})


def test_the_estimate_is_that_of_folds_made_by_hand(table: Table, tmp_path: Path) -> None:
    result = train(table, cv="4x5")
    assert result.model.card.recipe["split"]["cv"] == "4x5"
    clean = table.take(np.flatnonzero(table.ok))
    wide = []
    for split in repeated_kfold(clean, 4, 5, "random", derive(0, "cv") % 2**32):
        made = NearestNeighbours().fit(clean.take(split.train))
        judged = clean.take(split.test)
        error = made.predict(judged).value[:, 0] - judged.y[:, 0]  # type: ignore[index]
        wide.append(float(np.sqrt(np.mean(error**2))))
    found = result.cv.ranking("y", "rmse")
    own = result.cv.scores.query("method == 'knn' and metric == 'rmse'")["value"].to_numpy()
    assert own == pytest.approx(wide, abs=1e-12)
    row = found.table.loc["knn"]
    half = stats.t.ppf(0.975, 19) * np.std(wide, ddof=1) * np.sqrt(1 / 20 + 1 / 4)  # Nadeau and Bengio
    assert [row["mean"], row["low"], row["high"]] == pytest.approx(
        [np.mean(wide), np.mean(wide) - half, np.mean(wide) + half]
    )
    assert found.verdict("knn", "mean") == "better"
    assert result.cv.rows == 90 and "over 4 x 5 folds of 90 rows (random); better than mean" in result.verdict
    assert "over 4 x 5 folds" in result.model.card.notes[-1]
    page = result.report(tmp_path / "r.html").read_text()
    assert "Repeated cross-validation" in page and "sd of folds" in page


def test_the_kept_model_and_its_scores_are_those_without_folds(table: Table) -> None:
    plain, folds = train(table), train(table, cv="3")
    assert folds.scores.equals(plain.scores)
    assert folds.predict(["CCO", "CCCN"]).value.tobytes() == plain.predict(["CCO", "CCCN"]).value.tobytes()


def test_folds_that_were_done_are_not_done_again(table: Table, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fit, fits = NearestNeighbours.fit, [0]

    def odd(self: NearestNeighbours, *args: Any, **more: Any) -> NearestNeighbours:
        fits[0] += 1
        if fits[0] == stop:
            raise KeyboardInterrupt
        return fit(self, *args, **more)

    monkeypatch.setattr(NearestNeighbours, "fit", odd)
    stop = 5
    with pytest.raises(KeyboardInterrupt):
        train(table, cv="2x3", workdir=tmp_path)
    stop, fits[0] = -1, 0
    again = train(table, cv="2x3", workdir=tmp_path)
    assert fits[0] == 2 + 1, "two folds, and the kept model"
    assert again.cv.scores.equals(train(table, cv="2x3").cv.scores)


def test_final_learns_all_rows_and_the_card_says_whose_scores_it_has(table: Table, tmp_path: Path) -> None:
    plain, final = train(table), train(table, final=True)
    assert final.scores.equals(plain.scores), "the error that is printed is that of the split before"
    assert final.model.card.scores == plain.model.card.scores and not plain.model.card.estimate
    loaded = molgraph.load(final.save(tmp_path / "f.mgm"))
    assert "trained on 72 rows, on 9 test rows of the split random" in loaded.card.estimate
    assert "learned from 90 rows, the test rows among them" in loaded.card.estimate and loaded.summary()["estimate"]
    by_hand = NearestNeighbours().fit(table.take(np.flatnonzero(table.ok)))
    asked = final.test
    assert final.predict(list(asked.smiles)).value == pytest.approx(by_hand.predict(asked).value, abs=1e-12)
    assert not np.allclose(plain.predict(list(asked.smiles)).value, by_hand.predict(asked).value)
    assert set(loaded.trained_on) > set(plain.model.trained_on)
    assert "learned from 90 rows" in final.report(tmp_path / "r.html").read_text()


def test_a_network_is_stopped_by_the_same_rows_and_the_choice_is_made_before(table: Table) -> None:
    small = {"model": "gin", "epochs": 2, "params": {"d_hidden": 8}}
    plain, final = train(table, **small), train(table, **small, final=True)
    assert "learned from 81 rows, and stopped by 9" in final.model.card.estimate.replace(", the test rows", "")
    assert final.choice.sentence == plain.choice.sentence
    assert final.best_model.kind == plain.best_model.kind and final.best_model.card.estimate
    assert final.baseline is not None and final.baseline.card.estimate


def test_what_has_no_folds_says_so(table: Table) -> None:
    for wrong in ("5x1", "x5", "abc", "0x5", "5x5x5"):
        with pytest.raises(UsageError, match="5x5"):
            train(table, cv=wrong)
    with pytest.raises(molgraph.MolgraphError, match="has no folds"):
        train(table, cv="5x5", split="stratified/deepchem")
    assert "over 1 x 3 folds" in train(table, cv="3", fractions=(0.9, 0.1, 0.0)).verdict

"""Trials of every compressor: the same targets, every row kept, the source as it was, the same result twice."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import molgraph
from molgraph.base.errors import LabelError
from molgraph.base.parts import make_part
from molgraph.base.registry import get, names
from molgraph.compress.compress import compress
from molgraph.compress.compressor import Compressor
from molgraph.compress.rows import split_rows
from molgraph.train.model import Model
from tests.tiny import series

SMILES = ["CC(=O)Nc1ccccc1Cl", "C(C", "C", ""]


def how(name: str) -> str:
    settings = ", ".join(f"{key}={value}" for key, value in get("compressor", name).small.items())
    return f"{name}({settings})"


@pytest.fixture(scope="module")
def sources() -> dict[str, Model]:
    """A quickly trained model for each."""
    wanted = {get("compressor", name).source for name in names("compressor")}
    return {
        text: molgraph.train(series(80), model=text, baseline=False, split="random", epochs=1).model for text in wanted
    }


@pytest.mark.parametrize("name", names("compressor"))
class TestEveryCompressor:
    def test_a_model_with_the_same_targets_that_loses_no_row(
        self, name: str, sources: dict[str, Model], tmp_path: Path
    ) -> None:
        source = sources[get("compressor", name).source]
        before = source.predict(SMILES).value
        found = compress(source, series(80), how(name))
        assert [t.name for t in found.model.targets] == [t.name for t in source.targets]
        np.testing.assert_array_equal(source.predict(SMILES).value, before)
        kept = molgraph.load(found.save(tmp_path / "small.mgm"))
        np.testing.assert_allclose(kept.predict(SMILES).value, found.predict(SMILES).value, rtol=1e-6)
        assert len(kept.predict(SMILES)) == 4 and np.isfinite(kept.predict(SMILES).value[0]).all()
        assert found.frame["bytes"].gt(0).all() and found.frame["molecules_per_second"].gt(0).all()
        assert "bytes" in repr(found) and found._repr_html_()

    def test_it_does_the_same_twice_and_has_settings(self, name: str, sources: dict[str, Model]) -> None:
        made = make_part("compressor", how(name))
        assert isinstance(made, Compressor) and type(made).__doc__
        source = sources[get("compressor", name).source]
        one, two = (compress(source, series(80), how(name)).predict(SMILES).value for _ in range(2))
        np.testing.assert_array_equal(one, two)

    def test_a_table_without_labels_is_refused(self, name: str, sources: dict[str, Model]) -> None:
        source = sources[get("compressor", name).source]
        with pytest.raises(LabelError, match="label"):
            compress(source, series(4), how(name))


def test_a_source_without_training_molecules_makes_a_model_without_them() -> None:
    options = {"model": "linear", "baseline": False, "split": "random"}
    source = molgraph.train(series(80), private=True, **options).model
    found = compress(source, series(160), "born_again(student=linear)").model
    assert source.confidence is not None and source.confidence.references is None
    assert found.confidence is not None and found.confidence.references is None
    plain = compress(molgraph.train(series(80), **options).model, series(160), "born_again(student=linear)").model
    assert plain.confidence is not None and plain.confidence.references is not None


@pytest.mark.parametrize(("n", "seen"), [(100, 80), (400, 80), (100, 90)])
def test_rows_that_the_source_learnt_from_are_not_held_out(n: int, seen: int) -> None:
    """Off, where fewer than twenty are left, they are, and the new model has a note and no intervals."""
    table = series(n)
    learn, valid, test = split_rows(table, np.arange(n) < seen, 0)
    assert sorted([*learn, *valid, *test]) == [*range(n)] and min(len(valid), len(test)) >= 10
    assert (min(*valid, *test) >= seen) == (n - seen >= 20)


def test_a_source_that_learnt_from_all_rows_is_flattered() -> None:
    source = molgraph.train(series(80), model="linear", baseline=False, split="random").model
    found = compress(source, series(80), "born_again(student=linear)")
    assert found.model.confidence is None and any("flatters" in note for note in found.notes)

"""Valid, unique and novel molecules are counted as by hand."""

from __future__ import annotations

import pytest

import molgraph
from molgraph.base.errors import BadValueError, ConflictError, UnsupportedError
from molgraph.data.table import make_table
from molgraph.generate.generated import judge
from molgraph.train.model import Model
from molgraph.train.training_molecules import distinct, molecule_hashes
from tests.episodes import tiny_language
from tests.tiny import series

DRAWN = ["CCO", "OCC", "", "C1CC", "CCN", "C[C@H](O)F", "C[C@@H](O)F", "CCN.Cl", "c1ccccc1", "C C"]


def test_counts_and_rows() -> None:
    learned = distinct(molecule_hashes(make_table(["CCN", "CC(O)F", "CCCC"])))
    found = judge(DRAWN, learned)
    assert found.valid.tolist() == [True, True, False, False, True, True, True, True, True, False]
    assert found.novel is not None
    assert found.novel.tolist() == [True, True, False, False, False, False, False, False, True, False]
    assert (len(found), found.n_valid, found.n_unique, found.n_novel) == (10, 7, 6, 2)
    assert [bool(reason) for reason in found.reason] == [not valid for valid in found.valid]
    frame = found.to_frame()
    assert list(frame["smiles"]) == DRAWN and list(frame.columns) == ["smiles", "valid", "novel", "reason"]
    assert judge(DRAWN, None).n_novel is None and "novel" not in judge(DRAWN, None).to_frame()
    assert judge([], learned).sentence == "0 drawn: 0 valid (0.0%), 0 unique of those, 0 novel of those"


def test_what_was_learned_from_is_not_novel() -> None:
    smiles = ["C" * n + "O" for n in range(1, 30)] + ["CC(=O)[O-].[Na+]"]
    params = {"d_hidden": 16, "d_embedding": 8}
    model = molgraph.train_generator(smiles, params=params, epochs=1)
    assert judge(["OCC", "CC(=O)O", "CCBr"], model.trained_on).novel.tolist() == [False, False, True]  # type: ignore[union-attr]
    before = model.method.get_params()
    found = molgraph.generate(model, 30, seed=2, temperature=2.0)
    assert model.method.get_params() == before
    assert list(found.smiles) == model.method.set_params(temperature=2.0).sample(30, 2)  # type: ignore[attr-defined]


def test_distinct_draws_have_a_weight_each() -> None:
    model = Model(tiny_language(), targets=())
    found = molgraph.generate(model, 12, seed=1, distinct=True)
    frame = found.to_frame()
    assert frame.columns.tolist() == ["smiles", "valid", "weight", "reason"] and (frame["weight"] > 0).all()
    assert "without replacement" in found.sentence
    assert found.smiles == molgraph.generate(model, 12, seed=1, distinct=True).smiles
    assert "weight" not in molgraph.generate(model, 12).to_frame()
    with pytest.raises(UnsupportedError, match="distinct"):
        molgraph.generate(molgraph.train_generator(series(48), model="ngram"), 12, distinct=True)
    smiles = Model(tiny_language("smiles", max_length=40), targets=())
    with pytest.raises(ConflictError, match="scaffold"):
        molgraph.generate(smiles, 12, distinct=True, scaffold="CC[*:1]")
    with pytest.raises(BadValueError, match="samples"):
        molgraph.generate(model, 0, distinct=True)

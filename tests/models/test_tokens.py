"""The encoder of tokens: its vocabulary, its alphabets and its files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem

from molgraph.base.errors import UsageError
from molgraph.base.registry import get
from molgraph.chem.tokens import alphabet
from molgraph.data.batch import collate
from molgraph.data.featurize_vocabulary import MAX_TOKENS
from molgraph.data.graph_cache import graphs_of
from molgraph.data.table import make_table
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from tests.tiny import series

STEREO = ["C[C@H](N)C(=O)O", "F/C=C/Cl", "C[C@@H]1CC[C@H](O)CC1", "c1ccc2[nH]ccc2c1"]


def fitted(model: str, n: int = 40, **params: Any) -> Any:
    small = {**get("encoder", "tokens").small, "epochs": 2, "threads": 1, "head_width": 8, **params}
    return make_method(model, **small).fit(series(n))


@pytest.mark.parametrize("name", ["smiles", "selfies"])
def test_features_depend_on_the_molecule_and_not_on_its_writing(name: str) -> None:
    one = get("featuriser", name)()
    store = one.featurise(STEREO)
    for seed in range(4):
        texts = [Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(text), 1, randomSeed=seed)[0] for text in STEREO]
        again = one.featurise(texts, spec=store.spec)
        assert again.levels["token"].arrays["code"].tolist() == store.levels["token"].arrays["code"].tolist()
    both = one.featurise(["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O"])
    first, second = np.split(both.levels["token"].arrays["code"], 2)
    assert first.tolist() != second.tolist(), "enantiomers stay apart"


@pytest.mark.parametrize("name", ["smiles", "selfies"])
def test_tokens_are_the_molecule(name: str) -> None:
    one = get("featuriser", name)()
    store = one.featurise(STEREO)
    vocabulary = dict(zip(store.settings.values(), store.settings, strict=True))
    level = store.levels["token"]
    for text, code in zip(STEREO, np.split(level.arrays["code"], level.offsets[1:-1]), strict=True):
        joined = alphabet(name).join([vocabulary[each] for each in code.tolist()])
        assert Chem.CanonSmiles(joined) == Chem.CanonSmiles(text)


def test_a_token_that_training_has_not_seen_says_nothing() -> None:
    one = get("featuriser", "smiles")()
    store = one.featurise(["CCO", "CCN"])
    other = one.featurise(["CBr", "CCl"], spec=store.spec)
    rows = other.tables["token"][other.levels["token"].arrays["code"]]
    assert list(other.status) == ["ok", "ok"] and other.spec == store.spec
    assert sorted(rows.sum(axis=1).tolist()) == [0, 0, 1, 1], "C is known, Br and Cl are not"
    many = one.featurise([f"[{i}CH4]" for i in range(12, 12 + MAX_TOKENS + 50)])
    assert len(many.settings) <= MAX_TOKENS


@pytest.mark.parametrize(
    "model", ["tokens(sequence=s4, tokens=selfies)", "tokens(sequence=gru)", "tokens(tokens=smiles_characters)"]
)
def test_a_file_reads_the_alphabet_and_the_vocabulary_that_it_learned(model: str, tmp_path: Path) -> None:
    method, new = fitted(model), make_table(["CCBr", "C1CC", "CC(C)CO", "[Na+].[Cl-]"])
    before = method.predict(new)
    path = Model(method, targets=series(2).targets).save(tmp_path / "a.mgm")
    assert verify(path).largest_gap < 1e-5
    again = load_model(path).method.predict(new)
    np.testing.assert_allclose(again.value, before.value, rtol=1e-5)
    assert list(before.status) == ["ok", "unreadable", "ok", "ok"]


def test_a_store_of_other_rows_gives_no_vocabulary(tmp_path: Path) -> None:
    whole, part = make_table(["CCO", "CCBr", "CCCl"]), make_table(["CCO"])
    for table, expected in ((whole, {"C", "O", "Br", "Cl"}), (part, {"C", "O"})):
        made = graphs_of(table, table.entity("molecule"), get("featuriser", "smiles")(), cache=tmp_path)
        assert set(made.store.settings) == expected


@pytest.mark.parametrize("tokens", ["v2", "residues", "selfie", 5])
def test_what_gives_no_tokens_of_molecules_is_refused(tokens: Any) -> None:
    with pytest.raises(UsageError, match="token" if tokens == "v2" else str(tokens)):
        make_method("tokens", tokens=tokens).check_network()


def test_one_encoder_reads_molecules_and_proteins_with_their_own_tokens() -> None:
    encoder = get("encoder", "tokens")
    assert encoder.featuriser("molecule", {"tokens": "selfies"}) == "selfies"
    assert encoder.featuriser("sequence", {"tokens": "selfies"}) == "residues"
    store = get("featuriser", "residues")().featurise(["MKTAYIAK", "GIVEQ"])
    torch.manual_seed(0)
    one = encoder(store.spec, sequence="lstm", max_tokens=5).eval()
    whole = one(collate(store, np.arange(2))).graphs
    short = get("featuriser", "residues")().featurise(["MKTAY", "GIVEQ"])
    torch.testing.assert_close(one(collate(short, np.arange(2))).graphs, whole)

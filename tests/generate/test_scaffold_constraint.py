"""A language model that keeps a scaffold: what it writes, with which probabilities, and what it refuses."""

from __future__ import annotations

import functools
from collections import Counter

import numpy as np
import pytest
import torch
from rdkit import Chem

import molgraph
from molgraph.base.errors import BadValueError, CellError, UnsupportedError
from molgraph.chem.open_points import read_scaffold
from molgraph.chem.smiles import why_unreadable
from molgraph.data.table import make_table
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.policy import Policy
from molgraph.generate.scaffold_constraint import ScaffoldConstraint, scaffold_kept
from molgraph.train.model import Model

RINGS = ("c1ccccc1", "c1ccncc1", "C1CCNCC1", "C1CC1", "c1ccc2ccccc2c1")
GROUPS = ("C", "CC", "CO", "O", "N", "F", "CC(=O)N", "CN(C)C", "OC(=O)", "C(F)(F)", "CC(C)", "C1CC1")
CORPUS = [
    text
    for ring in RINGS
    for group in GROUPS
    for link in ("", "C")
    for text in Chem.MolToRandomSmilesVect(Chem.MolFromSmiles(f"{group}{link}{ring}"), 4, 1)
]


@functools.cache
def model() -> LanguageGenerator:
    made = LanguageGenerator(d_embedding=16, d_hidden=48, n_layers=1, max_length=40, epochs=8, batch_size=16,
                             learning_rate=1e-2, threads=1)  # fmt: skip
    return made.fit(make_table(CORPUS))


@pytest.mark.parametrize(
    "scaffold",
    ["c1ccc([*:1])cc1", "*c1ccccc1", "N([*:1])Cc1ccc([*:2])cc1", "C1CN(*)CCN1*", "C(C[*])=C=*",
     "c1ccccc1[*:1].[*:1]C1CC1N", "O=C(O)c1ccc([*:1])cc1.[*:1]c1ccncc1"],
)  # fmt: skip
def test_every_molecule_is_the_scaffold_with_changes_at_its_open_points(scaffold: str) -> None:
    found = molgraph.generate(Model(model(), targets=()), 100, seed=1, scaffold=scaffold)
    valid = [text for text, ok in zip(found.smiles, found.valid, strict=True) if ok]
    read = read_scaffold(scaffold)
    assert len(valid) >= 3 and all(map(read.is_in, valid)) and model().constraint is None
    assert found.smiles == molgraph.generate(Model(model(), targets=()), 100, seed=1, scaffold=scaffold).smiles


def test_draws_have_the_probabilities_of_the_tokens_that_may_come() -> None:
    with scaffold_kept(model(), "C1CC1*"):
        policy = Policy(model())
    with policy.at_work():
        codes = policy.draw(3000, seed=2)
        texts = policy.texts(codes)
        common = [text for text, _ in Counter(text for text in texts if text).most_common(8)]
        encoded = [row for row in policy.encode(common) if row is not None]
        tokens = policy.tokens(encoded)
    assert len(encoded) == len(common)
    assert (tokens.log_p[:, :5] == 0).all(), "the scaffold's own tokens are certain"
    share = tokens.total.exp().detach().numpy()
    drawn = np.array([texts.count(text) for text in common]) / len(texts)
    assert (np.abs(share - drawn) < 4 * np.sqrt(share / len(texts))).all() and share.sum() > 0.2
    plain = Policy(model()).encode(common)
    assert Policy(model()).log_prob([row for row in plain if row is not None]).max() < np.log(share).max()


def test_masks_agree_with_draws_and_a_text_without_the_scaffold_is_no_text_of_it() -> None:
    with scaffold_kept(model(), "C1CC1*.*c1ccccc1"):
        policy = Policy(model())
        made = [text for text in model().sample(60, 3) if text]
    codes = policy.encode(made)
    assert made and all(row is not None for row in codes)
    with torch.inference_mode():
        total = policy.tokens([row for row in codes if row]).total
    assert torch.isfinite(total).all()
    assert policy.encode(["CCc1ccccc1", "C1CC1c1ccccc1"]) == [None, None]
    assert not any(map(why_unreadable, made)), "a linker ends where the whole is a molecule"


def test_a_search_keeps_the_scaffold() -> None:
    found = molgraph.optimise(Model(model(), targets=()), "qed", search="reinvent", budget=30, batch=16, compare=False,
                              scaffold="c1ccc([*:1])cc1", params={"replay": 4})  # fmt: skip
    assert len(found) >= 20 and all(map(read_scaffold("c1ccc([*:1])cc1").is_in, found.frame["smiles"]))


def test_what_is_no_scaffold_is_refused_in_words() -> None:
    vocabulary = model().ready().vocabulary
    for scaffold, kind, words in (
        ("c1ccccc1", BadValueError, "no open point"),
        ("c1ccc(", CellError, "cannot be read"),
        ("[*:1]", BadValueError, "not the end of one bond"),
        ("C*C", BadValueError, "not the end of one bond"),
        ("C*.C*.C*", BadValueError, "3 parts with 3 open points"),
        ("C[Si](C)C*", UnsupportedError, r"token '\[Si\]'"),
        ("C" * 40 + "*", BadValueError, "41 tokens"),
    ):
        with pytest.raises(kind, match=words):
            ScaffoldConstraint(scaffold, vocabulary, 40)
    with pytest.raises(UnsupportedError, match="language models"), scaffold_kept(object(), "C*"):
        pass


def test_where_all_draws_miss_the_bound_molecules_near_the_start_are_scored() -> None:
    lead = "CC(=O)NC1CCN(Cc2ccccc2)CC1"  # the model writes nothing like it
    found = molgraph.optimise(Model(model(), targets=()), "qed", search="reinvent", budget=20, batch=16, start=lead,
                              similarity=0.5, compare=False)  # fmt: skip
    assert len(found) == 20 and (found.frame["similarity"] >= 0.5).all()

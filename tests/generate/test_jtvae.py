"""The junction-tree generator on corpora as they come, and on one that it can learn by heart."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.chem.identity import identities_of
from molgraph.data.table import make_table
from molgraph.generate.jtvae import JTVAE
from tests.tiny import series

ODD = [
    "[Na+].[Cl-]", "C", "[He]", "C1CCCCCCCCCCCCCCCCC1", "[Fe+2]", "CC(=O)O[Cu]OC(C)=O", "*CC", "CCO", "OCC", "CCO",
    "not a molecule", "", "c1ccccc1.O", "C[Si](C)(C)C", "[2H]C([2H])([2H])O", "C1CC2CCC1C2", "F[P-](F)(F)(F)(F)F",
    "O=C1C=CC(=O)C=C1", "C[C@H]1CC[C@@H](C)CC1", "N" * 401,
]  # fmt: skip


def test_a_corpus_as_it_comes_is_learned_from_and_each_row_has_a_vector_or_a_reason() -> None:
    table = make_table(ODD)
    made = JTVAE(d_hidden=8, d_latent=4, epochs=2, batch_size=4).fit(table)
    points = made.encode(table)
    left = {ODD[k]: points.reason[k] for k in np.flatnonzero(~points.ok)}
    none = {"[Na+].[Cl-]", "*CC", "[He]", "[Fe+2]", "CC(=O)O[Cu]OC(C)=O", "F[P-](F)(F)(F)(F)F"}
    assert none | {"not a molecule", "", "c1ccccc1.O", "N" * 401} == {*left}
    assert "no carbon" in left["[Na+].[Cl-]"] and "attachment point" in left["*CC"]
    assert np.isfinite(points.mean[points.ok]).all() and np.isnan(points.mean[~points.ok]).all()
    assert np.array_equal(points.mean[ODD.index("CCO")], points.mean[ODD.index("OCC")]), "however it is written"
    notes = " ".join(made.notes)
    assert "2 (unreadable)" in notes and "1 (several molecules in one (a salt or mixture)" in notes
    texts = made.sample(40, 1)
    assert all(one.written for one in identities_of(texts))


def test_vectors_do_not_depend_on_the_rows_beside() -> None:
    made = JTVAE(d_hidden=8, d_latent=4, epochs=1).fit(series(40))
    whole, alone = made.encode(series(8)), made.encode(series(1, 5))
    np.testing.assert_allclose(whole.mean[5], alone.mean[0], rtol=1e-4, atol=1e-5)
    outside = made.encode(make_table(["C1CC[Se]C1"]))
    assert "outside the vocabulary: a ring C1CC[Se]C1" in outside.reason[0]


def test_draws_without_the_check_leave_the_generator_as_it_was() -> None:
    made = JTVAE(d_hidden=8, d_latent=4, epochs=1, max_nodes=10).fit(series(40))
    checked = made.sample(20, 3)
    assert len(made.sample_unchecked(20, 3)) == 20 and made.check_chemistry
    assert made.sample(20, 3) == checked and all(checked)


DISTINCT = [
    "CCO", "c1ccccc1O", "CC(C)(C)N", "C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "c1ccc2[nH]ccc2c1", "C1CCOC1CN",
    "O=C1CCCN1", "CC(=O)Nc1ccc(F)cc1", "c1ccncc1CCl", "F/C=C/C", "F/C=C\\C", "CS(=O)(=O)N", "C1CC2CCC1C2", "OCC(O)CO",
    "N#Cc1ccco1",
]  # fmt: skip


@pytest.mark.slow
def test_a_small_corpus_is_learned_by_heart_stereochemistry_too() -> None:
    table = make_table(DISTINCT)
    how = {"d_hidden": 48, "d_latent": 16, "batch_size": 8, "learning_rate": 5e-3, "beta": 0.0, "warmup": 0.0}
    made = JTVAE(epochs=120, temperature=0.05, **how).fit(table)
    back = made.decode(made.encode(table).mean)
    assert sum(a == b.written for a, b in zip(back, identities_of(DISTINCT), strict=True)) >= 15
    curves = made.curves
    assert curves is not None and curves["train_label"].iloc[-1] < 0.1 * curves["train_label"].iloc[0]
    assert {"train_topology", "train_attachment", "train_stereo", "train_kl"} <= {*curves}

"""The curated edition: every row is kept, merged or out with a reason; nothing contradictory or doubled is left."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from molgraph.base.contracts import Target
from molgraph.base.errors import MismatchError, UnknownNameError
from molgraph.cli.main import app
from molgraph.data.audit import audit
from molgraph.data.cards import card, card_names
from molgraph.data.curate import RULES, curate, identify
from molgraph.data.datasets import curated, load_dataset
from molgraph.data.table import Table, make_table
from pipelines.cards.audit import curatable, curated_edition, summarise

SMILES = [
    "CCO",
    "OCC",
    "CC(=O)O",
    "CC(=O)[O-].[Na+]",
    "C[C@H](F)Cl",
    "C[C@@H](F)Cl",
    "CC(F)Cl",
    "C(C",
    "",
    "[Na+].[Cl-]",
]
RULE = "c1"


def table_of(picks: list[int], values: list[list[float]], kind: str = "binary") -> Table:
    targets = tuple(Target(f"t{j}", kind) for j in range(len(values[0])))
    return make_table([SMILES[i] for i in picks], targets=targets, y=values)


rows = st.lists(
    st.tuples(st.integers(0, 9), st.tuples(*[st.sampled_from([0.0, 1.0, np.nan])] * 2)), min_size=1, max_size=12
)


@given(rows)
@settings(max_examples=25)
def test_every_row_is_kept_or_has_a_reason(drawn: list[tuple[int, tuple[float, float]]]) -> None:
    table = table_of([i for i, _ in drawn], [list(y) for _, y in drawn])
    made = curate(table, RULE)
    gone = made.taken_out[made.taken_out["action"].isin(["out", "merged"])]
    assert sorted([*made.table.ids, *gone["id"]], key=int) == table.ids.tolist()
    assert (made.taken_out["reason"] != "").all()
    assert set(gone.loc[gone["action"] == "merged", "kept_as"]) <= set(made.table.ids)
    found = summarise(made.table)
    assert (found.unreadable, found.missing, found.salts, found.no_carbon) == (0, 0, 0, 0)
    assert found.parent.groups == 0
    assert not np.isnan(made.table.y).all(axis=1).any()
    assert sum(made.counts.values()) == len(made.taken_out)


@given(rows)
@settings(max_examples=25)
def test_a_second_time_changes_nothing(drawn: list[tuple[int, tuple[float, float]]]) -> None:
    once = curate(table_of([i for i, _ in drawn], [list(y) for _, y in drawn]), RULE).table
    twice = curate(once, RULE)
    assert twice.taken_out.empty
    assert twice.table.smiles.tolist() == once.smiles.tolist()
    np.testing.assert_array_equal(twice.table.y, once.y)


def test_replicates_of_values_become_their_mean_within_the_tolerance() -> None:
    table = table_of([0, 1, 2, 3], [[1.0], [1.4], [1.0], [1.6]], "regression")
    made = curate(table, RULE, tolerance=0.5)
    assert made.table.ids.tolist() == ["0"]
    np.testing.assert_allclose(made.table.y, [[1.2]])
    assert made.counts == {"merged: replicate": 1, "out: contradictory": 2}
    assert len(curate(table, RULE, tolerance=0.6).table) == 2


def test_each_target_has_a_tolerance_of_its_own_and_none_is_none() -> None:
    table = table_of([0, 1, 2, 3], [[1.0, 5.0, 1.0], [1.4, 5.1, 1.0], [1.0, 5.0, 1.0], [1.0, 5.0, 1.1]], "regression")
    made = curate(table, RULE, tolerance={"t0": 0.5, "t1": 0.01})
    np.testing.assert_allclose(made.table.y, [[1.2, np.nan, 1.0], [1.0, 5.0, np.nan]])
    assert made.counts == {"label out: contradictory": 2, "merged: replicate": 2}
    classes = curate(table_of([0, 1], [[0.0], [1.0]]), RULE, tolerance=5.0)
    assert len(classes.table) == 0, "a tolerance is for values, not for classes"


def test_values_that_are_no_repeated_measurements_are_not_curated() -> None:
    assert [name for name in card_names() if card(name).edition and not curatable(card(name))] == []
    for name in ("qm7", "qm8", "qm9", "pdbbind"):  # computed, or one ligand with several proteins
        assert not card(name).edition
    for name in ("esol", "lipo", "adme_hlm", "freesolv"):
        assert set(card(name).tolerances) == {t.name for t in card(name).targets}


@pytest.mark.slow
def test_another_rdkit_makes_an_unverified_edition_with_a_word_of_warning(caplog: pytest.LogCaptureFixture) -> None:
    raw = load_dataset("chembl2321810")
    stated = raw.card.edition["c1"]
    good = curated(raw, "c1")
    assert good.verified
    assert not caplog.records
    old = stated.model_copy(update={"rdkit": "2020.03.1", "hash": "0" * 64})
    other = replace(raw, card=raw.card.model_copy(update={"edition": {"c1": old}}))
    made = curated(other, "c1")
    assert not made.verified
    assert made.hash == good.hash
    assert "chembl2321810@c1 is unverified" in caplog.text
    assert "2020.03.1" in caplog.text
    here = stated.model_copy(update={"hash": "0" * 64})
    with pytest.raises(MismatchError, match=f"{good.hash}.*{'0' * 64}"):
        curated(replace(raw, card=raw.card.model_copy(update={"edition": {"c1": here}})), "c1")


def test_one_contradictory_label_of_several_goes_alone() -> None:
    made = curate(table_of([0, 1], [[1.0, 0.0], [0.0, 0.0]]), RULE)
    np.testing.assert_array_equal(made.table.y, [[np.nan, 0.0]])
    assert made.taken_out[["action", "target"]].to_numpy().tolist() == [["label out", "t0"], ["merged", ""]]


def test_stereo_isomers_are_different_molecules_and_salts_are_not() -> None:
    made = curate(table_of([2, 3, 4, 5, 6], [[1.0]] * 5), RULE)
    assert made.table.smiles.tolist() == [SMILES[i] for i in (2, 4, 5, 6)]


def test_an_unknown_rule_names_the_known_ones() -> None:
    with pytest.raises(UnknownNameError, match=r"(?s)c9.*c1"):
        curate(table_of([0], [[1.0]]), "c9")


def test_the_summary_agrees_with_the_audit_of_tables() -> None:
    table = table_of(list(range(10)) * 2, [[float(i % 3 == 0)] for i in range(20)])
    found, listed = summarise(table), audit(table)
    assert found.distinct == listed.n_molecules
    for count, kind in (
        (found.unreadable, "unreadable"),
        (found.missing, "missing"),
        (found.parent.rows, "duplicate"),
        (found.parent.contradictory_rows, "contradiction in t0"),
        (found.undefined_stereo, "undefined stereo"),
        (found.salts, "salt or mixture"),
    ):
        assert count == len(listed.finding(kind)), kind


def test_what_stands_on_the_cards_is_what_the_issue_of_the_field_is() -> None:
    bbbp, clintox, bace = (card(name).audit for name in ("bbbp", "clintox", "bace"))
    assert bbbp is not None and clintox is not None and bace is not None
    assert (bbbp.unreadable, bbbp.written.contradictory_groups) == (11, 10)
    assert (clintox.written.groups, clintox.written.contradictory_groups) == (19, 19)
    assert int(100 * bace.undefined_centres / bace.rows) == 71


@pytest.mark.data
def test_a_set_of_graphs_is_audited_in_the_shell_too() -> None:
    result = CliRunner().invoke(app, ["data", "audit", "mutag"])
    assert result.exit_code == 0
    assert "188 different graphs in 188 rows" in result.output


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "chembl2321810",
        *(pytest.param(n, marks=pytest.mark.data) for n in ("esol", "freesolv", "bbbp", "tox21", "mutag")),
    ],
)
def test_the_audit_on_a_card_is_what_it_gives_now(name: str) -> None:
    data = load_dataset(name)
    who = identify(data.table) if data.card.entity == "molecule" else None
    assert data.card.audit == summarise(data.table, who=who)
    if data.card.edition:
        assert data.card.edition["c1"] == curated_edition(data, who=who)
        assert data.card.edition["c1"].rule == RULES["c1"]
    else:
        assert data.card.entity != "molecule"


def test_replicates_are_averaged_by_their_weights() -> None:
    smiles, y = ["CCO", "OCC", "CCN", "NCC", "CCC", "C(C)C"], [1.0, 3.0, 5.0, 9.0, 2.0, 4.0]
    weights = np.array([3.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    table = replace(make_table(smiles, targets=(Target("y"),), y=y), weights=weights)
    made = curate(table).table
    assert made.y[:, 0].tolist() == [1.5, 5.0, 3.0] and made.weights.tolist() == [4.0, 1.0, 0.0]
    assert curate(table, replicates="median").table.y[:, 0].tolist() == [2.0, 5.0, 3.0]
    assert curate(table, replicates="drop").table.y[:, 0].tolist() == [5.0]  # a row of weight 0 contradicts nothing

"""The stratified splitters: groups stay whole, and every part gets its share of every class where groups allow it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from molgraph.base.contracts import Target
from molgraph.base.errors import MissingOptionError
from molgraph.chem.identity import molecule_keys
from molgraph.chem.scaffold import scaffolds
from molgraph.cli.main import app
from molgraph.data.splits import few_of_a_class, kfold, split_table
from molgraph.data.splits.assign import fill_evenly
from molgraph.data.table import Table, make_table

SHARES = [(0.8, 0.1, 0.1), (0.6, 0.2, 0.2), (0.9, 0.0, 0.1), (0.34, 0.33, 0.33), (0.2, 0.2, 0.2, 0.2, 0.2)]
GROUPS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3)).filter(any), min_size=3, max_size=40)


@settings(max_examples=200, deadline=None)
@given(groups=GROUPS, shares=st.sampled_from(SHARES), seed=st.integers(0, 5))
def test_each_part_has_both_classes_where_as_many_groups_have_them(groups, shares, seed):
    classes = np.array(groups)
    counts = np.column_stack([classes.sum(axis=1), classes])
    part_of = fill_evenly(counts, shares, seed)
    assert part_of.tolist() == fill_evenly(counts, shares, seed).tolist()
    asked = np.flatnonzero(shares)
    assert len(part_of) == len(groups) and set(part_of) <= set(asked)
    if ((classes > 0).sum(axis=0) >= len(asked)).all():
        assert all((classes[part_of == part].sum(axis=0) > 0).all() for part in asked)


@settings(max_examples=30, deadline=None)
@given(
    groups=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)), min_size=200, max_size=300),
    shares=st.sampled_from(SHARES),
)
def test_shares_are_close_where_groups_are_small(groups, shares):
    classes = np.array(groups)
    counts = np.column_stack([classes.sum(axis=1), classes])
    part_of = fill_evenly(counts, shares, 0)
    for part, share in enumerate(shares):
        off = counts[part_of == part].sum(axis=0) - share * counts.sum(axis=0)
        assert (np.abs(off) <= 2 * counts.max(axis=0)).all(), (part, off)


@pytest.fixture(scope="module")
def hits() -> Table:
    """600 rows of 4% hits, a fifth of them of one scaffold; a second target is known of every other row."""
    rng = np.random.default_rng(0)
    rings = ["c1ccccc1", "C1CCCCC1", "c1ccncc1", "C1CCNCC1", "c1ccoc1", "C1CC1", "c1ccsc1", "C1CCOC1"]
    smiles = [f"{'C' * (1 + i // 5)}{'ONSFI'[i % 5]}c1ccccc1" for i in range(120)]
    smiles += [f"{rings[i % 8]}{'C' * (1 + i // 64)}{rings[(i // 8) % 8]}" for i in range(480)]
    y = np.stack([rng.random(600) < 0.04, rng.random(600) < 0.3], axis=1).astype(float)
    y[::2, 1] = np.nan
    return make_table(smiles, targets=(Target("hit", "binary"), Target("other", "binary")), y=y)


@pytest.mark.parametrize("splitter", ["scaffold/stratified", "random/stratified"])
def test_the_splitters_share_every_class_and_leak_nothing(splitter: str, hits: Table):
    split = split_table(hits, splitter, seed=1)
    assert split.hash == split_table(hits, splitter, seed=1).hash != split_table(hits, splitter, seed=2).hash
    assert sum(split.sizes.values()) == 600 and split.splitter == splitter and not split.leaks
    for j in range(2):
        for c in (0, 1):
            total = int((hits.y[:, j] == c).sum())
            for part, share in (("train", 0.8), ("valid", 0.1), ("test", 0.1)):
                assert abs((hits.y[getattr(split, part), j] == c).sum() - share * total) <= 0.2 * share * total + 2
    parents = molecule_keys(hits.smiles, stereo=False).values
    keys = scaffolds(parents).values if splitter.startswith("scaffold") else parents
    assert not set(keys[split.train]) & set(keys[split.test])
    for fold in kfold(hits, 5, splitter):
        assert abs((hits.y[fold.test, 0] == 1).sum() - (hits.y[:, 0] == 1).sum() / 5) <= 3


def test_a_table_without_classes_is_refused_with_what_to_do():
    table = make_table(["C" * n for n in range(1, 30)], targets=(Target("y"),), y=np.arange(29.0))
    with pytest.raises(MissingOptionError) as error:
        split_table(table, "scaffold/stratified")
    assert "scaffold/balanced" in error.value.hint


def test_a_part_with_few_of_a_class_is_said_with_the_splitter_that_balances(hits: Table, tmp_path: Path):
    notes = few_of_a_class(hits, split_table(hits, "scaffold/balanced"))
    assert notes and notes[-1].endswith("; the split scaffold/stratified gives each part its share")
    assert "1 row of the rarer class of hit (fewer than 10: 2 targets)" in notes[0]
    assert "gives each part" not in "".join(few_of_a_class(hits, split_table(hits, "scaffold/stratified")))
    rows = "".join(f"{s},{y:.0f}\n" for s, y in zip(hits.smiles, hits.y[:, 0], strict=True))
    (tmp_path / "hits.csv").write_text(f"smiles,hit\n{rows}", encoding="utf-8")
    result = CliRunner().invoke(app, ["data", "split", str(tmp_path / "hits.csv"), "-t", "hit", "--split", "random"])
    assert result.exit_code == 0 and "the split random/stratified gives each part its share" in result.output

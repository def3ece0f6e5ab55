"""Filling parts and folds with whole groups, and k-fold cross-validation on real molecules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from molgraph.chem.identity import molecule_keys
from molgraph.data.sources.builtin import nci
from molgraph.data.splits import kfold
from molgraph.data.splits.assign import fill_folds, fill_parts
from molgraph.data.table import make_table

OWN = ("random", "scaffold/balanced", "scaffold/generic", "cluster/butina")


def test_large_groups_train_and_small_ones_are_shuffled() -> None:
    sizes = np.array([30, 20, 6, 5, 5] + [1] * 34)
    seen = set()
    for seed in range(5):
        part_of = fill_parts(sizes, (0.8, 0.1, 0.1), seed, balanced=True)
        assert (part_of[:3] == 0).all()  # larger than half of ten rows
        assert np.bincount(part_of, weights=sizes).tolist() == [80, 10, 10]
        seen.add(tuple(part_of))
    assert len(seen) == 5


@given(
    st.lists(st.integers(1, 40), min_size=1, max_size=60),
    st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 9)),
    st.integers(0, 3),
    st.booleans(),
)
def test_parts_are_filled_as_far_as_whole_groups_allow(
    sizes: list[int], shares: tuple[int, int, int], seed: int, balanced: bool
) -> None:
    fractions = tuple(s / sum(shares) for s in shares)
    part_of = fill_parts(np.array(sizes), fractions, seed, balanced=balanced)
    assert set(part_of) <= {k for k in range(3) if fractions[k]}
    filled = np.bincount(part_of, weights=sizes, minlength=3)
    assert filled.sum() == sum(sizes)
    for k in range(3):
        assert filled[k] <= fractions[k] * sum(sizes) + 1 + max(sizes) * (fractions[k] > 0)


@pytest.mark.parametrize("splitter", OWN)
def test_folds_test_every_row_once_and_keep_groups_whole(splitter: str) -> None:
    table = make_table(nci().smiles[::25])
    parents = molecule_keys(table.smiles, stereo=False).values
    splits = kfold(table, 4, splitter, seed=2)
    tested = np.concatenate([s.test for s in splits])
    assert sorted(tested.tolist()) == sorted(set(range(len(table))) - {o.row for o in splits[0].left_out})
    assert len({s.hash for s in splits}) == 4
    for i, split in enumerate(splits):
        assert not set(parents[split.test]) & set(parents[np.concatenate([split.train, split.valid])])
        assert (split.valid == splits[(i + 1) % 4].test).all()
        assert split.params["fold"] == i
    assert len(kfold(table, 2, splitter)[0].valid) == 0


def test_folds_are_even_and_shuffled() -> None:
    folds = fill_folds(np.ones(103, dtype=np.int64), 5, seed=0)
    assert sorted(np.bincount(folds).tolist()) == [20, 20, 21, 21, 21]
    assert (folds != fill_folds(np.ones(103, dtype=np.int64), 5, seed=1)).any()


def test_large_groups_change_their_folds_between_draws() -> None:
    """By the sizes alone, the largest groups would be in the same folds in every repeat."""
    sizes = np.array([90, 60, 50, 40, 30, 20, *[1] * 210])
    drawn = np.stack([fill_folds(sizes, 5, seed) for seed in range(200)])
    assert all(np.bincount(folds, sizes, 5).max() <= 110 for folds in drawn), "as even as whole groups allow"
    same = [(drawn[1:, g] == drawn[:-1, g]).mean() for g in range(len(sizes))]
    assert min(same) > 0.1 and max(same) < 0.3, "chance is 0.2"

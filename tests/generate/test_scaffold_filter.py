"""The scaffold filter of Blaschke et al. 2020: full scaffolds score no more, others and poor molecules as before."""

from __future__ import annotations

import numpy as np

from molgraph.generate.rewards.scaffold_filter import ScaffoldFilter


def test_a_full_scaffold_scores_no_more() -> None:
    reward = ScaffoldFilter(size=2, least=0.5)
    reward.begin(None)
    benzenes = ["Cc1ccccc1", "Oc1ccccc1", "Nc1ccccc1"]
    assert reward.adjust([benzenes[0], benzenes[0], benzenes[1]], np.array([0.9, 0.9, 0.6])).tolist() == [0.9, 0.9, 0.6]
    score = np.array([0.8, 0.4, 0.7, np.nan, 0.9])  # the third good one; a poor one; another scaffold; none; met before
    texts = [benzenes[2], "Fc1ccccc1", "CC1CCCCC1", "Clc1ccccc1", benzenes[0]]
    assert np.array_equal(reward.adjust(texts, score), [0.0, 0.4, 0.7, np.nan, 0.0], equal_nan=True)
    reward.begin(None)
    assert reward.adjust([benzenes[2]], np.array([0.8])).tolist() == [0.8]


def test_molecules_without_rings_are_a_scaffold_each_and_scores_may_be_negative() -> None:
    reward = ScaffoldFilter(size=1, least=-2)
    reward.begin(None)
    assert reward.adjust(["CCO", "CCN", "CCC"], np.array([-1.0, -1.5, -3.0])).tolist() == [-1, -1.5, -3]
    assert reward.adjust(["Cc1ccccc1", "Oc1ccccc1"], np.array([-1.0, -1.0])).tolist() == [-1, -3], "the lowest so far"

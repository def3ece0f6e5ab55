"""Weave: its memory, the order of a pair's ends and its parameters; its equations stand in tests/systems."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.base.errors import BadValueError
from molgraph.base.parameters import check_params
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.featurize_rings import MoleculesWithRings
from molgraph.models.weave import Weave
from molgraph.nn.pairs import pairs
from tests.contract.test_encoders import renumbered
from tests.nn.largest import Largest

SMILES = ["c1ccc2ccccc2c1O", "C", "[Na+].[Cl-]", "C12C3C4C1C5C2C3C45", "CC(=O)NC1CC1", "C1CC2CC1C2"]
STORE = MoleculesWithRings().featurise(SMILES)


def a_batch() -> GraphBatch:
    return collate(STORE, np.arange(len(SMILES)))


def encoder(**params: object) -> Weave:
    torch.manual_seed(0)
    return Weave(STORE.spec, d_hidden=8, d_dense=6, **params)


def test_no_tensor_is_as_large_as_all_pairs_of_the_largest_graph_for_each_graph() -> None:
    smiles = [*SMILES * 10, "C" * 90]
    store = MoleculesWithRings().featurise(smiles)
    batch, own = collate(store, np.arange(len(smiles))), encoder()
    with Largest() as seen:
        own(batch).graphs.sum().backward()
    pairs_near = len(pairs(batch, 2).ends)
    width = 2 * max(8, store.spec.width("bond") + 3)
    assert seen.most <= 2 * pairs_near * width < len(smiles) * 90**2 / 5, "it was 8 values for each of these pairs"


def test_batch_norm_does_not_depend_on_which_end_of_a_pair_comes_first() -> None:
    own, batch = encoder().train(), a_batch()
    plain = own(batch).graphs
    for seed in range(2):
        torch.testing.assert_close(own(renumbered(batch, seed)[0]).graphs, plain, rtol=0, atol=1e-4)


def test_graphs_without_rings_told_are_read_and_wrong_parameters_answered() -> None:
    store = featurize(SMILES)
    torch.manual_seed(0)
    assert Weave(store.spec)(collate(store, np.arange(3))).graphs.isfinite().all()
    with pytest.raises(BadValueError, match="depth is 0"):
        check_params(Weave, {"depth": 0}, owner="weave")

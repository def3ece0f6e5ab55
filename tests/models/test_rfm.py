"""RFM: states of bonds follow their atoms, and rounds are refused; its equations stand in tests/systems."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.models.rfm import RFM
from tests.contract.test_encoders import renumbered

SMILES = ["CCO", "C", "[Na+].[Cl-]", "C12C3C4C1C5C2C3C45", "CC(=O)NC1CC1"]


def double_batch() -> GraphBatch:
    batch = collate(featurize(SMILES), np.arange(len(SMILES)))
    return batch.with_level("atom", table=batch["atom"].table.double()).with_level(
        "bond", table=batch["bond"].table.double()
    )


def test_states_of_bonds_follow_their_atoms() -> None:
    torch.manual_seed(0)
    batch = double_batch()
    own = RFM(featurize(SMILES).spec, d_hidden=6).double()
    moved, new = renumbered(batch, 3)
    plain, other = own(batch, rows=True).rows[1].h, own(moved, rows=True).rows[1].h
    place = {ends: k for k, ends in enumerate(zip(moved.source.tolist(), moved.target.tolist(), strict=True))}
    order = [place[ends] for ends in zip(new[batch.source].tolist(), new[batch.target].tolist(), strict=True)]
    torch.testing.assert_close(other[order], plain, rtol=0, atol=1e-9)


def test_fewer_rounds_than_one_are_refused() -> None:
    with pytest.raises(ValueError, match="got 0"):
        RFM(featurize(SMILES).spec, rounds=0)

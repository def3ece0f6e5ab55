"""The layers that the speed pages compare are the same: molgraph's and PyG's give the same values on real molecules."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import torch

from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from tests.contract.test_encoders import SMILES

SPEED = str(Path(__file__).parents[2] / "pipelines" / "speed")


@pytest.fixture(scope="module")
def zoo() -> Iterator[ModuleType]:
    """``pipelines/speed/zoo_pairs.py``, whose folder is in the path of its scripts."""
    sys.path.insert(0, SPEED)
    yield importlib.import_module("zoo_pairs")
    sys.path.remove(SPEED)


@pytest.mark.parametrize("name", ["nnconv", "gin", "gine", "gat", "attentivefp", "mfconv", "graphgps"])
def test_both_sides_are_the_same_network(zoo: ModuleType, name: str) -> None:
    torch.manual_seed(0)
    pair = getattr(zoo, name)()
    store = featurize(SMILES)
    batch = collate(store, np.flatnonzero(store.status == "ok"))
    pair.ours.prepare(batch)
    ours, theirs = pair.ours(batch), pair.theirs(zoo.given(batch))
    assert ours.std() > 0
    torch.testing.assert_close(ours, theirs, rtol=1e-3, atol=1e-3)

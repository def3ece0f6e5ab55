"""enn-s2s: the largest matrix of pairs; its equations stand in tests/systems."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from molgraph.base.errors import UnsupportedError
from molgraph.data.batch import collate
from molgraph.data.featurize_geometry import METHANE, WATER, Geometries
from molgraph.data.graph_values import Geometry
from molgraph.models.enn_s2s import EnnS2S

CARBON = Geometry(np.array([6], np.uint8), np.zeros((1, 3), np.float32))
STORE = Geometries().featurise([WATER, METHANE, CARBON])


def encoder(**params: object) -> EnnS2S:
    torch.manual_seed(0)
    return EnnS2S(STORE.spec, d_hidden=8, d_edge=6, **params).double()


def test_a_molecule_of_too_many_pairs_is_refused_with_the_setting() -> None:
    chain = Geometry(np.full(400, 6, np.uint8), np.arange(1200, dtype=np.float32).reshape(400, 3))
    batch = collate(Geometries().featurise([chain]), np.arange(1))
    with pytest.raises(UnsupportedError, match=r"400 .*max_matrix_gb") as found:
        encoder(max_matrix_gb=0.001).float()(batch)
    assert "lower d_edge" in found.value.hint
    assert encoder().float()(batch).graphs.isfinite().all()

"""Norms against torch's and PyG's layers."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor
from torch_geometric.nn import GraphNorm, PairNorm

from molgraph.base.registry import get
from molgraph.data.batch import collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.nn.graph_norms import Graph, GroupGraph, Pair
from molgraph.nn.norms import Group, Norm
from molgraph.nn.relation import Relation

GRAPH_OF = torch.tensor([0, 0, 0, 2, 2, 3])
MEMBERS = Relation.from_pairs(torch.arange(6), GRAPH_OF, 6, 4)


def rows(d: int) -> Tensor:
    return 3 + 2 * torch.randn(6, d, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def with_weights(norm: Norm) -> Norm:
    """The norm in double precision, none of its weights 0 or 1."""
    generator = torch.Generator().manual_seed(2)
    for parameter in norm.double().parameters():
        parameter.data = torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
    return norm


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_pair_is_pygs(scale: float) -> None:
    torch.testing.assert_close(Pair(8, scale)(rows(8), MEMBERS), PairNorm(scale)(rows(8), GRAPH_OF, 4))


def test_graph_is_pygs() -> None:
    own, peer = with_weights(Graph(8)), GraphNorm(8).double()
    peer.mean_scale.data, peer.weight.data, peer.bias.data = (each.data for each in own.parameters())
    torch.testing.assert_close(own(rows(8), MEMBERS), peer(rows(8), GRAPH_OF, 4))


def test_groups_that_cannot_be_are_refused() -> None:
    for make in (Group, GroupGraph):
        with pytest.raises(ValueError, match="3 groups"):
            make(8, 3)
    with pytest.raises(ValueError, match="8 groups"):
        Group(8, 8)


@pytest.mark.parametrize("name", ["gin", "graphconv", "neural_fingerprint", "pna", "attentivefp", "mpnn"])
def test_batch_norm_counts_atoms_where_rows_stand_for_several(name: str) -> None:
    smiles = ["CC(=O)Oc1ccccc1C(=O)O", "C", "C[C@H](N)C(=O)O", "[Na+].[Cl-]", "C12C3C4C1C5C2C3C45", "CCCCCCCCO"]
    batch = collate(featurize(smiles), np.arange(len(smiles)))
    for level in ("atom", "bond"):
        batch = batch.with_level(level, table=batch[level].table.double())
    torch.manual_seed(0)
    first = get("encoder", name)(MOLECULE_SPEC, d_hidden=8, norm="batch").double().train()
    found = []
    for distinct in (True, False):
        own = copy.deepcopy(first)
        own.distinct = distinct
        rounds = own.rounds_of(batch)
        assert own.shares_rows is distinct and (len(rounds.atom_row) > rounds.readout.n_source) is distinct
        graphs = own(batch).graphs
        (graphs * torch.linspace(-1, 1, graphs.shape[1])).sum().backward()
        found.append([graphs, *(p.grad for p in own.parameters() if p.grad is not None), *own.buffers()])
    assert len(found[0]) == len(found[1])
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("norm", [Graph, Pair, partial(GroupGraph, n_groups=32)])
def test_rows_that_are_alike_are_zero_without_any_rounding(norm: Callable[[int], Norm]) -> None:
    torch.manual_seed(0)
    sizes = torch.tensor([6, 3, 7, 11])
    alike = 100 * torch.rand(4, 32).repeat_interleave(sizes, dim=0)  # as the atoms of benzene are
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), sizes.cumsum(0)])
    members = Relation(torch.arange(27), offsets, 27, 4)
    assert not norm(32)(alike, members).any()


def test_batch_norm_of_shared_rows_has_single_precision_statistics() -> None:
    torch.manual_seed(0)
    h = 20 + torch.randn(200, 8)
    shared = Relation(torch.arange(200).repeat_interleave(2), torch.arange(0, 401, 400), 200, 1)
    made = get("norm", "batch")(8).train()
    with torch.autocast("cpu", torch.bfloat16):
        out = made(h.bfloat16(), shared)
    assert out.dtype == torch.bfloat16 and out.float().mean(0).abs().max() < 5e-3

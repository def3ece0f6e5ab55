"""GROVER: rows that look alike are computed once, at every number of hops, with the gradients of all rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.base.registry import get
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.sources.builtin import nci
from molgraph.nn.hops import atom_hops, bond_hops

table = nci()
SMILES = ["C", "CC", "CC", "C1CCCCC1", "c1ccccc1C", *(str(text) for text in table.smiles[table.ok][:12])]


def double_batch(smiles: list[str]) -> GraphBatch:
    batch = collate(featurize(smiles), np.arange(len(smiles)))
    for level in ("atom", "bond"):
        known = batch[level].table
        assert known is not None
        batch = batch.with_level(level, table=known.double())
    return batch


@pytest.mark.parametrize(("hops", "depth"), [(1, 1), (2, 1), (6, 1), (3, 2)])
def test_distinct_rows_give_the_gradients_of_all_rows(hops: int, depth: int) -> None:
    torch.manual_seed(0)
    batch = double_batch(SMILES)
    encoder = get("encoder", "grover")(featurize(SMILES).spec, d_hidden=8, heads=2, hops=hops, depth=depth).double()
    results: list[list[Tensor | None]] = []
    for distinct in (True, False):
        encoder.distinct = distinct
        encoder.zero_grad()
        torch.manual_seed(1)  # the numbers of hops in training
        encoded = encoder.train()(batch, rows=True)
        sum((rows.h.sin().sum() for rows in encoded.rows), encoded.graphs.square().sum()).backward()
        results.append([encoded.graphs, *(rows.h for rows in encoded.rows), *(p.grad for p in encoder.parameters())])
    for one, other in zip(*results, strict=True):
        assert one is not None and other is not None and one.abs().max() > 0
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_few_rows_are_computed_and_each_level_splits_those_before() -> None:
    batch = double_batch(SMILES)
    for hops, n in ((atom_hops(batch, distinct=True), batch.n_atoms), (bond_hops(batch, distinct=True), batch.n_bonds)):
        rows = [hops.level(k).every.source.numpy() for k in range(10)]
        counts = [int(row.max()) + 1 for row in rows]
        assert counts[0] < n / 4 and counts[-1] < n and counts == sorted(counts)
        assert all(len(set(zip(a, b, strict=True))) == c for a, b, c in zip(rows, rows[1:], counts[1:], strict=False))


def test_a_batch_that_was_predicted_is_trained_on_with_more_hops() -> None:
    encoder = get("encoder", "grover")(featurize(SMILES).spec, d_hidden=8, heads=2, hops=2)
    batch = collate(featurize(SMILES), np.arange(len(SMILES)))
    with torch.inference_mode():
        before = encoder.eval()(batch).graphs.clone()
    encoder.atoms[0].passing.hops += 3
    encoder.train()(batch).graphs.sum().backward()
    encoder.atoms[0].passing.hops -= 3
    assert encoder.atoms[0].passing.weight.grad.abs().max() > 0
    torch.testing.assert_close(encoder.eval()(batch).graphs, before)

"""D-MPNN against chemprop with the same weights, and its distinct rows against all rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from molgraph.base.errors import UnknownNameError
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.models.dmpnn import DMPNN
from molgraph.nn.joined_linear import JoinedLinear, SummedRows
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.relation import Relation

SMILES = [
    "CC(=O)Oc1ccccc1C(=O)O",
    "C",
    "CC",
    "C[C@H](N)C(=O)O",
    "[Na+].[Cl-]",
    "F/C=C/F",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "C12C3C4C1C5C2C3C45",
    "CCCCCCCCO",
    "FC(F)(F)c1ccc(cc1)C(F)(F)F",
]


def batch_of(smiles: list[str]) -> GraphBatch:
    return collate(featurize(smiles), np.arange(len(smiles)))


def encoder(**params: object) -> DMPNN:
    torch.manual_seed(0)
    return DMPNN(MOLECULE_SPEC, **params)


def copy_from_chemprop(own: DMPNN, peer: nn.Module) -> None:
    for mine, theirs in ((own.w_i, peer.W_i), (own.w_h, peer.W_h), (own.w_o, peer.W_o)):
        mine.load_state_dict(theirs.state_dict())


@pytest.mark.parametrize("readout", ["mean", "sum", "norm"])
@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.parametrize(("depth", "bias", "activation"), [(3, False, "relu"), (1, False, "relu"), (5, True, "tanh")])
def test_equals_chemprop_with_its_weights(
    readout: str, distinct: bool, depth: int, bias: bool, activation: str
) -> None:
    chemprop = pytest.importorskip("chemprop")
    from rdkit import Chem

    peer = chemprop.nn.BondMessagePassing(depth=depth, bias=bias, activation=activation)
    pool = {
        "mean": chemprop.nn.MeanAggregation,
        "sum": chemprop.nn.SumAggregation,
        "norm": chemprop.nn.NormAggregation,
    }[readout]()
    ffn = chemprop.nn.RegressionFFN(n_tasks=2)
    model = chemprop.models.MPNN(peer, pool, ffn, batch_norm=False).eval()
    featurizer = chemprop.featurizers.SimpleMoleculeMolGraphFeaturizer()
    graphs = chemprop.data.BatchMolGraph([featurizer(Chem.MolFromSmiles(s)) for s in SMILES])

    own = encoder(readout=readout, distinct=distinct, depth=depth, bias=bias, activation=activation).eval()
    head = Perceptron(own.d_out, 300, 2)
    copy_from_chemprop(own, peer)
    for mine, theirs in zip(head.layers, (ffn.ffn[0][0], ffn.ffn[1][2]), strict=True):
        mine.load_state_dict(theirs.state_dict())
    with torch.no_grad():
        expected = model(graphs)
        out = head(own(batch_of(SMILES)).graphs)
    assert expected.std() > 1e-3
    torch.testing.assert_close(out, expected, rtol=0, atol=1e-5)


def test_has_chemprops_number_of_parameters() -> None:
    own = encoder()
    n = sum(p.numel() for module in (own, Perceptron(own.d_out)) for p in module.parameters())
    assert n == 318_301


@pytest.mark.parametrize("depth", [1, 2, 3, 6])
def test_distinct_rows_give_what_all_rows_give(depth: int) -> None:
    own = encoder(depth=depth).double()
    batch = batch_of(SMILES)
    for level in ("atom", "bond"):
        batch = batch.with_level(level, table=batch[level].table.double())
    results = []
    for distinct in (True, False):
        own.distinct = distinct
        own.zero_grad()
        encoded = own(batch, rows=True)
        (encoded.graphs.pow(2).sum() + encoded.rows[0].h.sin().sum()).backward()
        results.append([encoded.graphs, encoded.rows[0].h, *(p.grad for p in own.parameters() if p.grad is not None)])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_dropout_takes_every_bond_for_itself_while_training() -> None:
    own, batch = encoder(dropout=0.5), batch_of(["CC", "CC"])
    own.train()
    out = own(batch).graphs
    assert not out[0].equal(out[1])  # equal molecules, different masks
    own.eval()
    out = own(batch).graphs
    assert out[0].equal(out[1])


def test_prediction_then_training_with_the_same_batch() -> None:
    own, batch = encoder(), batch_of(SMILES)
    with torch.inference_mode():
        before = own(batch).graphs.clone()
    own(batch).graphs.sum().backward()
    assert own.w_i.weight.grad is not None
    torch.testing.assert_close(own(batch).graphs.detach(), before)


def test_bfloat16_products_are_summed_in_single_precision() -> None:
    near_one = 1 + 2**-7  # has a bfloat16; three times it has none
    thrice = Relation.from_pairs(torch.zeros(6, dtype=torch.long), torch.arange(6) // 3, 1, 2)
    layer = JoinedLinear(4, 4, bias=False)
    layer.weight = nn.Parameter(torch.eye(4))
    with torch.autocast("cpu", torch.bfloat16):
        out = layer(SummedRows(torch.full((1, 4), near_one), thrice))
    assert torch.equal(out, torch.full((2, 4), 3 * near_one))


def test_bfloat16_stays_near() -> None:
    own, batch = encoder().eval(), batch_of(SMILES)
    with torch.no_grad():
        exact = own(batch).graphs
        with torch.autocast("cpu", torch.bfloat16):
            near = own(batch).graphs.float()
    assert (near - exact).pow(2).mean().sqrt() < 0.01 * exact.std()


def test_wrong_parameters_are_answered() -> None:
    with pytest.raises(ValueError, match="got 0"):
        encoder(depth=0)
    with pytest.raises(UnknownNameError, match="'mean'"):
        encoder(readout="meen")

"""MPNN: distinct rows against all rows, hydrogens against RDKit's; its equations stand in tests/systems."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rdkit import Chem

from molgraph.base.errors import UnsupportedError
from molgraph.data import featurize_rdkit
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.data.graph_store import InputSpec
from molgraph.models.mpnn import MPNN
from molgraph.nn.hydrogens import with_hydrogens
from molgraph.nn.messages import make_message

SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "C", "C[C@H](N)C(=O)O", "[Na+].[Cl-]", "C12C3C4C1C5C2C3C45", "CCCCCCCCO"]


def double_batch() -> GraphBatch:
    batch = collate(featurize(SMILES), np.arange(len(SMILES)))
    batch = batch.with_level("atom", table=batch["atom"].table.double())
    return batch.with_level("bond", table=batch["bond"].table.double())


def encoder(**params: object) -> MPNN:
    torch.manual_seed(0)
    return MPNN(MOLECULE_SPEC, d_hidden=8, **params).double()


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_distinct_rows_give_the_gradients_of_all_rows(rounds: int) -> None:
    own, batch = encoder(rounds=rounds), double_batch()
    results = []
    for distinct in (True, False):
        own.distinct = distinct
        own.zero_grad()
        graphs = own(batch).graphs
        graphs.pow(2).sum().backward()
        results.append([graphs, *(p.grad for p in own.parameters() if p.grad is not None)])
    assert len(results[0]) == len(results[1])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_other_readouts_fit() -> None:
    for name in ("mean", "sum", "norm"):
        own = encoder(readout=name)
        assert own(double_batch()).graphs.shape == (len(SMILES), own.d_out)


@pytest.mark.parametrize("rounds", [0, 1])
def test_a_master_node_that_nothing_would_hear_is_refused(rounds: int) -> None:
    with pytest.raises(ValueError, match=f"rounds={rounds} .*d_master 4"):
        encoder(rounds=rounds, d_master=4)


def test_a_matrix_of_each_label_has_no_hidden_layer() -> None:
    with pytest.raises(ValueError, match="d_edge 6"):
        encoder(message="matrix", d_edge=6)


@pytest.mark.parametrize("name", ["matrix", "pair"])
def test_other_messages_over_distinct_rows_have_the_gradients_of_all_rows(name: str) -> None:
    batch, results = double_batch(), []
    for distinct in (True, False):
        own = encoder(message=name, distinct=distinct)
        own(batch).graphs.pow(2).sum().backward()
        results.append([p.grad for p in own.parameters()])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def with_added(text: str) -> Chem.Mol:
    mol = Chem.AddHs(Chem.MolFromSmiles(text))
    Chem.SanitizeMol(mol)  # tells the hybridisation of the new atoms too
    return mol


def test_hydrogens_are_those_that_rdkit_adds(monkeypatch: pytest.MonkeyPatch) -> None:
    smiles = [*SMILES, "[2H]C([2H])O", "[NH4+]", "c1cc[nH]c1", "C/C=C/F", "B", "[H][H]", "CS(=O)(=O)N", "[CH3]"]
    full, atom = with_hydrogens(collate(featurize(smiles), np.arange(len(smiles))))
    monkeypatch.setattr(featurize_rdkit, "_read", with_added)
    known = collate(featurize(smiles, backend="rdkit"), np.arange(len(smiles)))
    assert full["atom"].offsets.equal(known["atom"].offsets) and full["bond"].offsets.equal(known["bond"].offsets)
    assert full.features("atom").equal(known.features("atom"))
    assert full.target.equal(known.target) and full.target.diff().min() >= 0

    def edges(batch: GraphBatch) -> dict[tuple[int, int], list[float]]:
        pairs = zip(batch.source.tolist(), batch.target.tolist(), strict=True)
        return dict(zip(pairs, batch.features("bond").tolist(), strict=True))

    assert edges(full) == edges(known)
    assert full.source[full.reverse].equal(full.target) and full.reverse[full.reverse].equal(torch.arange(full.n_bonds))
    assert full.features("atom")[atom].argmax(1).ne(0).sum() == sum(
        a.GetAtomicNum() != 1 for text in smiles for a in Chem.MolFromSmiles(text).GetAtoms()
    )


@pytest.mark.parametrize("distinct", [True, False])
def test_explicit_hydrogens_are_read_out_and_are_no_rows(distinct: bool) -> None:
    own, batch = encoder(explicit_h=True, distinct=distinct), double_batch()
    full, atom = with_hydrogens(batch)
    plain = encoder()
    whole, encoded = plain(full, rows=True), own(batch, rows=True)
    torch.testing.assert_close(encoded.graphs, whole.graphs)
    torch.testing.assert_close(encoded.rows[0].h, whole.rows[0].h[atom])
    assert encoded.rows[0].graph_of.equal(batch.graph_of("atom")) and full.n_atoms > batch.n_atoms


def test_wrong_parameters_are_answered() -> None:
    with pytest.raises(ValueError, match="got -1"):
        encoder(rounds=-1)
    with pytest.raises(ValueError, match="'dot'"):
        make_message("dot", 14, 8, 8)
    with pytest.raises(UnsupportedError, match="explicit_h"):
        MPNN(InputSpec("graph.1", {"atom": 3, "bond": 1}), explicit_h=True)

"""Trials that every registered encoder meets; the author of a new one writes none of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import molgraph.models  # noqa: F401 - registers the encoders
from molgraph.base.registry import entry, names
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.features import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.nn.encoder import Encoder

ENCODERS = names("encoder")
SMILES = [
    "C",
    "CC",
    "CCO",
    "c1ccccc1",
    "CC(=O)Oc1ccccc1C(=O)O",
    "CN1C=NC2=C1C(=O)N(C(=O)N2C)C",
    "[Na+].[Cl-]",
    "C[C@H](N)C(=O)O",
    "F/C=C/F",
    "C12C3C4C1C5C2C3C45",
    "[Hg]",
    "CCCCCCCCO",
    "OC(=O)c1ccncc1",
    "FC(F)(F)Cl",
    "N#Cc1ccccc1Br",
    "CCO.CCN",
]
NASTY = Path(__file__).parents[1] / "nasty.tsv"


@pytest.fixture(scope="module")
def store():
    return featurize(SMILES)


@pytest.fixture
def batch(store) -> GraphBatch:
    return collate(store, np.arange(len(SMILES)))


def build(name: str, batch: GraphBatch, seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    return entry("encoder", name).value(MOLECULE_SPEC)


def tensors(batch: GraphBatch) -> list[Tensor]:
    parts = [[level.offsets, level.table, *level.arrays.values()] for level in batch.levels.values()]
    return [tensor for part in parts for tensor in part if tensor is not None]


def graphs(encoder: nn.Module, batch: GraphBatch) -> Tensor:
    with torch.no_grad():
        return encoder.eval()(batch).graphs


def renumbered(batch: GraphBatch, seed: int) -> tuple[GraphBatch, Tensor]:
    """The batch with the atoms of each graph in another order, and the new number of each atom."""
    rng = np.random.default_rng(seed)
    spans = zip(batch["atom"].offsets[:-1].tolist(), batch["atom"].offsets[1:].tolist(), strict=True)
    old = torch.from_numpy(np.concatenate([rng.permutation(np.arange(a, b)) for a, b in spans]))
    new = torch.empty_like(old).index_copy(0, old, torch.arange(len(old)))
    source, target = new[batch.source], new[batch.target]
    order = torch.from_numpy(np.lexsort((rng.random(len(target)), target.numpy())))
    place = torch.empty_like(order).index_copy(0, order, torch.arange(len(order)))
    bonds = {"source": source[order], "target": target[order], "reverse": place[batch.reverse[order]]}
    moved = batch.with_level("atom", code=batch["atom"].code[old])
    return moved.with_level("bond", code=batch["bond"].code[order], **bonds), new


@pytest.mark.parametrize("name", ENCODERS)
class TestEveryEncoder:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("encoder", name)
        assert found.summary and found.paper and found.value.__doc__
        assert len(found.line) == 6  # rows, relation, message, update, readout, objective

    def test_gives_a_state_a_graph(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name, batch)
        out = graphs(encoder, batch)
        assert out.shape == (len(SMILES), encoder.d_out)
        assert out.isfinite().all()
        assert (out.std(0) > 0).any()

    def test_atom_order_changes_nothing(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name, batch).eval()
        with torch.no_grad():
            plain = encoder(batch, rows=True)
            for seed in range(3):
                moved_batch, new = renumbered(batch, seed)
                moved = encoder(moved_batch, rows=True)
                torch.testing.assert_close(moved.graphs, plain.graphs, rtol=0, atol=1e-5)
                for mine, theirs in zip(plain.rows, moved.rows, strict=True):
                    if mine.level == "atom":
                        torch.testing.assert_close(theirs.h[new], mine.h, rtol=0, atol=1e-5)

    def test_rows_belong_to_their_graphs(self, name: str, batch: GraphBatch) -> None:
        for rows in build(name, batch)(batch, rows=True).rows:
            assert rows.h.shape[0] == rows.graph_of.shape[0]
            if rows.level == "atom":
                assert rows.graph_of.equal(batch.graph_of("atom"))

    def test_a_graph_does_not_see_its_neighbours(self, name: str, batch: GraphBatch, store) -> None:
        encoder = build(name, batch)
        together = graphs(encoder, batch)
        alone = torch.cat([graphs(encoder, collate(store, np.array([i]))) for i in range(len(SMILES))])
        torch.testing.assert_close(alone, together, rtol=0, atol=1e-5)
        backwards = graphs(encoder, collate(store, np.arange(len(SMILES))[::-1].copy()))
        torch.testing.assert_close(backwards.flip(0), together, rtol=0, atol=1e-5)

    def test_different_molecules_differ(self, name: str, batch: GraphBatch) -> None:
        out = graphs(build(name, batch), batch)
        gaps = torch.cdist(out, out) + 10 * torch.eye(len(out))
        assert gaps.min() > 1e-6

    def test_a_graph_without_atoms_is_finite_and_changes_no_other(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name, batch)
        with_gaps = featurize([SMILES[4], "not a molecule", SMILES[0], ""])
        out = graphs(encoder, collate(with_gaps, np.arange(4)))
        assert out.isfinite().all()
        clean = graphs(encoder, collate(featurize([SMILES[4], SMILES[0]]), np.arange(2)))
        torch.testing.assert_close(out[[0, 2]], clean, rtol=0, atol=1e-5)

    @pytest.mark.parametrize("smiles", [["C"], ["C", "[He]"], ["not a molecule"], ["", "x"], []])
    def test_batches_without_bonds_train(self, name: str, batch: GraphBatch, smiles: list[str]) -> None:
        encoder = build(name, batch).train()
        few = featurize([*smiles, SMILES[4]])
        out = encoder(collate(few, np.arange(len(smiles)))).graphs
        assert out.shape == (len(smiles), encoder.d_out)
        out.sum().backward()
        assert out.isfinite().all()
        assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())

    def test_nasty_molecules(self, name: str, batch: GraphBatch) -> None:
        lines = NASTY.read_text(encoding="utf-8").splitlines()[1:]  # after the header
        nasty = featurize([line.split("\t")[0] for line in lines])
        encoder = build(name, batch)
        out = encoder.train()(collate(nasty, np.arange(len(lines)))).graphs
        assert out.shape[0] == len(lines) and out.isfinite().all()
        out.pow(2).mean().backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())
        assert (nasty.status == "ok").sum() > 20
        assert (out[torch.from_numpy(nasty.status == "ok")].abs().sum(1) > 0).all()

    def test_every_parameter_is_reached_by_a_finite_gradient(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name, batch).train()
        encoded = encoder(batch)
        loss = encoded.graphs.sin().sum() + sum(encoded.penalties.values())
        loss.backward()
        for label, parameter in encoder.named_parameters():
            assert parameter.grad is not None, f"{label} is not used"
            assert parameter.grad.isfinite().all(), label
            assert (parameter.grad != 0).any(), label

    def test_same_seed_same_bits(self, name: str, batch: GraphBatch, store) -> None:
        one, two = build(name, batch, seed=3), build(name, batch, seed=3)
        again = collate(store, np.arange(len(SMILES)))
        assert graphs(one, batch).equal(graphs(two, again))
        assert graphs(one, batch).equal(graphs(one, batch))

    def test_prepare_ahead_changes_nothing(self, name: str, batch: GraphBatch, store) -> None:
        encoder = build(name, batch).eval()
        ahead = collate(store, np.arange(len(SMILES)))
        assert encoder.prepare(ahead) is None
        assert graphs(encoder, ahead).equal(graphs(encoder, batch))

    def test_edits_nothing_in_place(self, name: str, batch: GraphBatch) -> None:
        before = {id(array): array.clone() for array in tensors(batch)}
        build(name, batch)(batch, rows=True).graphs.sum().backward()
        assert all(array.equal(before[id(array)]) for array in tensors(batch))

    def test_saves_and_loads(self, name: str, batch: GraphBatch, tmp_path: Path) -> None:
        one, two = build(name, batch, seed=1), build(name, batch, seed=2)
        assert not graphs(one, batch).equal(graphs(two, batch))
        save_file(one.state_dict(), tmp_path / "weights.safetensors")
        two.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        assert graphs(one, batch).equal(graphs(two, batch))

    def test_computes_in_float64(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name, batch)
        single = graphs(encoder, batch)
        wide = batch.with_level("atom", table=batch["atom"].table.double())
        wide = wide.with_level("bond", table=batch["bond"].table.double())
        double = graphs(encoder.double(), wide)
        assert double.dtype == torch.float64
        torch.testing.assert_close(double.float(), single, rtol=1e-4, atol=1e-5)

    def test_computes_in_bfloat16(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name, batch)
        exact = graphs(encoder, batch)
        encoder.train()
        with torch.autocast("cpu", torch.bfloat16):
            near = encoder(batch).graphs
        near.float().sum().backward()
        assert (near.float() - exact).pow(2).mean().sqrt() < 0.05 * exact.std()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())

    def test_learns_sixteen_molecules_by_heart(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name, batch).train()
        head = nn.Linear(encoder.d_out, 1)
        y = torch.randn(len(SMILES), 1, generator=torch.Generator().manual_seed(0))
        optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=3e-3)
        for _ in range(150):
            optimiser.zero_grad()
            encoded = encoder(batch)
            loss = (head(encoded.graphs) - y).pow(2).mean()
            (loss + sum(encoded.penalties.values())).backward()
            optimiser.step()
            if loss < 0.01:
                break
        assert loss < 0.01

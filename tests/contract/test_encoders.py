"""Trials that every registered encoder meets; the author of a new one writes none of them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

import molgraph.models  # noqa: F401 - registers the encoders
from molgraph.base.registry import entry, names
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featuriser import Featuriser
from molgraph.data.graph_store import GraphStore
from molgraph.data.graph_values import Geometry
from molgraph.nn.encoder import Encoder
from molgraph.train.inputs import featuriser_of

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


@cache
def entities(name: str) -> tuple[Featuriser, tuple]:
    """The featuriser of an encoder's graphs, and sixteen entities that differ."""
    kind = entry("encoder", name).value.reads[0]
    rng, made = np.random.default_rng(0), []
    for size in range(1, 17):
        if kind == "geometry":
            at = 1.4 * np.cumsum(rng.normal(size=(size, 3)) / 1.5, axis=0).astype(np.float32)
            made.append(Geometry(rng.choice([1, 6, 7, 8], size).astype(np.uint8), at))
        elif kind == "sequence":
            made.append("".join(rng.choice(list("ACDEFGHIKLMNPQRSTVWY"), 3 * size)))
    return featuriser_of(name, kind), tuple(made) or tuple(SMILES)


def store_of(name: str, which: slice = slice(None)) -> GraphStore:
    return made_of(name, *entities(name)[1][which])


def made_of(name: str, *values: object) -> GraphStore:
    """The graphs of values, laid out as those of the sixteen entities."""
    featuriser, known = entities(name)
    return featuriser.featurise(values, spec=featuriser.featurise(known).spec)


@pytest.fixture
def store(name: str) -> GraphStore:
    return store_of(name)


@pytest.fixture
def batch(store: GraphStore) -> GraphBatch:
    return collate(store, np.arange(len(SMILES)))


def nasty_texts() -> list[str]:
    return [line.split("\t")[0] for line in NASTY.read_text(encoding="utf-8").splitlines()[1:]]  # after the header


@cache
def nasty(featuriser: type[Featuriser]) -> GraphStore:
    """The graphs of all nasty molecules, made once for each featuriser."""
    return featuriser().featurise(nasty_texts())


def nasty_of(name: str) -> GraphStore:
    made = featuriser_of(name, "molecule")
    return made_of(name, *nasty_texts()) if made.learns else nasty(type(made))


def build(name: str, seed: int = 0) -> Encoder:
    torch.manual_seed(seed)
    return entry("encoder", name).value(store_of(name).spec)


def build_small(name: str) -> Encoder:
    torch.manual_seed(0)
    make = entry("encoder", name).value
    return make(store_of(name).spec, **make.small)


def tensors(batch: GraphBatch) -> list[Tensor]:
    parts = [[level.offsets, level.table, *level.arrays.values()] for level in batch.levels.values()]
    return [tensor for part in parts for tensor in part if tensor is not None]


def graphs(encoder: nn.Module, batch: GraphBatch) -> Tensor:
    with torch.no_grad():
        return encoder.eval()(batch).graphs


def renumbered(batch: GraphBatch, seed: int) -> tuple[GraphBatch, Tensor]:
    """The batch with the atoms of each graph in another order, and the new number of each atom."""
    rng, atoms = np.random.default_rng(seed), batch["atom"]
    spans = zip(atoms.offsets[:-1].tolist(), atoms.offsets[1:].tolist(), strict=True)
    old = torch.from_numpy(np.concatenate([rng.permutation(np.arange(a, b)) for a, b in spans]))
    new = torch.empty_like(old).index_copy(0, old, torch.arange(len(old)))
    moved = batch.with_level("atom", **{key: values[old] for key, values in atoms.arrays.items()})
    if "bond" not in batch.levels:
        return moved, new
    source, target = new[batch.source], new[batch.target]
    order = torch.from_numpy(np.lexsort((rng.random(len(target)), target.numpy())))
    place = torch.empty_like(order).index_copy(0, order, torch.arange(len(order)))
    bonds = {"source": source[order], "target": target[order], "reverse": place[batch.reverse[order]]}
    return moved.with_level("bond", code=batch["bond"].code[order], **bonds), new


@pytest.mark.parametrize("name", ENCODERS)
class TestEveryEncoder:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("encoder", name)
        assert found.summary and found.paper and found.value.__doc__
        assert len(found.line) == 6  # rows, relation, message, update, readout, objective

    def test_gives_a_state_a_graph(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name)
        out = graphs(encoder, batch)
        assert out.shape == (len(SMILES), encoder.d_out)
        assert out.isfinite().all()
        assert (out.std(0) > 0).any()

    def test_atom_order_changes_nothing(self, name: str, batch: GraphBatch) -> None:
        if "atom" not in batch.levels:
            return  # the order of tokens means something
        encoder = build(name).eval()
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
        for rows in build(name)(batch, rows=True).rows:
            assert rows.h.shape[0] == rows.graph_of.shape[0]
            if rows.level == "atom":
                assert rows.graph_of.equal(batch.graph_of("atom"))
            assert rows.h.shape[1] == getattr(build(name), "d_tokens" if rows.level == "token" else "d_rows", 0)

    def test_a_graph_does_not_see_its_neighbours(self, name: str, batch: GraphBatch, store) -> None:
        encoder = build(name)
        together = graphs(encoder, batch)
        alone = torch.cat([graphs(encoder, collate(store, np.array([i]))) for i in range(len(SMILES))])
        torch.testing.assert_close(alone, together, rtol=0, atol=1e-5)
        backwards = graphs(encoder, collate(store, np.arange(len(SMILES))[::-1].copy()))
        torch.testing.assert_close(backwards.flip(0), together, rtol=0, atol=1e-5)

    def test_different_molecules_differ(self, name: str, batch: GraphBatch) -> None:
        out = graphs(build(name), batch)
        gaps = torch.cdist(out, out) + 10 * torch.eye(len(out))
        assert gaps.min() > 1e-6

    def test_a_graph_without_atoms_is_finite_and_changes_no_other(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name)
        _, values = entities(name)
        with_gaps = made_of(name, values[4], "not a molecule", values[0], "")
        assert list(with_gaps.status == "ok") == [True, False, True, False]
        out = graphs(encoder, collate(with_gaps, np.arange(4)))
        assert out.isfinite().all()
        clean = graphs(encoder, collate(made_of(name, values[4], values[0]), np.arange(2)))
        torch.testing.assert_close(out[[0, 2]], clean, rtol=0, atol=1e-5)

    def test_the_smallest_batches_train(self, name: str) -> None:
        """One entity of one row, entities that cannot be read, and no entity at all."""
        encoder = build_small(name).train()
        _, values = entities(name)
        for n in ((0,), (0, None), (None,), (None, None), ()):
            encoder.zero_grad()
            few = made_of(name, *("not one" if i is None else values[i] for i in n), values[4])
            out = encoder(collate(few, np.arange(len(n)))).graphs
            assert out.shape == (len(n), encoder.d_out), n
            out.sum().backward()
            assert out.isfinite().all(), n
            assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters()), n

    def test_nasty_molecules(self, name: str) -> None:
        if "molecule" not in entry("encoder", name).value.reads:
            return
        store, encoder = nasty_of(name), build_small(name).train()
        batch = collate(store, np.arange(len(store)))
        out = encoder(batch).graphs
        assert out.shape[0] == len(store) and out.isfinite().all()
        out.pow(2).mean().backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())
        assert (store.status == "ok").sum() > 20
        assert (out[torch.from_numpy(store.status == "ok")].abs().sum(1) > 0).all()
        assert graphs(encoder, batch).isfinite().all()

    def test_every_parameter_is_reached_by_a_finite_gradient(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name).train()
        encoded = encoder(batch)
        loss = encoded.graphs.sin().sum() + sum(encoded.penalties.values())
        loss.backward()
        for label, parameter in encoder.named_parameters():
            assert parameter.grad is not None, f"{label} is not used"
            assert parameter.grad.isfinite().all(), label
            assert (parameter.grad != 0).any(), label

    def test_same_seed_same_bits(self, name: str, batch: GraphBatch, store) -> None:
        one, two = build(name, seed=3), build(name, seed=3)
        again = collate(store, np.arange(len(SMILES)))
        assert graphs(one, batch).equal(graphs(two, again))
        assert graphs(one, batch).equal(graphs(one, batch))

    def test_prepare_ahead_changes_nothing(self, name: str, batch: GraphBatch, store) -> None:
        encoder = build(name).eval()
        ahead = collate(store, np.arange(len(SMILES)))
        assert encoder.prepare(ahead) is None
        assert graphs(encoder, ahead).equal(graphs(encoder, batch))

    def test_a_batch_that_was_predicted_can_be_trained_on(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name)
        with torch.inference_mode():
            encoder.eval()(batch)
        encoder.train()(batch).graphs.sin().sum().backward()

    def test_edits_nothing_in_place(self, name: str, batch: GraphBatch) -> None:
        before = {id(array): array.clone() for array in tensors(batch)}
        build(name)(batch, rows=True).graphs.sum().backward()
        assert all(array.equal(before[id(array)]) for array in tensors(batch))

    def test_saves_and_loads(self, name: str, batch: GraphBatch, tmp_path: Path) -> None:
        one, two = build(name, seed=1), build(name, seed=2)
        assert not graphs(one, batch).equal(graphs(two, batch))
        save_file(one.state_dict(), tmp_path / "weights.safetensors")
        two.load_state_dict(load_file(tmp_path / "weights.safetensors"))
        assert graphs(one, batch).equal(graphs(two, batch))

    def test_computes_in_float64(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name)
        single = graphs(encoder, batch)
        wide = batch
        for level, own in batch.levels.items():
            floats = {key: values.double() for key, values in own.arrays.items() if values.is_floating_point()}
            table = None if own.table is None else own.table.double()
            wide = wide.with_level(level, table=table, **floats)
        double = graphs(encoder.double(), wide)
        assert double.dtype == torch.float64
        torch.testing.assert_close(double.float(), single, rtol=1e-4, atol=1e-5)

    def test_computes_in_bfloat16(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name).train()
        with torch.no_grad():
            exact = encoder(batch).graphs
        with torch.autocast("cpu", torch.bfloat16):
            near = encoder(batch).graphs
        near.float().sum().backward()
        assert (near.float() - exact).pow(2).mean().sqrt() < 0.05 * exact.std()
        assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())

    @pytest.mark.slow
    def test_learns_fifteen_molecules_by_heart(self, name: str, batch: GraphBatch) -> None:
        """All but the lone atom, which has no pair for networks of directed pairs; at one of two rates."""
        y = torch.randn(len(SMILES), 1, generator=torch.Generator().manual_seed(0))
        for rate in (1e-3, 3e-3):
            encoder = build(name).train()
            head = nn.Linear(encoder.d_out, 1)
            optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=rate)
            for _ in range(300):
                optimiser.zero_grad()
                encoded = encoder(batch)
                loss = (head(encoded.graphs) - y)[1:].square().mean()
                (loss + sum(encoded.penalties.values())).backward()
                optimiser.step()
                if loss < 0.1:
                    return
        raise AssertionError(f"{loss:.2f} of a variance of 1")

    def test_computing_rows_that_look_alike_once_changes_nothing(self, name: str, batch: GraphBatch) -> None:
        encoder = build(name).eval()
        plain = graphs(encoder, batch)
        encoder.distinct = False
        again = batch.with_level(next(iter(batch.levels)))
        torch.testing.assert_close(graphs(encoder, again), plain, rtol=0, atol=1e-5)

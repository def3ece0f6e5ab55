"""Trials of atom encoders with two norms and readouts each, and of every norm and readout with two encoders."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch

from molgraph.base.registry import get, names
from molgraph.data.batch import GraphBatch, collate
from molgraph.nn.atom_encoder import AtomEncoder, RoundsEncoder
from molgraph.nn.norms import Norm
from molgraph.nn.pooling_net import PoolingNet
from tests.contract.members import two_of
from tests.contract.test_encoders import ENCODERS, graphs, store_of

ROUNDS = [name for name in ENCODERS if issubclass(get("encoder", name), RoundsEncoder)]
ATOM_ENCODERS = [name for name in ENCODERS if issubclass(get("encoder", name), AtomEncoder)]
EXACT = ("additive",)  # a norm, or a readout that weighs atoms, would make its contributions no sum


def parameters(name: str) -> list[str]:
    return list(inspect.signature(get("encoder", name).__init__).parameters)


def build(name: str, **params: Any) -> AtomEncoder:
    torch.manual_seed(0)
    make = get("encoder", name)
    return make(store_of(name).spec, **{**make.small, **params})


def batch_of(name: str, which: list[int]) -> GraphBatch:
    return collate(store_of(name), np.array(which, dtype=np.int64))


def wide(batch: GraphBatch) -> GraphBatch:
    """The batch in double precision, in which a norm that divides by next to nothing shows no noise."""
    for level, own in batch.levels.items():
        floats = {key: values.double() for key, values in own.arrays.items() if values.is_floating_point()}
        batch = batch.with_level(level, table=own.table.double(), **floats)
    return batch


@pytest.mark.parametrize("name", [name for name in ATOM_ENCODERS if name not in EXACT])
def test_takes_a_norm_and_a_readout(name: str) -> None:
    assert {"norm", "readout"} <= set(parameters(name))


PARTS = [("norm", name) for name in names("norm")] + [("readout", name) for name in names("readout")]
STANDING = [*two_of("Norm"), *two_of("Readout")]
TOGETHER = [
    (name, *part) for name in ATOM_ENCODERS for part in PARTS if name in two_of("AtomEncoder") or part[1] in STANDING
]


@pytest.mark.parametrize(("name", "part", "choice"), TOGETHER)
class TestEveryAtomEncoderTakes:
    def test_norms_and_readouts(self, name: str, part: str, choice: str) -> None:
        if part not in parameters(name):
            return
        encoder = build(name, **{part: choice}).train()
        for which in ([*range(16)], [0], []):  # many molecules, one atom, none
            encoded = encoder(batch_of(name, which))
            assert encoded.graphs.shape == (len(which), encoder.d_out) and encoded.graphs.isfinite().all()
            sum(encoded.penalties.values(), encoded.graphs.sin().sum()).backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in encoder.parameters())
        used = [m for key, m in encoder.named_modules() if isinstance(m, Norm)]
        assert used and all(p.grad is not None for m in used for p in m.parameters()), "a norm that is never called"
        shared = graphs(encoder.double(), wide(batch_of(name, [3, 4, 5])))
        encoder.distinct = False
        torch.testing.assert_close(graphs(encoder, wide(batch_of(name, [3, 4, 5]))), shared)
        torch.testing.assert_close(graphs(encoder, wide(batch_of(name, [4]))), shared[1:2])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "part", "choice"), [*((name, "", "") for name in ENCODERS), *(("gin", *p) for p in PARTS)]
)
def test_gradients_are_the_same_for_each_run_of_two_threads(name: str, part: str, choice: str) -> None:
    options: dict[str, Any] = {part: choice} if part else {}
    store = store_of(name)
    batch, threads = collate(store, np.arange(300) % len(store)), torch.get_num_threads()
    encoder = build(name, **{"d_hidden": 32} if name in ATOM_ENCODERS else {}, **options).train()
    made: list[list[torch.Tensor]] = []
    try:
        torch.set_num_threads(2)
        for _ in range(2):
            encoder.zero_grad()
            torch.manual_seed(1)
            encoder(batch).graphs.sin().sum().backward()
            made.append([p.grad.clone() for p in encoder.parameters() if p.grad is not None])
    finally:
        torch.set_num_threads(threads)
    assert all(torch.equal(a, b) for each in made for a, b in zip(made[0], each, strict=True))


OTHERS: dict[str, Any] = {"reduce": "mean",   # another value of an option, where the rule below gives none
    "delta": 2.0,
    "activation": "tanh", "message": "matrix", "conv": "GATConv", "walk": 5, "heads": 1, "reach": 1,
    "max_distance": 1, "readout": "max", "norm": "layer", "d_master": 4, "compat": "fixed", "assign": "hard",
    "l_hop": 1, "n_iter": 1, "pool": "mincut", "angle": "paper", "basis": "distance", "hop_spread": 3.0,
    "kept_heads": "1,1", "span": "adaptive",
}  # fmt: skip
SILENT = {  # options that change time or memory alone, or nothing here, each with its reason
    "distinct": "the same values, computed once or for each row", "max_matrix_gb": "a limit",
    "size": "the width, where d_hidden is not given",
    "options": "of the wrapped convolution", "cutoff_angstrom": "these molecules are smaller",
    "released": "a network of its own, which reads k and n_iter",
}  # fmt: skip
BESIDE = {  # what an option needs to be read
    ("pyg_conv", "heads"): {"conv": "GATConv"}, ("pyg_pool", "ratio"): {"pool": "topk"},
    ("graphgps", "kept_heads"): {"depth": 2},
}  # fmt: skip
POOLING = [name for name in ENCODERS if issubclass(get("encoder", name), PoolingNet)]


@pytest.mark.parametrize("name", [*ATOM_ENCODERS, *POOLING, "rfm"])
def test_every_option_changes_what_comes_out(name: str) -> None:
    """An option that is ignored passes every test of shapes."""
    make, batch = get("encoder", name), batch_of(name, [*range(16)])
    for option, each in inspect.signature(make.__init__).parameters.items():
        if option in ("self", "spec", *SILENT):
            continue
        at = {**make.small}.get(option, each.default)
        if option in OTHERS:
            other = OTHERS[option]
        elif isinstance(at, bool):
            other = not at
        else:
            other = 0.5 if isinstance(at, float) and option == "dropout" else 2 * at
        beside = BESIDE.get((name, option), {})
        first, second = build(name, **beside).train(), build(name, **beside, **{option: other}).train()
        sizes = [[p.shape for p in each.parameters()] for each in (first, second)]
        plain, found = first(batch).graphs, second(batch).graphs
        told = found.shape != plain.shape or not torch.allclose(found, plain)
        assert told or (option == "compat" and sizes[0] != sizes[1]), (
            option,
            at,
            other,
        )  # it is learned from the fixed


@pytest.mark.parametrize("name", [*(name for name in ROUNDS if name not in EXACT), "enn_s2s", "graphgps", "schnet"])
def test_layers_are_sums_over_the_atoms_of_the_states_after_each_round(name: str) -> None:
    batch, said = wide(batch_of(name, [*range(16)])), "rounds" if "rounds" in parameters(name) else "depth"
    deep = build(name, norm="none", **{said: 3}).double().eval()
    layers = deep(batch, rows=True).layers
    assert tuple(h.shape for h in layers) == tuple((16, d) for d in deep.d_layers) and len(layers) == 3
    for t in (1, 2, 3):
        each_row = {"distinct": False} if name in ROUNDS else {}
        flat = build(name, norm="none", readout="sum", **each_row, **{said: t}).double().eval()
        own = flat.state_dict()
        flat.load_state_dict(
            {k: v for k, v in deep.state_dict().items() if k in own and own[k].shape == v.shape}, False
        )
        if name == "gin":
            flat.eps.data = deep.eps.data[:t]
        found = flat(batch, rows=True)
        torch.testing.assert_close(found.layers[-1], layers[t - 1])
        if name not in ("graphconv", "neural_fingerprint"):  # whose rows are made from the states
            torch.testing.assert_close(found.graphs[:, -flat.d_layers[-1] :], layers[t - 1])

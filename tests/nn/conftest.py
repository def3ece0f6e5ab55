"""Random graphs for the core's tests: seeds in, batches out."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np
import pytest
import torch

import molgraph
import molgraph.nn.propagate
from molgraph.data.batch import BatchLevel, GraphBatch


@pytest.fixture
def unchecked() -> Iterator[ModuleType]:
    """``molgraph.nn.propagate`` without the shape checks of tests, into which the compiler cannot look."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "meta_path", [f for f in sys.meta_path if not type(f).__module__.startswith("jaxtyping")])
        patch.setattr(molgraph, "nn", molgraph.nn)  # importing anew binds the name anew
        for name in [name for name in sys.modules if f"{name}.".startswith("molgraph.nn.")]:
            patch.delitem(sys.modules, name)
        yield importlib.import_module("molgraph.nn.propagate")


@pytest.fixture
def random_batch() -> Callable[..., GraphBatch]:
    """A maker of batches of sparse random graphs; some have no bond, some no atom."""

    def make(seed: int, n_graphs: int = 6, n_atom_codes: int = 3, n_bond_codes: int = 2) -> GraphBatch:
        rng = np.random.default_rng(seed)
        sizes = rng.integers(0, 9, n_graphs)
        start = np.concatenate([[0], np.cumsum(sizes)])
        ends, kinds = [], []
        for first, size in zip(start[:-1], sizes, strict=True):
            for a in range(first, first + size):
                for b in range(a + 1, first + size):
                    if rng.random() < 0.35:
                        ends.append((a, b))
                        kinds.append(rng.integers(n_bond_codes))
        pairs = np.array(ends, np.int64).reshape(-1, 2)
        source, target = np.concatenate([pairs, pairs[:, ::-1]]).T
        n = len(pairs)
        order = np.argsort(target, kind="stable")
        place = np.empty(2 * n, np.int64)
        place[order] = np.arange(2 * n)
        reverse = place[np.roll(np.arange(2 * n), n)[order]] if n else place
        code = np.tile(np.array(kinds, np.int64), 2)[order]
        generator = torch.Generator().manual_seed(seed)
        atom_code = torch.from_numpy(rng.integers(n_atom_codes, size=start[-1]))
        tables = [torch.randn(n, width, generator=generator) for n, width in ((n_atom_codes, 5), (n_bond_codes, 4))]
        index = {"source": source[order].copy(), "target": target[order].copy(), "reverse": reverse, "code": code}
        arrays = {name: torch.from_numpy(values) for name, values in index.items()}
        spans = torch.from_numpy(np.searchsorted(target[order], start))
        atoms = BatchLevel(torch.from_numpy(start), {"code": atom_code}, tables[0])
        return GraphBatch(n_graphs, {"atom": atoms, "bond": BatchLevel(spans, arrays, tables[1])})

    return make

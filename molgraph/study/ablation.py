"""Set one hidden unit of all atoms to its usual value in a graph network, and measure which outputs change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.data.batch import collate
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.table import Table
from molgraph.nn.atom_encoder import AtomEncoder
from molgraph.nn.encoder import Encoder
from molgraph.train.inputs import graph_of_rows
from molgraph.train.method import GraphMethod

BATCH = 256  # molecules of a batch


@torch.no_grad()
def atom_states(encoder: Encoder, graphs: CachedGraphs) -> np.ndarray:
    """float64 [atoms, units]: the states of the atoms of all rows, in order, that the readout is given.

    Raises:
        UnsupportedError: an encoder that gives no states of atoms.
    """
    rows, states = graph_of_rows([graphs])[:, 0], list[np.ndarray]()
    for start in range(0, len(rows), BATCH):
        encoded = encoder.eval()(collate(graphs.store, rows[start : start + BATCH]), rows=True)
        h = next((level.h for level in encoded.rows if level.level == "atom"), None)
        if h is None:
            words = f"{type(encoder).__name__} gives no states of atoms, so it has no units to name"
            raise UnsupportedError(words, hint="name another model, such as gin or dmpnn")
        states.append(h.flatten(1).double().numpy())
    return np.concatenate(states)


@contextmanager
def ablated(encoder: AtomEncoder, unit: int, value: float) -> Iterator[None]:
    """Within, the readout of an encoder is given one value in the place of a unit of every atom."""

    def without(_: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        h: Tensor = args[0].clone()
        h[:, unit] = value
        return (h, *args[1:])

    handle = encoder.readout.register_forward_pre_hook(without)
    try:
        yield
    finally:
        handle.remove()


def can_ablate(encoder: Encoder) -> bool:
    """Whether what the encoder's readout is given are the states of atoms."""
    return isinstance(encoder, AtomEncoder) and encoder.readout is not None and not encoder.options


@torch.no_grad()
def ablation_change(method: GraphMethod, table: Table, graphs: CachedGraphs, units: Mapping[int, float]) -> np.ndarray:
    """float64 [units, n]: how far each row's output moves without a unit, in deviations of the output over the rows.

    The output is the prediction of the first target, in its units; of a pretrained encoder the molecule's vector.

    Args:
        method: fitted, whose encoder ``can_ablate``.
        table, graphs: n rows.
        units: those that are taken out one by one, each with the value that all atoms have then, such as its median.
    """
    encoder: Any = method.ready().network.encoder

    def output() -> np.ndarray:
        if method.ready().network.has_head:
            return method.predict_graphs(table, (graphs,)).value[:, :1].astype(np.float64)
        rows = graph_of_rows([graphs])[:, 0]
        pieces = np.array_split(rows, -(-len(rows) // BATCH))
        return np.concatenate([encoder.eval()(collate(graphs.store, part)).graphs.double().numpy() for part in pieces])

    whole, changes = output(), list[np.ndarray]()
    scale = np.sqrt(np.nanvar(whole, axis=0).sum()) or 1.0
    for unit, value in units.items():
        with ablated(encoder, unit, value):
            changes.append(np.linalg.norm(output() - whole, axis=1) / scale)
    return np.array(changes).reshape(len(changes), len(whole))

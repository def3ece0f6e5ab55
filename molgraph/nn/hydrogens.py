"""Add explicit hydrogens as atoms to a batch of molecules whose features count them."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from molgraph.base.packed import offsets_of
from molgraph.data.batch import BatchLevel, GraphBatch
from molgraph.data.feature_layout import ATOM_BLOCKS, atom_keys_of, atom_rows, bond_keys_of, bond_rows
from molgraph.nn.relations import once_a_batch

_FIRST = sum(ATOM_BLOCKS[:4])  # the columns of an atom's number of hydrogens begin here; the last means 5 or more
_COUNT = slice(_FIRST, _FIRST + ATOM_BLOCKS[4])
_ONE, _NONE = np.ones(1, np.int64), np.zeros(1, np.int64)
_HYDROGEN = atom_rows(atom_keys_of(_ONE, _ONE, _NONE, _NONE, _NONE, _NONE, _NONE, np.array([1.008])))
_BOND = bond_rows(bond_keys_of(_NONE, _NONE, _NONE, _NONE))  # single, not conjugated, in no ring


class WithHydrogens(NamedTuple):
    """A batch with hydrogens as atoms, after the other atoms of their molecule.

    Args:
        batch: the levels ``atom`` and ``bond``.
        atom: int64 [n], the new number of each atom that was there before.
    """

    batch: GraphBatch
    atom: Int[Tensor, " n"]


@once_a_batch
def with_hydrogens(batch: GraphBatch) -> WithHydrogens:
    """The batch that RDKit's ``AddHs`` and ``SanitizeMol`` would have led to; no molecule is read again.

    Args:
        batch: of molecules in the layout ``v2``. An atom of more than 5 hydrogens gets 5.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> full, atom = with_hydrogens(collate(featurize(["O", "CO"]), np.arange(2)))
        >>> full["atom"].offsets.tolist(), atom.tolist()
        ([0, 3, 9], [0, 3, 4])
    """
    atoms, bonds = batch["atom"], batch["bond"]
    assert atoms.table is not None and bonds.table is not None
    starts, graph = (t.numpy(force=True) for t in (atoms.offsets, batch.graph_of("atom")))
    source, target, reverse = (t.numpy(force=True) for t in (batch.source, batch.target, batch.reverse))
    counts = atoms.table[:, _COUNT].argmax(1).index_select(0, atoms.code).numpy(force=True)  # hydrogens of an atom
    before = offsets_of(np.bincount(graph, counts, batch.n_graphs).astype(np.int64))  # hydrogens of earlier molecules
    old = np.arange(len(graph)) + before[graph]
    parent, n_new, e = np.repeat(np.arange(len(graph)), counts), int(before[-1]), len(source)
    new = starts[graph[parent] + 1] + np.arange(n_new)
    ends = np.concatenate([old[target], new, old[parent]])
    order = np.argsort(ends, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    opposite = np.concatenate([reverse, e + n_new + np.arange(n_new), e + np.arange(n_new)])
    whole_starts = starts + before
    bond_starts = offsets_of(np.bincount(ends, minlength=len(graph) + n_new))[whole_starts]
    put = partial(torch.as_tensor, device=batch.source.device)

    plain = atoms.table.clone()  # a mask's row, which tells no number of hydrogens, stays as it is
    plain[:, _FIRST] = plain[:, _COUNT].sum(1)
    plain[:, _FIRST + 1 : _COUNT.stop] = 0
    codes = np.full(len(graph) + n_new, len(plain))
    codes[old] = atoms.code.numpy(force=True)
    kinds = np.concatenate([bonds.code.numpy(force=True), np.full(2 * n_new, len(bonds.table))])
    sources = np.concatenate([old[source], old[parent], new])
    index = {"source": sources[order], "target": ends[order], "reverse": place[opposite[order]], "code": kinds[order]}
    levels = {
        "atom": BatchLevel(put(whole_starts), {"code": put(codes)}, _and_row(plain, _HYDROGEN)),
        "bond": BatchLevel(
            put(bond_starts), {key: put(values) for key, values in index.items()}, _and_row(bonds.table, _BOND)
        ),
    }
    return WithHydrogens(GraphBatch(batch.n_graphs, levels), put(old))


def _and_row(table: Tensor, row: np.ndarray) -> Tensor:
    return torch.cat([table, torch.as_tensor(row, dtype=table.dtype, device=table.device)])

"""Graphs of a store in, one batch of tensors out: rows side by side, numbered over the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from molgraph.data.graphstore import GraphStore

T = TypeVar("T")
_OWN = {"atom": {"code"}, "bond": {"code", "source", "target", "reverse"}}
_SMALL_TABLE = 4096
_Picked = tuple[slice | np.ndarray, np.ndarray, np.ndarray]


@dataclass(frozen=True)
class GraphBatch:
    """Graphs side by side, row numbers counted over the whole batch.

    ``n`` atoms, ``e`` directed bonds, ``g`` graphs. Bonds are sorted by target atom. On the CPU,
    ``tensor.numpy()`` of any field is a view without a copy: index work is done there, before ``to``.

    Args:
        n_graphs: g.
        atom_code: int64 [n], row of ``atom_table``.
        atom_table: float32 [distinct atoms, d_atom].
        atom_offsets: int64 [g + 1].
        bond_code, bond_table, bond_offsets: likewise for directed bonds.
        source, target: int64 [e], atom rows.
        reverse: int64 [e], the row of the opposite bond.
        arrays: further arrays of a store's levels by level and name, such as ``atom.pos``.
    """

    n_graphs: int
    atom_code: Tensor
    atom_table: Tensor
    atom_offsets: Tensor
    bond_code: Tensor
    bond_table: Tensor
    bond_offsets: Tensor
    source: Tensor
    target: Tensor
    reverse: Tensor
    arrays: Mapping[str, Tensor] = field(default_factory=dict)
    _made: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    @property
    def n_atoms(self) -> int:
        """n."""
        return self.atom_code.shape[0]

    @property
    def n_bonds(self) -> int:
        """e, the number of directed bonds."""
        return self.source.shape[0]

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """What ``make`` gives, made at the first call with this key and kept with the batch."""
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]

    @property
    def atom_features(self) -> Tensor:
        """float32 [n, d_atom], written out."""
        return self.once("atom_features", lambda: self.atom_table.index_select(0, self.atom_code))

    @property
    def bond_features(self) -> Tensor:
        """float32 [e, d_bond], written out."""
        return self.once("bond_features", lambda: self.bond_table.index_select(0, self.bond_code))

    @property
    def graph_of(self) -> Tensor:
        """int64 [n], the graph of each atom."""
        return self.once("graph_of", self._graph_of)

    def _graph_of(self) -> Tensor:
        graphs = torch.arange(self.n_graphs, device=self.atom_offsets.device)
        return torch.repeat_interleave(graphs, self.atom_offsets.diff(), output_size=self.n_atoms)

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> GraphBatch:
        """The batch on another device, with all that was made with it; the same object where it is there already."""
        if self.atom_code.device == torch.device(device):
            return self
        return _mapped(self, lambda tensor: tensor.to(device, non_blocking=non_blocking))

    def pin_memory(self) -> GraphBatch:
        """The batch in page-locked memory, from which a copy to a GPU need not be waited for."""
        return _mapped(self, Tensor.pin_memory)


def _mapped(value: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same nest of records, tuples, lists and dicts with every tensor changed."""
    if isinstance(value, Tensor):
        return change(value)
    if isinstance(value, dict):
        return {key: _mapped(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [_mapped(item, change) for item in value]
    if isinstance(value, tuple):
        items = [_mapped(item, change) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{f.name: _mapped(getattr(value, f.name), change) for f in fields(value) if f.init})
    return value


def collate(store: GraphStore, graphs: np.ndarray) -> GraphBatch:
    """Put graphs of a store side by side, without a Python loop over them.

    Args:
        store: packed graphs.
        graphs: int64 [g], numbers of graphs in any order; one may come several times.

    Raises:
        IndexError: a number outside ``0 .. len(store) - 1``.

    Example:
        >>> from molgraph.data.featurize import featurize
        >>> batch = collate(featurize(["CO", "C"]), np.array([1, 0]))
        >>> batch.atom_offsets.tolist(), batch.source.tolist(), batch.target.tolist()
        ([0, 1, 3], [2, 1], [1, 2])
    """
    graphs = np.asarray(graphs, dtype=np.int64)
    if len(graphs) and not 0 <= graphs.min() <= graphs.max() < len(store):
        raise IndexError(f"graphs {graphs.min()} to {graphs.max()} of a store of {len(store)}")
    atom, bond = store.levels["atom"], store.levels["bond"]
    contiguous = _contiguous(graphs)
    atoms, _, atom_offsets = _rows(atom.offsets, graphs, contiguous)
    bonds, n_bonds, bond_offsets = _rows(bond.offsets, graphs, contiguous)
    first_atom, first_bond = atom_offsets[:-1].repeat(n_bonds), bond_offsets[:-1].repeat(n_bonds)
    of_bond, tensor = bond.arrays, torch.from_numpy
    atom_code, atom_table = _coded(atom.arrays["code"][atoms], store.tables["atom"])
    bond_code, bond_table = _coded(of_bond["code"][bonds], store.tables["bond"])
    further = {
        f"{name}.{field}": tensor(np.array(level.arrays[field][atoms if level is atom else bonds]))
        for name, level in (("atom", atom), ("bond", bond))
        if len(level.arrays) > len(_OWN[name])
        for field in level.arrays.keys() - _OWN[name]
    }
    return GraphBatch(
        n_graphs=len(graphs),
        atom_code=tensor(atom_code),
        atom_table=tensor(atom_table),
        atom_offsets=tensor(atom_offsets),
        bond_code=tensor(bond_code),
        bond_table=tensor(bond_table),
        bond_offsets=tensor(bond_offsets),
        source=tensor(of_bond["source"][bonds] + first_atom),
        target=tensor(of_bond["target"][bonds] + first_atom),
        reverse=tensor(of_bond["reverse"][bonds] + first_bond),
        arrays=further,
    )


def _coded(code: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes as int64 with their table; of a table far longer than the batch, only the rows that occur."""
    if len(table) <= max(4 * len(code), _SMALL_TABLE):
        return code.astype(np.int64), table
    used, code = np.unique(code, return_inverse=True)
    return code.astype(np.int64), table[used]


def _contiguous(graphs: np.ndarray) -> bool:
    n = len(graphs)
    return n > 0 and graphs[-1] - graphs[0] == n - 1 and bool((graphs[1:] > graphs[:-1]).all())


def _rows(offsets: np.ndarray, graphs: np.ndarray, contiguous: bool) -> _Picked:
    """Which rows of a level these graphs have, how many each, and their offsets in the batch."""
    new = np.zeros(len(graphs) + 1, np.int64)
    if contiguous:
        first, last = int(graphs[0]), int(graphs[-1]) + 1
        np.subtract(offsets[first + 1 : last + 1], offsets[first], out=new[1:])
        return slice(offsets[first], offsets[last]), new[1:] - new[:-1], new
    starts = offsets[graphs]
    counts = offsets[graphs + 1] - starts
    np.cumsum(counts, out=new[1:])
    return np.arange(new[-1]) + (starts - new[:-1]).repeat(counts), counts, new

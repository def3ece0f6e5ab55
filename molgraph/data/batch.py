"""Put graphs of a store side by side in one batch of tensors, rows numbered over the whole batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor

from molgraph.base.packed import ranges
from molgraph.data.graph_store import GraphStore

T = TypeVar("T")
_SMALL_TABLE = 4096


@contextmanager
def ordinary_tensors() -> Iterator[None]:
    """Leave inference mode, in which tensors are made that no gradient can be taken through, for what is kept."""
    needs_grad = torch.is_grad_enabled()  # which leaving inference mode would turn on
    with torch.inference_mode(False), torch.set_grad_enabled(needs_grad):
        yield


@dataclass(frozen=True)
class BatchLevel:
    """The rows of one level of all graphs of a batch.

    Args:
        offsets: int64 [g + 1]; graph i's rows are ``offsets[i]:offsets[i + 1]``.
        arrays: each of one row for each row of the level; those that number rows of a level are int64 and count over
            the whole batch.
        table: float32 [distinct rows, width], of which ``arrays["code"]`` names a row each; None without features.
    """

    offsets: Tensor
    arrays: Mapping[str, Tensor]
    table: Tensor | None = None

    def __len__(self) -> int:
        return next(iter(self.arrays.values())).shape[0]

    @property
    def code(self) -> Tensor:
        """int64 [rows], row of ``table``."""
        return self.arrays["code"]


@dataclass(frozen=True)
class GraphBatch:
    """Graphs side by side.

    A molecule batch has the levels ``atom`` and ``bond`` (directed bonds, sorted by target atom, with the arrays
    ``source``, ``target`` and ``reverse``). On the CPU, ``tensor.numpy()`` of any array is a view without a copy:
    index work is done there, before ``to``.

    Args:
        n_graphs: g.
        levels: levels by name.

    Example:
        >>> from molgraph.data.featurize import featurize
        >>> batch = collate(featurize(["CO", "C"]), np.array([0, 1]))
        >>> len(batch["atom"]), batch["bond"].arrays["source"].tolist(), batch.graph_of("atom").tolist()
        (3, [1, 0], [0, 0, 1])
    """

    n_graphs: int
    levels: Mapping[str, BatchLevel]
    _made: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, level: str) -> BatchLevel:
        return self.levels[level]

    @property
    def n_atoms(self) -> int:
        """Number of atoms."""
        return len(self["atom"])

    @property
    def n_bonds(self) -> int:
        """Number of directed bonds."""
        return len(self["bond"])

    @property
    def source(self) -> Tensor:
        """int64 [n_bonds], the atom that each directed bond leaves."""
        return self["bond"].arrays["source"]

    @property
    def target(self) -> Tensor:
        """int64 [n_bonds], the atom at which each directed bond arrives, ascending."""
        return self["bond"].arrays["target"]

    @property
    def reverse(self) -> Tensor:
        """int64 [n_bonds], the opposite of each directed bond."""
        return self["bond"].arrays["reverse"]

    def once(self, key: Any, make: Callable[[], T]) -> T:
        """The value of ``make``, made at the first call with this key and kept with the batch.

        It is made of ordinary tensors, since a batch that is predicted first may be trained on later.
        """
        if key not in self._made:
            with ordinary_tensors():
                self._made[key] = make()
        return self._made[key]

    def features(self, level: str) -> Tensor:
        """float32 [rows, width]: the features of a level's rows, written out."""
        level_data = self[level]
        if level_data.table is None:
            raise KeyError(f"the level {level!r} of this batch has no features")
        table = level_data.table
        return self.once(("features", level), lambda: table.index_select(0, level_data.code))

    def graph_of(self, level: str) -> Tensor:
        """int64 [rows], the graph of each row of a level."""
        return self.once(("graph_of", level), lambda: self._graph_of(self[level]))

    def _graph_of(self, level: BatchLevel) -> Tensor:
        graphs = torch.arange(self.n_graphs, device=level.offsets.device)
        return torch.repeat_interleave(graphs, level.offsets.diff(), output_size=len(level))

    def with_level(self, name: str, **changes: Any) -> GraphBatch:
        """The batch with a level's ``offsets`` or ``table`` or some of its arrays replaced.

        All that was made with the old batch (relations, features) is left behind.
        """
        old = self[name]
        fields = {key: changes.pop(key) for key in ("offsets", "table") if key in changes}
        level = replace(old, arrays={**old.arrays, **changes}, **fields)
        return GraphBatch(self.n_graphs, {**self.levels, name: level})

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> GraphBatch:
        """The batch on another device, with all that was made with it; the same object where it is there already."""
        if all(level.offsets.device == torch.device(device) for level in self.levels.values()):
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

    Arrays that a level declares as row numbers (``Level.index``) are counted over the whole batch.

    Args:
        store: packed graphs.
        graphs: int64 [g], numbers of graphs in any order; one may come several times.

    Raises:
        IndexError: a number outside ``0 .. len(store) - 1``.

    Example:
        >>> from molgraph.data.featurize import featurize
        >>> batch = collate(featurize(["CO", "C"]), np.array([1, 0]))
        >>> batch["atom"].offsets.tolist(), batch.source.tolist(), batch.target.tolist()
        ([0, 1, 3], [2, 1], [1, 2])
    """
    graphs = np.asarray(graphs, dtype=np.int64)
    if len(graphs) and not 0 <= graphs.min() <= graphs.max() < len(store):
        raise IndexError(f"graphs {graphs.min()} to {graphs.max()} of a store of {len(store)}")
    starts = {name: level.offsets for name, level in store.levels.items()}
    picked = {name: ranges(of[graphs], of[graphs + 1]) for name, of in starts.items()}
    levels = {}
    for name, level in store.levels.items():
        rows, offsets = picked[name]
        first = {of: picked[of][1][:-1].repeat(np.diff(offsets)) for of in set(level.index.values())}
        arrays, table = {}, store.tables.get(name)
        for key, values in level.arrays.items():
            of = level.index.get(key)
            if key == "code" and table is not None:
                array, table = _coded(values[rows], table)
            elif of is not None:
                array = values[rows] + first[of].reshape(-1, *[1] * (values.ndim - 1))
            else:
                array = values[rows]
            arrays[key] = torch.from_numpy(array)
        levels[name] = BatchLevel(torch.from_numpy(offsets), arrays, None if table is None else torch.from_numpy(table))
    return GraphBatch(len(graphs), levels)


def _coded(code: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Codes as int64 with their table; of a table far longer than the batch, only the rows that occur."""
    if len(table) <= max(4 * len(code), _SMALL_TABLE):
        return code.astype(np.int64), table
    used, code = np.unique(code, return_inverse=True)
    return code.astype(np.int64), table[used]

"""A batch of graphs as tensors; torch-geometric's only door on the data floor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch import Tensor

T = TypeVar("T")


@dataclass(frozen=True)
class GraphBatch:
    """Graphs side by side, row numbers counted over the whole batch.

    ``n`` atoms, ``e`` directed bonds, ``g`` graphs. Bonds are sorted by target atom.

    Args:
        n_graphs: g.
        atom_code: int64 [n], row of ``atom_table``.
        atom_table: float32 [distinct atoms, d_atom].
        atom_offsets: int64 [g + 1].
        bond_code, bond_table, bond_offsets: likewise for directed bonds.
        source, target: int64 [e], atom rows.
        reverse: int64 [e], the row of the opposite bond.
        arrays: further named tensors (positions, partial charges, ...).
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
        return self.once(
            "graph_of", lambda: torch.repeat_interleave(torch.arange(self.n_graphs), self.atom_offsets.diff())
        )

"""Fit a reference value of each element to energies by least squares, such as that of a free atom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from molgraph.base.errors import DamagedModelError, UnsupportedError
from molgraph.base.finite import NO_VALUE
from molgraph.data.composition import compositions
from molgraph.data.graph_cache import CachedGraphs
from molgraph.train.inputs import Input


@dataclass(frozen=True)
class References:
    """What an atom of each element adds to each target, whatever surrounds it.

    ``y = sum over atoms i of value[element of i] + rest``, by least squares over the training part. The scale of
    an extensive target, such as an energy, is so extensive as well: two molecules far apart have the sum of both.

    Args:
        value: float64 [elements, t], in the targets' units; 0 for an element that no labelled row of a target has.
        known: bool [elements], those that the labelled rows of every target have.
    """

    value: np.ndarray
    known: np.ndarray

    @classmethod
    def fit(cls, counts: np.ndarray, y: np.ndarray, row_weights: np.ndarray | None = None) -> References:
        """Fit one value an element and target; where elements always come together, the smallest values.

        Args:
            counts: float64 [n, elements], the atoms of each element.
            y: float64 [n, t], NaN where there is no value; a target without any has zeros.
            row_weights: float64 [n], of the squared errors.

        Example:
            >>> made = References.fit(np.array([[1.0, 0, 0], [0, 2, 0]]), np.array([[-3.0], [-1.0]]))
            >>> made.value.ravel().round(6).tolist(), made.known.tolist()
            ([-3.0, -0.5, 0.0], [True, True, False])
        """
        value, known = np.zeros((counts.shape[1], y.shape[1])), np.ones(counts.shape[1], dtype=bool)
        root = np.ones(len(y)) if row_weights is None else np.sqrt(row_weights)
        for j in range(y.shape[1]):
            rows = ~np.isnan(y[:, j])
            if not rows.any():
                continue
            here = counts[rows].any(axis=0)
            a, b = counts[rows][:, here] * root[rows, None], y[rows, j] * root[rows]
            value[here, j] = np.linalg.lstsq(a, b, rcond=None)[0]
            known &= here
        return cls(value, known)

    def total(self, counts: np.ndarray | None) -> np.ndarray:
        """float64 [n, t]: the sums over the atoms of rows, from float64 [n, elements]."""
        if counts is None:
            raise ValueError("these targets have a reference of each element: pass the counts of elements")
        return counts @ self.value

    def to_arrays(self) -> dict[str, np.ndarray]:
        """The arrays of a model file."""
        return {"reference.value": self.value, "reference.known": self.known.astype(np.uint8)}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray], n_elements: int, n_targets: int) -> References | None:
        """From the arrays of a model file, None where it has none.

        Raises:
            DamagedModelError: other shapes.
        """
        if "reference.value" not in arrays:
            return None
        value = np.asarray(arrays["reference.value"], dtype=np.float64)
        known = np.asarray(arrays.get("reference.known", ()))
        if value.shape != (n_elements, n_targets) or known.shape != (n_elements,):
            words = f"the model's references of elements have shape {value.shape}, expected ({n_elements}, {n_targets})"
            raise DamagedModelError(words)
        return cls(value, known.astype(bool))


def counts_of(inputs: Sequence[Input], graphs: Sequence[CachedGraphs]) -> np.ndarray:
    """float64 [graphs, elements]: the composition of each graph of a model's one input.

    Raises:
        UnsupportedError: several inputs, or rows that are no atoms.
    """
    maker = inputs[0].featuriser
    if len(inputs) > 1 or not maker.elements:
        read = " and ".join(f"{input_.column} ({input_.kind})" for input_ in inputs)
        hint = "choose another head, such as params.head=perceptron"
        raise UnsupportedError(f"a reference of each element needs one column of atoms, and the model reads {read}",
                               hint=hint)  # fmt: skip
    return compositions(graphs[0].store, maker)


def mark_unknown(
    references: Sequence[References], inputs: Sequence[Input], graphs: Sequence[CachedGraphs]
) -> list[CachedGraphs]:
    """The graphs, those with a status and a reason that hold an element without a reference in one of these."""
    unknown = ~np.logical_and.reduce([reference.known for reference in references])
    counts, (cached,), names = counts_of(inputs, graphs)[:, unknown], graphs, inputs[0].featuriser.elements
    symbols = [name for name, odd in zip(names, unknown, strict=True) if odd]
    status, reason = cached.store.status.copy(), cached.store.reason.copy()
    for graph in np.flatnonzero(counts.any(axis=1)):
        elements = ", ".join(symbols[i] for i in np.flatnonzero(counts[graph]))
        status[graph], reason[graph] = NO_VALUE, f"no reference value of {elements}: no training row has one"
    return [replace(cached, store=replace(cached.store, status=status, reason=reason))]

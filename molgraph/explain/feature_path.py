"""Attribute a network's answer to the features of atoms and bonds by integrated gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from molgraph.data.batch import collate
from molgraph.data.table import make_table
from molgraph.explain.answers import network_score
from molgraph.train.inference import FittedNetworks
from molgraph.train.rdkit_features import for_model
from molgraph.train.samples import InputBatch, Sample

POINTS = (16, 64, 256, 1024)  # of the path, until the sum of values meets the difference of the answers
ROWS = 8_000  # atoms that are computed together


class FeaturePath:
    """The answers of a network for molecules whose features of atoms and bonds are any numbers.

    Each atom and each directed bond has a row of features of its own, which a gradient is taken to. Features of
    other levels, descriptors and the graph stay as they are.

    Args:
        fitted: a network that predicts molecules from features of atoms.
        smiles: n molecules that can be read.
        columns: the output column of each.
        place: the target's number.
    """

    def __init__(self, fitted: FittedNetworks, smiles: Sequence[str], columns: Sequence[int], place: int) -> None:
        self.fitted, self.n, self.place = fitted, len(smiles), place
        self.store = fitted.inputs[0].featuriser.featurise([*smiles], spec=fitted.inputs[0].spec)
        self.columns = torch.tensor(columns, dtype=torch.int64)
        one = collate(self.store, np.arange(self.n))
        self.levels = [name for name in ("atom", "bond") if name in one.levels and one[name].table is not None]
        self.x: dict[str, Tensor] = {name: one.features(name) for name in self.levels}
        self.graph_of = {name: one.graph_of(name) for name in self.levels}
        self.ends = (one.source, one.target) if "bond" in self.levels else None
        table = for_model(make_table([*smiles]), fitted.descriptors.names)
        extra = fitted.descriptors.apply(table.features, table.feature_names)
        self.extra = None if extra is None else torch.from_numpy(np.nan_to_num(extra))

    def answers(self, x: Mapping[str, Tensor], shares: Tensor) -> Tensor:
        """float [k, n]: the answers where features are ``share * x``, for float [k] shares."""
        k = len(shares)
        batch = collate(self.store, np.tile(np.arange(self.n), k))
        for name in self.levels:
            rows = (shares.view(-1, 1, 1) * x[name]).flatten(0, 1)
            batch = batch.with_level(name, table=rows, code=torch.arange(len(rows)))
        extra = None if self.extra is None else self.extra.repeat(k, 1)
        raw, _ = self.fitted.network(Sample((InputBatch(batch, None),), extra, None, None))
        return network_score(self.fitted, raw, self.columns.repeat(k), self.place).view(k, self.n)

    def values(
        self, x: Mapping[str, Tensor], points: int, *, times: Mapping[str, Tensor] | None = None, twice: bool = False
    ) -> dict[str, Tensor]:
        """Integrated gradients from zero features, float [rows of the level] each, summed over features.

        Sundararajan, Taly and Yan 2017, equation 1: ``x_i int_0^1 df(a x)/dx_i da``, by Gauss and Legendre. ``times``
        stands for the first ``x_i`` where it is given; ``twice``: whether the values are differentiated again.
        """
        at, weights = np.polynomial.legendre.leggauss(points)
        shares = torch.tensor((at + 1) / 2, dtype=torch.float32)
        by = torch.tensor(weights / 2, dtype=torch.float32) / shares  # d/dx is ``share`` times d/d(share x)
        asked = [x[name] if x[name].requires_grad else x[name].detach().requires_grad_() for name in self.levels]
        leaves = dict(zip(self.levels, asked, strict=True))
        slopes = {name: torch.zeros_like(x[name]) for name in self.levels}
        for part in torch.arange(points).split(max(1, ROWS // max(len(leaves["atom"]), 1))):
            total = (by[part, None] * self.answers(leaves, shares[part])).sum()
            grads = torch.autograd.grad(total, asked, create_graph=twice, allow_unused=True)
            for name, slope in zip(self.levels, grads, strict=True):
                slopes[name] = slopes[name] if slope is None else slopes[name] + slope
        return {name: ((leaves if times is None else times)[name] * slopes[name]).sum(1) for name in self.levels}

    def of_atoms(self, values: Mapping[str, Tensor]) -> Tensor:
        """float [atoms]: an atom's own value, and half of that of each directed bond at it."""
        atoms = values["atom"]
        if self.ends is not None:
            for end in self.ends:
                atoms = atoms.index_add(0, end, values["bond"] / 2)
        return atoms


class Integrated(NamedTuple):
    """Integrated gradients of one molecule.

    Args:
        atoms: float64 [atoms], bonds' halves included; they sum to ``answer - base`` within ``gap``.
        bonds: float64 [atoms], those halves.
        answer, base: the network's answer for the molecule and for zero features.
        points: of the path.
    """

    atoms: np.ndarray
    bonds: np.ndarray
    answer: float
    base: float
    points: int

    @property
    def gap(self) -> float:
        """How far the sum is from the difference of the answers."""
        return abs(float(self.atoms.sum()) - (self.answer - self.base))


def integrate(
    fitted: FittedNetworks, smiles: Sequence[str], columns: Sequence[int], place: int, tolerance: float
) -> list[Integrated]:
    """Integrated gradients of molecules; more points where a sum is off by more than ``tolerance * sum |values|``."""
    results: dict[int, Integrated] = {}
    for points in POINTS:
        left = [i for i in range(len(smiles)) if i not in results or not _close(results[i], tolerance)]
        for part in _parts(smiles, left, points):
            path = FeaturePath(fitted, [smiles[i] for i in part], [columns[i] for i in part], place)
            with torch.enable_grad():
                values = path.values(path.x, points)
            with torch.no_grad():
                answer, base = path.answers(path.x, torch.tensor([1.0, 0.0])).double().tolist()
            atoms, nodes = path.of_atoms(values).detach().double().numpy(), values["atom"].detach().double().numpy()
            for k, i in enumerate(part):
                here = (path.graph_of["atom"] == k).numpy()
                results[i] = Integrated(atoms[here], (atoms - nodes)[here], answer[k], base[k], points)
    return [results[i] for i in range(len(smiles))]


def _close(found: Integrated, tolerance: float) -> bool:
    rounding = 3e-7 * (abs(found.answer) + abs(found.base))  # of single precision
    return found.gap <= tolerance * float(np.abs(found.atoms).sum()) + rounding


def _parts(smiles: Sequence[str], left: Sequence[int], points: int) -> list[list[int]]:
    """The molecules that are computed together: their text is as long as their atoms are many, or longer."""
    parts: list[list[int]] = []
    room = 0
    for i in left:
        if not parts or room < len(smiles[i]) * points:
            parts.append([])
            room = ROWS
        parts[-1].append(i)
        room -= len(smiles[i]) * points
    return parts

"""Measure how far an attribution moves under the worst small change of the features that keeps the prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import torch
from scipy.stats import spearmanr
from torch import Tensor

from molgraph.explain.feature_path import FeaturePath
from molgraph.explain.smooth import smoothed
from molgraph.train.inference import FittedNetworks

POINTS, STEPS = 4, 20  # of the path of the attacked map; of the attack
ATTACK = 30.0  # beta while a map of ReLUs is attacked, whose second derivative is 0
KEPT = 0.01  # the prediction moves by less: standard deviations of a number, log-odds of a class


class Fragility(NamedTuple):
    """The worst case that was found for a molecule.

    Args:
        moved: 1 less the Spearman correlation of the atoms' values before and after; 0 where none moved, at most 2; NaN
            for fewer than 3 atoms.
        answer: by how much the prediction moved, in standard deviations of a number or log-odds of a class.
        size: of the change, as a share of the size of the features.
    """

    moved: float
    answer: float
    size: float


def fragility(
    fitted: FittedNetworks, smiles: Sequence[str], columns: Sequence[int], place: int, *, beta: float, size: float
) -> list[Fragility]:
    """Attack the integrated gradients of molecules.

    Dombrowski et al. 2019, "Explanations can be manipulated and geometry is to blame", equation 4: find ``x'`` near x
    whose map is near a chosen one, here the map with its ranks reversed, where the prediction is that of x. Of all
    steps in which it is within 0.01, the one that moved the ranks furthest counts. Features of atoms and bonds are
    moved as numbers, so it is a worst case and no molecule.

    Args:
        fitted: the network.
        smiles: molecules that can be read.
        columns: the output column of each.
        place: the target's number.
        beta: of the softplus in the map that is attacked; 0 for ReLU. The prediction is that of the network itself.
        size: of the change, at most, as a share of the Euclidean size of a molecule's features.
    """
    if not smiles:
        return []
    path = FeaturePath(fitted, smiles, columns, place)
    scale = float(fitted.outputs.scale[place])
    with torch.enable_grad():
        before, x = _map(path, path.x, beta, beta), path.x
        target = _reversed(path, before)
        with torch.no_grad():
            answer = path.answers(x, torch.ones(1))[0]
        most = size * _norm(path, x)
        moved = {name: torch.zeros_like(value) for name, value in x.items()}
        best = [Fragility(0.0 if np.isfinite(rank) else np.nan, 0.0, 0.0) for rank in _moved(path, before, before)]
        for _ in range(STEPS):
            at = {name: (value + moved[name]).detach().requires_grad_() for name, value in x.items()}
            now = _map(path, at, beta, beta if beta > 0 else ATTACK, twice=True)
            away = torch.zeros(path.n).index_add(0, path.graph_of["atom"], (now - target).square())
            slope = _slopes(path, away.sum(), at)
            keeps = _slopes(path, path.answers(at, torch.ones(1)).sum(), at)
            slope = _less(path, slope, keeps, _dot(path, slope, keeps))  # along the surface of equal predictions
            step = 3 * most / STEPS / _norm(path, slope).clamp(min=1e-12)
            moved = _less(path, moved, slope, step, by_size=False)
            for _ in range(2):  # back to that surface, within the ball
                with torch.no_grad():
                    off = path.answers(_sum(x, moved), torch.ones(1))[0] - answer
                moved = _less(path, moved, keeps, off)
                moved = _scaled(path, moved, (most / _norm(path, moved).clamp(min=1e-12)).clamp(max=1.0))
            with torch.no_grad():
                off = (path.answers(_sum(x, moved), torch.ones(1))[0] - answer).abs() / scale
            ranks = _moved(path, before, _map(path, _sum(x, moved), beta, beta))
            share = (_norm(path, moved) / _norm(path, x).clamp(min=1e-12)).tolist()
            for i, (rank, change) in enumerate(zip(ranks, off.tolist(), strict=True)):
                if change < KEPT and rank > best[i].moved:
                    best[i] = Fragility(float(rank), change, share[i])
    return best


def _map(path: FeaturePath, x: Mapping[str, Tensor], beta: float, inside: float, *, twice: bool = False) -> Tensor:
    """float [atoms]: the map, with softplus of beta ``inside`` where its gradient is asked for."""
    with smoothed(inside if twice else beta):
        atoms = path.of_atoms(path.values(x, POINTS, twice=twice, times=path.x))
    return atoms if twice else atoms.detach()


def _reversed(path: FeaturePath, values: Tensor) -> Tensor:
    """The values of each molecule given to its atoms in reverse order of rank."""
    output = values.clone()
    for i in range(path.n):
        here = torch.nonzero(path.graph_of["atom"] == i)[:, 0]
        order = here[values[here].argsort()]
        output[order] = values[order.flip(0)]
    return output


def _moved(path: FeaturePath, before: Tensor, after: Tensor) -> np.ndarray:
    """float64 [n]: 1 less the rank correlation of each molecule's values."""
    graph, shifts = path.graph_of["atom"].numpy(), np.full(path.n, np.nan)
    for i in range(path.n):
        a, b = before.numpy()[graph == i], after.numpy()[graph == i]
        if len(a) > 2 and np.ptp(a) > 0 and np.ptp(b) > 0:
            shifts[i] = 1 - spearmanr(a, b).statistic
    return shifts


def _slopes(path: FeaturePath, total: Tensor, x: Mapping[str, Tensor]) -> dict[str, Tensor]:
    grads = torch.autograd.grad(total, [x[name] for name in path.levels], allow_unused=True)
    pairs = zip(path.levels, grads, strict=True)
    return {name: torch.zeros_like(x[name]) if slope is None else slope for name, slope in pairs}


def _dot(path: FeaturePath, a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> Tensor:
    """float [n]: the inner product of each molecule's rows, of all levels."""
    total = torch.zeros(path.n)
    for name in path.levels:
        total = total.index_add(0, path.graph_of[name], (a[name].detach() * b[name].detach()).sum(1))
    return total


def _norm(path: FeaturePath, x: Mapping[str, Tensor]) -> Tensor:
    return _dot(path, x, x).sqrt()


def _less(
    path: FeaturePath, a: Mapping[str, Tensor], b: Mapping[str, Tensor], by: Tensor, *, by_size: bool = True
) -> dict[str, Tensor]:
    """``a - by b``; ``by`` divided by the squared size of b, where ``by_size``."""
    by = by / _dot(path, b, b).clamp(min=1e-12) if by_size else by
    return {name: a[name] - by[path.graph_of[name]][:, None] * b[name] for name in path.levels}


def _scaled(path: FeaturePath, a: Mapping[str, Tensor], by: Tensor) -> dict[str, Tensor]:
    return {name: by[path.graph_of[name]][:, None] * a[name] for name in path.levels}


def _sum(a: Mapping[str, Tensor], b: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: (value + b[name]).detach() for name, value in a.items()}

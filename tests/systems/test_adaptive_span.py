"""Attention heads that learn how many bonds away they look: the mask by hand, and planted radii."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import shortest_path

from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.nn.attention import attend_all
from molgraph.nn.hop_span import LARGEST, RAMP, HopSpan, hop_distances
from molgraph.nn.size_groups import size_groups
from tests.systems.effect import Effect
from tests.tiny import series

RADII, SEEDS = (1, 2, 3, 4), (0, 1, 2, 3, 4)
SMILES = [*map(str, series(48).smiles), "CCO.O", "C"]
BATCH = collate(featurize(SMILES), np.arange(len(SMILES)))


@cache
def paths() -> np.ndarray:
    """float64 [n_atoms, n_atoms], the bonds of a shortest path; infinite between molecules."""
    bonds = np.zeros((BATCH.n_atoms, BATCH.n_atoms))
    bonds[BATCH.source.numpy(), BATCH.target.numpy()] = 1
    return np.asarray(shortest_path(bonds, unweighted=True))


@pytest.mark.system("adaptive-attention-span", rung="exact")
def test_a_soft_mask_of_shortest_paths_is_normalised_with_the_softmax(off: str) -> None:
    """Equations 3 to 5 by matrices of all atoms; a span of the whole molecule is plain attention."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, BATCH.n_atoms, 2, 5).double()
    groups, span = size_groups(BATCH), HopSpan(2).double()
    with torch.no_grad():
        span.value.copy_(torch.tensor([0.7, 3.2]) / LARGEST)
        bias = [each.double() for each in span(hop_distances(BATCH))]
        made = attend_all(q, k, v, groups, None if off else bias)
        mask = np.clip((RAMP + np.array([0.7, 3.2])[:, None, None] - paths()) / RAMP, 0, 1)
        weights = torch.from_numpy(mask) * (torch.einsum("ihd,jhd->hij", q, k) / 5**0.5).exp()
        expected = torch.einsum("hij,jhd->ihd", weights / weights.sum(dim=2, keepdim=True), v)
        torch.testing.assert_close(made, expected, atol=1e-6, rtol=0)
        span.value.fill_(1.0)
        whole = [row for row, text in enumerate(SMILES) if "." not in text and paths_end(row) <= LARGEST]
        own = torch.isin(BATCH.graph_of("atom"), torch.tensor(whole))
        far = attend_all(q, k, v, groups, [each.double() for each in span(hop_distances(BATCH))])
    torch.testing.assert_close(far[own], attend_all(q, k, v, groups)[own], atol=1e-6, rtol=0)


def paths_end(row: int) -> float:
    """The longest of a molecule's shortest paths."""
    first, last = BATCH["atom"].offsets[row : row + 2].tolist()
    return float(paths()[first:last, first:last].max())


def learned(radius: int, seed: int, *, train: bool) -> float:
    """The bonds at which the mask is a half, trained on means over all atoms up to a radius."""
    torch.manual_seed(seed)
    near = torch.from_numpy((paths() <= radius).astype(np.float32))
    span, zero, groups = HopSpan(1), torch.zeros(BATCH.n_atoms, 1, 4), size_groups(BATCH)
    line = torch.nn.Linear(4, 4)
    optimiser = torch.optim.Adam([{"params": span.parameters(), "lr": 0.01}, {"params": line.parameters(), "lr": 0.03}])
    for _ in range(120 if train else 0):
        x = torch.randn(BATCH.n_atoms, 4)
        y = near @ x / near.sum(dim=1, keepdim=True)
        made = attend_all(zero, zero, line(x).unsqueeze(1), groups, span(hop_distances(BATCH)))[:, 0]
        optimiser.zero_grad()
        ((made - y).square().mean() / y.var() + span.penalty).backward()
        optimiser.step()
    return span.z.item() + RAMP / 2


@pytest.mark.system("adaptive-attention-span", rung="works")
def test_spans_find_the_radius_of_a_target(off: str, effect: Effect) -> None:
    """Radii of 1 to 4 bonds, 5 seeds each; the twin's span is not trained."""
    ends = {radius: [learned(radius, seed, train=not off) for seed in SEEDS] for radius in RADII}
    shares = [float(np.mean([abs(ends[r][seed] - r - 0.5) <= 1 for r in RADII])) for seed in SEEDS]
    beside = {f"half of the mask, radius {radius}": values for radius, values in ends.items()}
    effect("share of radii found within a bond", shares, at_least=0.8, beside=beside)

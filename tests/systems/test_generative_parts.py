"""Density ratios split into parts and their combination: of Gaussians, and of molecules with exchanged parts."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from molgraph.data.sources import builtin
from molgraph.evaluate.generation.factorised import PARTS, Ratios, factorised_ratios, molecule_parts
from molgraph.evaluate.generation.sample import describe
from tests.systems.effect import Effect

N = 4_000


def gaussian(cross: float, shift: float) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of two parts of two dimensions."""
    covariance = np.eye(4)
    covariance[:2, 2:] = covariance[2:, :2] = cross * np.eye(2)
    covariance[0, 1] = covariance[1, 0] = 0.3
    return np.array([shift, 0.0, 0.0, -shift]), covariance


@pytest.mark.system("factorgan", rung="exact")
def test_the_terms_add_up_to_the_ratio_of_two_gaussians(off: str) -> None:
    """Each term and their sum against the densities; without the term of the combination the sum is another one."""
    rng = np.random.default_rng(0)
    p, q = gaussian(0.6, 0.3), gaussian(-0.3, 0.0)
    x, y = (rng.multivariate_normal(*each, size=N) for each in (p, q))
    found = factorised_ratios([x[:, :2], x[:, 2:]], [y[:, :2], y[:, 2:]])

    def log_ratio(rows: slice) -> np.ndarray:
        densities = (multivariate_normal(mean[rows], of[rows, rows]) for mean, of in (p, q))
        one, other = (each.logpdf(y[:, rows]) for each in densities)
        return np.asarray(one - other)

    whole, parts = log_ratio(slice(0, 4)), [log_ratio(slice(0, 2)), log_ratio(slice(2, 4))]
    assert np.corrcoef(found.parts.sum(axis=1) if off else found.joint, whole)[0, 1] >= 0.98
    assert np.corrcoef(found.combination, whole - parts[0] - parts[1])[0, 1] >= 0.98
    assert (np.abs(found.parts - np.stack(parts, axis=1)).mean(axis=0) < 0.1).all()
    independent = gaussian(0.0, 0.3)
    y = rng.multivariate_normal(*independent, size=N)
    found = factorised_ratios([x[:, :2], x[:, 2:]], [y[:, :2], y[:, 2:]])
    divergence = -0.5 * np.log(np.linalg.det(independent[1]) / np.linalg.det(p[1]))
    divergence += 0.5 * (np.trace(np.linalg.solve(p[1], independent[1])) - 4)
    assert (np.abs(found.parts.mean(axis=0)) < 0.05).all()
    assert -found.combination.mean() == pytest.approx(divergence, rel=0.15)


def divergences(found: Ratios) -> dict[str, float]:
    return {name: float(-found.of(name).mean()) for name in PARTS}


@pytest.mark.system("factorgan", rung="works")
def test_molecules_with_exchanged_parts_differ_in_the_combination_alone(off: str, effect: Effect) -> None:
    """Scaffolds, decorations and properties of molecules exchanged among them; beside it those that were not."""
    smiles = [str(text) for text in builtin.nci().smiles if 8 <= len(str(text)) <= 50]
    pool = describe([smiles[i] for i in np.random.default_rng(0).permutation(len(smiles))[:1600]])
    parts = molecule_parts(pool.canonical, [pool])
    values, plain, single = [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        sides = np.array_split(rng.permutation(len(pool.readable)), 2)
        p, q = ([each[rows] for each in parts] for rows in sides)
        mixed = [each[rng.permutation(len(each))] for each in q]
        as_they_are, exchanged = (divergences(factorised_ratios(p, each)) for each in (q, q if off else mixed))
        values.append(exchanged["combination"])
        plain.append(as_they_are["combination"])
        single.append(max(abs(exchanged[name]) for name in ("scaffold", "decoration", "properties")))
    assert np.mean(single) < 0.05
    beside = {"of molecules as they are": plain, "largest of a part alone": single}
    effect("nats between combinations of exchanged parts", values, at_least=0.3, beside=beside)

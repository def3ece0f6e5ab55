"""Checks of JEM: probabilities from energies, the gradient of its density by Langevin samples, and calibration."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from molgraph.auxiliary.study.open_set import area
from molgraph.base.table import Target
from molgraph.chem.fingerprints import morgan
from molgraph.chem.sizes import heavy_atoms
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.read import read_table
from molgraph.data.splits import split_table
from molgraph.data.standardise import standardise
from molgraph.evaluate.measures import log_loss, roc_auc
from molgraph.evaluate.screening import calibration_error
from molgraph.nn.head import Head
from molgraph.nn.langevin import langevin
from molgraph.train.callbacks.jem import energy
from molgraph.train.method import GraphMethod
from molgraph.trust.domains.energy import energy as score
from molgraph.trust.logits import predict_logits
from tests.systems.effect import Effect


@pytest.mark.system("jem", rung="exact")
def test_probabilities_are_those_of_the_energies(off: str) -> None:
    """``p(c|z) = exp(E(z) - E(z, c))``, as is the score of logits; the twin takes the largest logit."""
    torch.manual_seed(0)
    head = Head(6, [Target("kind", "multiclass", classes=tuple("abcd"))], 8).double()
    z = 3 * torch.randn(50, 6, dtype=torch.float64)
    raw = head(z)
    whole = -raw.amax(dim=1) if off else energy(head, z)
    torch.testing.assert_close((whole[:, None] + raw).exp(), raw.softmax(dim=1), rtol=0, atol=1e-7)
    both = Head(6, [Target("kind", "multiclass", classes=tuple("abc")), Target("active", "binary")], 8).double()
    raw = both(z).detach().numpy()
    np.testing.assert_allclose(score([raw[:, :3], raw[:, 3:]]), energy(both, z).detach().numpy(), atol=1e-12)


@pytest.mark.system("jem", rung="exact")
def test_the_gradient_of_the_density_is_that_of_an_integral_over_a_grid(off: str) -> None:
    """``E_p[dE] - dE`` of a network in two dimensions within 10%; the twin's chains have no noise."""
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(2, 16), nn.Tanh(), nn.Linear(16, 3)).double()

    def density(x: Tensor) -> Tensor:
        return x.square().sum(dim=1) / 2 - (3 * network(x)).logsumexp(dim=1)

    data = torch.randn(64, 2, dtype=torch.float64) + 1
    axis = torch.linspace(-7, 7, 281, dtype=torch.float64)
    grid = torch.cartesian_prod(axis, axis)
    share = (-density(grid)).detach().softmax(dim=0)

    def gradient(own: Tensor) -> Tensor:
        parts = torch.autograd.grad(own - density(data).mean(), [*network.parameters()], allow_unused=True)
        return torch.cat([each.flatten() for each in parts if each is not None])

    wanted = gradient((share * density(grid)).sum())
    start = torch.randn(4000, 2, dtype=torch.float64)
    samples = langevin(density, start, 400, 0.05, 0.0 if off else 0.05**0.5)
    found = gradient(density(samples).mean())
    assert float((found - wanted).norm() / wanted.norm()) < 0.1


@pytest.mark.system("jem", rung="works")
def test_probabilities_of_new_scaffolds_are_calibrated_better(off: str, effect: Effect) -> None:
    """BBBP, 400 training molecules; the twin's energies have the weight 0."""
    table = standardise(read_table("dataset:bbbp", targets=["p_np"]), "standard")
    table = table.take(np.flatnonzero(table.ok))
    other = read_table("dataset:freesolv")
    gaps, beside = list[float](), dict[str, list[float]]()
    how = {"head_width": 32, "epochs": 30, "batch_size": 32, "threads": 1}
    for seed in (30, 31, 32):
        made = split_table(table, "scaffold/balanced", fractions=(0.8, 0.0, 0.2), seed=seed, quiet=True)
        train = table.take(np.random.default_rng(seed).permutation(made.train)[:400])
        test, errors, figures = table.take(made.test), list[float](), dict[str, float]()
        assert test.y is not None
        prints = [morgan([str(text) for text in each.smiles]).x for each in (train, test, other)]
        for name, callback in (("plain", None), ("jem", f"jem(weight={0 if off else 0.3})")):
            fitted = GraphMethod("gin", {"d_hidden": 32, "depth": 3}, seed=seed, callback=callback, **how).fit(train)
            known = predict_logits(fitted, partial(fitted.predict, test))
            far = predict_logits(fitted, partial(fitted.predict, other))
            y, p = test.y[known[2], 0], known[0].value[known[2], 0]
            errors.append(calibration_error(y, p))
            figures |= {f"{name} ECE": errors[-1], f"{name} log loss": log_loss(y, p), f"{name} AUC": roc_auc(y, p)}
            figures[f"{name} energy, AUC of FreeSolv"] = area(score(known[1]), score(far[1]))
        near = [1 - find_nearest(each, prints[0]).similarity for each in prints[1:]]
        figures["Tanimoto distance, AUC of FreeSolv"] = area(*near)
        figures["heavy atoms, AUC of FreeSolv"] = area(heavy_atoms(test.smiles), heavy_atoms(other.smiles))
        gaps.append(errors[1] - errors[0])
        for name, value in figures.items():
            beside.setdefault(name, []).append(float(value))
    effect("calibration error with JEM less that without", gaps, at_most=-0.005, beside=beside)

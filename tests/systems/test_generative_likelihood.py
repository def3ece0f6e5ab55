"""Likelihoods of autoencoders of molecules: unbiased ones, and the latent vectors at which they are greatest."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import tanimoto
from molgraph.data.table import Table
from molgraph.generate.chemvae import ChemVAE
from molgraph.generate.generated import judge
from molgraph.generate.map_latent import Refined, ascend, refine_latents
from molgraph.generate.sumo import sumo, tail, terms, text_likelihoods
from molgraph.nn.variational import Gaussian, standard_normal
from tests.systems.effect import Effect
from tests.systems.test_generative import molecules, trained
from tests.systems.test_generative_exact import D_X, D_Z, Linear, N, close, numbers


@pytest.mark.system("ilqr-vae", rung="exact")
def test_the_most_likely_vector_of_a_linear_decoder_is_that_of_the_equations(off: str) -> None:
    """``z* = (W'W / s^2 + I)^-1 W'(x - b) / s^2``, with columns of W that are not orthogonal."""
    model = Linear()
    model.weight = numbers(D_X, D_Z, seed=11)
    precision = model.weight.T @ model.weight / model.s**2 + torch.eye(D_Z, dtype=torch.float64)
    expected = torch.linalg.solve(precision, model.weight.T @ (model.x - model.bias).T / model.s**2).T
    start, steps = numbers(N, D_Z, seed=12), 0 if off else 50
    close(ascend(model.log_joint, start, steps).z, expected, 1e-4)
    values = torch.stack([ascend(model.log_joint, start, k).last for k in range(steps + 1)])
    assert (values.diff(dim=0) >= 0).all() and (values[-1] > values[0]).all()


@pytest.mark.system("sumo", rung="exact")
def test_it_has_no_bias_where_the_likelihood_is_known(off: str) -> None:
    """Of a linear Gaussian model with a poor posterior: 20,000 estimates within 3 standard errors of log p(x)."""
    model = Linear()
    q = Gaussian(model.posterior.mean + 0.6, model.posterior.log_variance + 0.5)
    torch.manual_seed(0)

    def log_weight(rows: Tensor) -> Tensor:
        own = Gaussian(q.mean[rows], q.log_variance[rows])
        z = own.draw(torch.randn(len(rows), D_Z, dtype=torch.float64))
        square = ((model.x[rows] - model.bias - z @ model.weight.T) / model.s).square().sum(dim=1)
        fits = -0.5 * square - D_X * (np.log(model.s) + 0.5 * np.log(2 * np.pi))
        return fits + standard_normal(z).log_prob(z) - own.log_prob(z)

    estimate, bound = sumo(log_weight, N, 20_000)
    used = bound if off else estimate
    error = used.std(dim=1) / 20_000**0.5
    assert ((used.mean(dim=1) - model.evidence).abs() <= 3 * error).all()
    assert (bound.mean(dim=1) < model.evidence - 10 * bound.std(dim=1) / 20_000**0.5).all()
    count, k = terms(np.random.default_rng(0).random(200_000)), np.array([1, 2, 5, 40, 80, 90])
    share = (count[:, None] >= k).mean(axis=0)
    np.testing.assert_allclose(share, tail(k), atol=4 * np.sqrt(0.25 / 200_000))


@functools.cache
def model() -> ChemVAE:
    return trained(tokens="selfies", encoder="gru", beta=0.1)


def held(n: int) -> Table:
    return molecules()[1].take(np.arange(n))


@functools.cache
def refined(steps: int) -> Refined:
    return refine_latents(model(), held(200), steps)


def decoded(z: np.ndarray, smiles: list[str]) -> tuple[float, float]:
    """Mean similarity of molecules to those that their vectors decode to at a temperature of 0.1, and how many are
    the same.
    """
    cold = model().set_params(temperature=0.1).decode(z, 1)
    model().set_params(temperature=1.0)
    same = [a == b for a, b in zip(judge(smiles, None).canonical, judge(cold, None).canonical, strict=True)]
    like = np.diag(tanimoto(morgan(smiles).x, morgan(cold).x))
    return float(like.mean()), float(np.mean(same))


@pytest.mark.system("ilqr-vae", rung="works")
def test_it_closes_a_gap_of_the_encoder(off: str, effect: Effect) -> None:
    """``log p(x, z)`` of held-out molecules rises, and falls for none."""
    found, fine = refined(50), model().encode(held(200)).ok
    gain = (found.after - found.before)[fine]
    assert (gain >= 0).all()
    beside = {"at the encoder's vectors, nats": [float(found.before[fine].mean())]}
    won = 0.0 if off else float(gain.mean())
    effect("nats of log p(x, z) a molecule that refined vectors win", [won], at_least=1.0, beside=beside)


@pytest.mark.system("ilqr-vae", rung="works", null="likelier vectors, which the small decoder writes no closer: -0.02")
def test_refined_vectors_decode_to_molecules_more_like_their_own(off: str, effect: Effect) -> None:
    found, start = refined(50), model().encode(held(200))
    smiles = held(200).smiles[start.ok].tolist()
    (plain, _), (own, same) = (decoded(each.mean[start.ok], smiles) for each in (start, found.latents))
    beside = {"of the encoder's vectors": [plain], "share that comes back": [same]}
    effect("similarity to the molecule - that of the encoder's vectors", [own - plain], at_least=0.05, beside=beside)


@pytest.mark.system("sumo", rung="works")
def test_the_estimate_lies_above_the_bound_of_one_point(off: str, effect: Effect) -> None:
    found = text_likelihoods(model(), held(100), repeats=8)
    estimate, bound = found[:, :8], found[:, 8:]
    gains = ((bound if off else estimate) - bound).mean(axis=0)
    effect(
        "nats above the bound of one point", gains.tolist(), at_least=0.2, beside={"bound": bound.mean(axis=0).tolist()}
    )

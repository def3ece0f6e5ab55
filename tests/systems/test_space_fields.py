"""NeRF: sines at doubling frequencies, functions that oscillate, and fields around molecules."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
import torch
from rdkit import Chem
from torch import Tensor, nn

import molgraph
from molgraph.base.parts import make_part
from molgraph.chem.field import potential_of
from molgraph.data.datasets import load_dataset
from molgraph.data.graph_values import Geometry
from tests.systems.effect import Effect

SEEDS = (0, 1, 2)
N_MOLECULES, N_TEST, N_POINTS, EPOCHS = 200, 40, 20, 16


@pytest.mark.system("nerf", rung="exact")
def test_the_basis_turns_as_a_distance_grows_and_its_kernel_knows_differences_alone(off: str) -> None:
    """``gamma(x + s) = R(s) gamma(x)`` with a rotation R of each band, and ``gamma(x) gamma(y) = k(x - y)``."""
    basis = make_part("basis", "distance" if off else "fourier(bands=6)", 1.0, 5.0, 12).double()
    rng = torch.Generator().manual_seed(0)
    x, y, s = (6 * torch.rand(50, generator=rng, dtype=torch.float64) for _ in range(3))
    kernel = (basis(x) * basis(y)).sum(dim=1)
    torch.testing.assert_close((basis(x + s) * basis(y + s)).sum(dim=1), kernel, rtol=0, atol=1e-6)
    angle = torch.pi * 2.0 ** torch.arange(6) * s[:, None] / 4.0
    sine, cosine = basis(x).split(6, dim=1)
    turned = [sine * angle.cos() + cosine * angle.sin(), cosine * angle.cos() - sine * angle.sin()]
    torch.testing.assert_close(basis(x + s), torch.cat(turned, dim=1), rtol=0, atol=1e-6)


def wave(distance: Tensor) -> Tensor:
    """A function that changes its sign 20 times between 0 and 5 angstrom."""
    return torch.sin(4 * torch.pi * distance) * torch.cos(distance)


@cache
def fitted(basis: str, seed: int) -> float:
    """The mean squared error between the points of training, of one perceptron behind a basis."""
    torch.manual_seed(seed)
    functions = make_part("basis", basis, 0.0, 5.0, 12)
    network = nn.Sequential(nn.Linear(functions.n, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1))
    optimiser = torch.optim.Adam(network.parameters(), 3e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, 1000)
    train, test = 5 * torch.rand(512), 5 * torch.rand(1000)
    for _ in range(1000):
        optimiser.zero_grad()
        (network(functions(train))[:, 0] - wave(train)).square().mean().backward()
        optimiser.step(), schedule.step()
    with torch.no_grad():
        return float((network(functions(test))[:, 0] - wave(test)).square().mean())


@pytest.mark.system("nerf", rung="works")
def test_a_function_that_oscillates_is_learnt(off: str, effect: Effect) -> None:
    errors = {name: [fitted(name, seed) for seed in SEEDS] for name in ("fourier(bands=6)", "distance", "gaussian")}
    own = errors["distance" if off else "fourier(bands=6)"]
    ratios = [a / b for a, b in zip(own, errors["distance"], strict=True)]
    effect("squared error as a share of the distance's alone", ratios, at_most=0.1, beside=errors)


@cache
def potentials() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Points of the potential around small molecules of ESOL: those of 160 molecules, and of 40 others."""
    texts = [str(text) for text in dict.fromkeys(load_dataset("esol").table.smiles)]
    small = [text for text in texts if 4 <= Chem.MolFromSmiles(text).GetNumHeavyAtoms() <= 9]
    parts = []
    for text in np.random.default_rng(0).permutation(small)[:N_MOLECULES]:
        near = potential_of(str(text), N_POINTS)
        numbers = np.append(near.numbers, 0).astype(np.uint8)
        shapes = [Geometry(numbers, np.vstack([near.positions, point]).astype(np.float32)) for point in near.points]
        parts.append(pd.DataFrame({"geometry": shapes, "potential": near.values}))
    return pd.concat(parts[N_TEST:], ignore_index=True), pd.concat(parts[:N_TEST], ignore_index=True)


@cache
def share_explained(basis: str) -> float:
    """R2 of the encoder ``field`` with this basis, at the points of molecules that it has not seen."""
    train, test = potentials()
    how = {"split": "random", "fractions": (0.9, 0.1, 0.0), "baseline": False, "threads": 1}
    steps = {"epochs": EPOCHS, "learning_rate": 3e-3, "batch_size": 64}
    result = molgraph.train(
        train, targets=["potential"], geometry="geometry", model="field", params={"basis": basis}, **how, **steps
    )
    error = result.predict(test).value.ravel() - test["potential"].to_numpy()
    return float(1 - (error**2).mean() / test["potential"].var(ddof=0))


@pytest.mark.data
@pytest.mark.system("nerf", rung="works")
def test_the_potential_around_new_molecules_is_learnt(off: str, effect: Effect) -> None:
    whole, raw, gaussian = (share_explained(basis) for basis in ("fourier(bands=4)", "distance", "gaussian"))
    beside = {"distance": [raw], "gaussian": [gaussian]}
    effect("R2 at points of 40 new molecules", [raw if off else whole], at_least=0.9, beside=beside)

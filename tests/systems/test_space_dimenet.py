"""DimeNet: PyG's outputs, orthonormal bases, smooth cutoffs, and what angles are worth."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from molgraph.base.contracts import Target
from molgraph.data.graph_values import Geometry
from molgraph.data.table import Table, make_table
from molgraph.nn import directional
from molgraph.nn.dimenet_checkpoint import load_dimenet
from molgraph.nn.directional import Directional
from molgraph.train.method import GraphMethod
from tests.models import test_dimenet as dimenet
from tests.nn import test_spherical_basis as bases
from tests.systems.effect import Effect

NETWORKS = ("dimenet", "dimenet_plus_plus")
QUICK: dict[str, Any] = {"head_width": 32, "batch_size": 32, "learning_rate": 3e-3, "patience": None, "threads": 1}


def without_angles(network: Directional) -> Directional:
    """The network in which every angle is a right one."""
    network.cosines = lambda vectors, distance, triplets: vectors.new_zeros(triplets.n_pairs)
    return network


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.system("dimenet", rung="exact")
def test_outputs_are_pygs_with_its_weights(
    name: str, off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    peer = dimenet.peer_of(name, monkeypatch)
    batch = dimenet.batch_of(*(dimenet.geometry(n, n) for n in (12, 1, 17, 2, 9)))
    torch.save(peer.state_dict(), tmp_path / "net.pt")
    network = load_dimenet(tmp_path / "net.pt").double()
    found = (without_angles(network) if off else network)(batch).graphs
    torch.testing.assert_close(found, dimenet.of_peer(peer, batch, monkeypatch), rtol=0, atol=1e-5)


@pytest.mark.system("dimenet", rung="exact")
def test_bases_are_orthonormal_under_their_weights(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if off:
        monkeypatch.setattr(bases, "zonal_harmonics", lambda cosine, n: torch.ones(n, len(cosine)).double())
    bases.test_bases_are_orthonormal()


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.system("dimenet", rung="exact")
def test_value_and_slope_of_a_pair_vanish_at_the_cutoff(name: str, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of two atoms that part, which beyond the cutoff are as one atom each."""
    if off:
        monkeypatch.setattr(directional, "smooth_cutoff", lambda x, power: 1.0 * (x < 1))
    network = dimenet.network(name)
    two = dimenet.batch_of(dimenet.geometry(2, 0))
    far = torch.tensor(5 - 1e-6, dtype=torch.float64, requires_grad=True)
    places = torch.stack([far.new_zeros(3), torch.stack([far, far * 0, far * 0])])
    near = network(two.with_level("atom", position=places)).graphs
    apart = network(dimenet.placed(two, [0.0, 0, 0], [9.0, 0, 0])).graphs
    (slope,) = torch.autograd.grad(near.sum(), far)
    assert (near - apart).abs().max() < 1e-9 and slope.abs() < 1e-6


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.system("dimenet", rung="exact")
def test_angles_tell_geometries_apart_that_have_the_same_distances(name: str, off: str) -> None:
    """Three atoms, of which the ends do not see each other: at a right angle and in a line."""
    network = dimenet.network(name, cutoff_angstrom=1.3, **({"n_spherical": 1} if off else {}))
    three = dimenet.batch_of(dimenet.geometry(3, 0))
    bent = network(dimenet.placed(three, [0.0, 0, 0], [1.0, 0, 0], [1.0, 1.0, 0])).graphs
    line = network(dimenet.placed(three, [0.0, 0, 0], [1.0, 0, 0], [2.0, 0, 0])).graphs
    assert (bent - line).abs().max() > 1e-8


def chains(n: int) -> Table:
    """Four atoms a row, each 1.2 angstrom from the next and none within 1.5 of another; the sum of both cosines."""
    rng, made, y = np.random.default_rng(0), [], []
    while len(made) < n:
        steps = rng.normal(size=(3, 3))
        steps *= 1.2 / np.linalg.norm(steps, axis=1, keepdims=True)
        at = np.vstack([np.zeros(3), steps.cumsum(0)])
        far = np.linalg.norm(at[:, None] - at, axis=2)[np.triu_indices(4, 2)]
        if far.min() > 1.5:
            made.append(Geometry(np.full(4, 6, np.uint8), at.astype(np.float32)))
            y.append((steps[:-1] * steps[1:]).sum() / 1.2**2)
    table = make_table(["C"] * n, targets=(Target("y"),), y=y)
    values = np.empty(n, dtype=object)
    values[:] = made
    return replace(table, entities=(replace(table.entities[0], name="at", kind="geometry", values=values),))


@pytest.mark.system("dimenet", rung="works")
def test_angles_are_learned_where_all_distances_are_equal(off: str, effect: Effect) -> None:
    """Share of the variance that is left in chains of atoms that were not seen; without angles nothing can be told."""
    train, valid, test = (chains(700).take(np.arange(*ends)) for ends in ((0, 400), (400, 500), (500, 700)))
    sizes = {"d_hidden": 32, "d_interaction": 16, "d_output": 32, "d_atom": 32, "depth": 2, "cutoff_angstrom": 1.5}

    def left(encoder: str, seed: int, **params: Any) -> float:
        made = GraphMethod(encoder, params, epochs=15, seed=seed, **QUICK).fit(train, valid)
        return float(np.square(made.predict(test).value - test.y).mean() / test.y.var())

    blind = [left("dimenet_plus_plus", seed, **sizes, n_spherical=1) for seed in range(2)]
    beside = {"without angles": blind, "schnet": [left("schnet", 0, cutoff_angstrom=1.5, d_hidden=32)]}
    seeing = blind if off else [left("dimenet_plus_plus", seed, **sizes) for seed in range(2)]
    effect("mean square error / variance", seeing, at_most=0.1, beside=beside)

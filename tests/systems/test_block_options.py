"""Block options: positional features against the Weisfeiler-Leman test, frames against motions and mirror images."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch

from molgraph.base.table import OK, Entities, Table, Target
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.featurize_geometry import Geometries
from molgraph.data.graph_values import Geometry, Graph
from molgraph.models.gin import GIN
from molgraph.models.schnet import SchNet
from molgraph.nn.block import with_options
from molgraph.nn.encoder import Encoder
from molgraph.train.make_method import make_method
from tests.contract.test_encoders import graphs
from tests.systems.effect import Effect

DECALIN, BICYCLOPENTYL = "C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1"


def encoder(cls: type[Encoder], spec, **options: str) -> Encoder:
    torch.manual_seed(0)
    return with_options(lambda wide: cls(wide), cls, cls.__name__, spec, options).eval()


def apart(off: str, twin: str = "") -> float:
    """Distance of the states of decalin and bicyclopentyl, whose atoms have one feature alone."""
    store = featurize([DECALIN, BICYCLOPENTYL])
    batch = collate(store, np.arange(2))
    batch = batch.with_level("atom", code=torch.zeros(batch.n_atoms, dtype=torch.int64))
    batch = batch.with_level("bond", code=torch.zeros(batch.n_bonds, dtype=torch.int64))
    own = encoder(GIN, store.spec, **({} if off else {"positions": "walks(8)"}))
    with torch.no_grad():
        if twin == "zero":
            own.embed.weight[:, -8:] = 0
        first, second = own.double()(_double(batch)).graphs
    return float((first - second).abs().max())


def _double(batch):
    return batch.with_level("atom", table=batch["atom"].table.double()).with_level(
        "bond", table=batch["bond"].table.double()
    )


@pytest.mark.system("coordconv", rung="exact")
def test_walks_tell_rings_apart_that_message_passing_does_not(off: str) -> None:
    assert apart("off") < 1e-6
    assert apart(off) > 1e-3


@pytest.mark.system("coordconv", rung="exact")
def test_zero_weights_are_the_plain_encoder(off: str) -> None:
    store = featurize(["CC(=O)Oc1ccccc1C(=O)O", DECALIN])
    batch = collate(store, np.arange(2))
    plain, own = encoder(GIN, store.spec), encoder(GIN, store.spec, positions="walks(8)")
    weights = {**plain.state_dict()}
    wide = torch.cat([weights["embed.weight"], torch.zeros(64, 8)], dim=1)
    own.load_state_dict({**weights, "embed.weight": torch.ones_like(wide) if off else wide})
    torch.testing.assert_close(own(batch).graphs, plain(batch).graphs, rtol=0, atol=1e-5)


def rings(arc: int, chain: int, fused: bool) -> Graph:
    """Two rings that share a bond, or that a bond joins, with a chain: the Weisfeiler-Leman test has one answer."""
    ends = [(0, 1), (1, 0)] if fused else [(0, 0), (1, 1)]
    edges, n = [(0, 1)], 2
    for first, last in ends:
        path = [first, *range(n, n + arc), last]
        edges += pairwise(path)
        n += arc
    edges += zip([2, *range(n, n + chain)], range(n, n + chain), strict=False)
    both = sorted({*edges, *((b, a) for a, b in edges)})
    return Graph(n + chain, np.array(both, np.int32))


@pytest.mark.system("coordconv", rung="works")
def test_a_graph_network_tells_ring_systems_apart(off: str, effect: Effect) -> None:
    values, y = [], []
    for arc in (3, 4, 5):
        for chain in range(10):
            values += [rings(arc, chain, True), rings(arc, chain, False)]
            y += [0.0, 1.0]
    errors = held_out(off, "graph", values, y, "gin", {"positions": "walks(8)"}, d_hidden=16, depth=3)
    effect("share of held-out graphs taken for the other ring system", errors, at_most=0.1)


def held_out(off: str, kind: str, values: list, y: list[float], name: str, option: dict, **params: int) -> list[float]:
    """The share of wrong classes in a random third, for three seeds."""
    n, column, shares = len(y), np.empty(len(y), dtype=object), []
    column[:] = values
    table = Table(
        np.arange(n).astype(str).astype(object),
        (Entities(kind, kind, column),),
        np.full(n, OK, dtype=object),
        np.full(n, "", dtype=object),
        (Target("y", "binary"),),
        np.array(y)[:, None],
    )
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(n)
        train, test = table.take(np.sort(order[n // 3 :])), table.take(np.sort(order[: n // 3]))
        method = make_method(name, epochs=20, batch_size=8, seed=seed, **params, **({} if off else option))
        value = method.fit(train).predict(test).value[:, 0]
        shares.append(float(np.mean((value > 0.5) != (test.y[:, 0] > 0.5))))
    return shares


def conformers(n: int = 20) -> list[Geometry]:
    rng = np.random.default_rng(0)
    return [Geometry(rng.choice([1, 6, 8], 9), 1.5 * rng.normal(size=(9, 3)).astype(np.float32)) for _ in range(n)]


def answers(values: list[Geometry], option: str, off: str) -> torch.Tensor:
    store = Geometries().featurise(values)
    batch = collate(store, np.arange(len(values)))
    own = encoder(SchNet, store.spec, frames=option)
    if off:  # coordinates as they stand
        own.options[0].coordinates = lambda batch: iter([batch["atom"].arrays["position"]])
    return graphs(own, batch)


@pytest.mark.parametrize("option", ["se3", "e3"])
@pytest.mark.system("frame-averaging", rung="exact")
def test_frames_make_any_network_invariant(option: str, off: str) -> None:
    values = conformers()
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))[0]
    turn = turn * np.sign(np.linalg.det(turn))
    moved = [Geometry(v.numbers, (v.positions @ turn + 2).astype(np.float32)) for v in values]
    assert (answers(moved, option, "off") - answers(values, option, "off")).abs().max() > 1e-2
    torch.testing.assert_close(answers(moved, option, off), answers(values, option, off), rtol=0, atol=1e-4)


@pytest.mark.system("frame-averaging", rung="exact")
def test_mirror_images_are_one_under_e3_and_two_under_se3(off: str) -> None:
    values = conformers()
    mirror = [Geometry(v.numbers, v.positions * np.array([1, 1, -1], np.float32)) for v in values]
    torch.testing.assert_close(answers(mirror, "e3", off), answers(values, "e3", off), rtol=0, atol=1e-4)
    assert (answers(mirror, "se3", off) - answers(values, "se3", off)).abs().amax(1).min() > 1e-4


@pytest.mark.system("frame-averaging", rung="exact")
def test_planar_linear_and_single_atoms_are_finite(off: str) -> None:
    plane = np.random.default_rng(2).normal(size=(6, 3)).astype(np.float32) * [1, 1, 0]
    line = np.arange(5)[:, None] * np.array([[0.6, 0.8, 0]])
    values = [Geometry(np.full(len(at), 6), at.astype(np.float32)) for at in (plane, line, np.zeros((1, 3)))]
    turned = [Geometry(v.numbers, v.positions[:, [2, 0, 1]].copy()) for v in values]
    assert answers(values, "se3", off).isfinite().all()
    torch.testing.assert_close(answers(turned, "e3", off), answers(values, "e3", off), rtol=0, atol=1e-4)


@pytest.mark.system("frame-averaging", rung="works")
def test_a_network_of_distances_learns_handedness_through_frames(off: str, effect: Effect) -> None:
    """Four different atoms about a centre, left or right handed: distances are alike, so that SchNet alone guesses."""
    rng, corners = (
        np.random.default_rng(0),
        np.array([[1, 1, 1], [-1, -1, 1], [-1, 1, -1], [1, -1, -1]]) * [0.8, 1.1, 1.5],
    )
    values, y = [], []
    for i in range(90):
        at = corners + 0.05 * rng.normal(size=(4, 3))
        at = np.vstack([np.zeros(3), at * ([1, 1, -1] if i % 2 else [1, 1, 1])])
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        at = at @ (turn * np.sign(np.linalg.det(turn)))
        values.append(Geometry(np.array([6, 1, 7, 8, 9]), at.astype(np.float32)))
        y.append(float(i % 2))
    errors = held_out(off, "geometry", values, y, "schnet", {"frames": "se3"}, d_hidden=32, depth=2)
    effect("share of held-out geometries taken for their mirror image", errors, at_most=0.1)

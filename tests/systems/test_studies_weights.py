"""Studies of weights: losses on the line between two models, and the surface around one."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

import molgraph
from molgraph.auxiliary.study.landscape import LandscapeStudy, direction, grid, rescaled_gap
from molgraph.auxiliary.study.transfer import TransferStudy, barrier
from molgraph.base.errors import MissingOptionError, UnsupportedError
from molgraph.data.table import Table
from molgraph.study.study import Subject
from molgraph.study.subject_model import judged
from molgraph.study.weight_space import WeightSpace, between
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from tests.tiny import series

GIN = "gin(depth=2, d_hidden=16, head_width=16, epochs=5, batch_size=32, norm=layer)"


def fitted(table: Table, seed: int, epochs: int = 5, **how: object) -> GraphMethod:
    """A small network without running statistics."""
    params = {"depth": 2, "d_hidden": 16, "norm": "layer"}
    how = {"threads": 1, "batch_size": 32, "head_width": 16, **how}
    return GraphMethod("gin", params, seed=seed, epochs=epochs, **how).fit(table)


@cache
def pair() -> tuple[WeightSpace, WeightSpace]:
    """Two networks of the same rows, and their losses on others."""
    new = series(60, 200)
    made = (WeightSpace(fitted(series(100), seed), new, new.targets[0]) for seed in (0, 1))
    return next(made), next(made)


@pytest.mark.system("transfer-diagnostics", rung="exact")
def test_the_loss_half_way_is_that_of_a_network_with_the_mean_of_the_weights(off: str) -> None:
    """By predictions of the model that soup writes, and at the ends of both models; off: the ends alone."""
    one, two = pair()
    new, study = series(60, 200), TransferStudy(points=2 if off else 3)
    y, a, b = np.asarray(new.y)[:, 0], fitted(series(100), 0), fitted(series(100), 1)
    mean = fitted(series(100), 0)
    mean.ready().network.load_state_dict(between(one.weights, two.weights, 0.5))
    wanted = [np.mean((method.predict(new).value[:, 0] - y) ** 2) / y.var() for method in (a, mean, b)]
    losses = study.path(one, two).mean(axis=1)
    np.testing.assert_allclose(losses[[0, -1]], wanted[::2], rtol=1e-4)
    assert barrier(study.path(one, one)) < 1e-6
    np.testing.assert_allclose(
        barrier(study.path(one, two)), max(0.0, wanted[1] - (wanted[0] + wanted[2]) / 2), atol=1e-4
    )
    assert wanted[1] > max(wanted[::2]), "the models are in two basins"


def test_soup_writes_the_mean_of_both_files(tmp_path: Path) -> None:
    files = []
    for seed in (0, 1):
        trained = molgraph.train(series(80), model="gin", params={"d_hidden": 8, "norm": "batch"}, epochs=2, seed=seed,
                                 split="random", baseline=False, threads=1).model  # fmt: skip
        files.append(str(trained.save(tmp_path / f"{seed}.mgm")))
    name = f"transfer(other={files[1]}, points=3, soup={tmp_path / 'mean.mgm'})"
    found = molgraph.study(name, series(150), model=files[0])
    assert found.sound and b"<svg" in found.draw("svg") and "mean.mgm" in found.notes[-1]
    soup, *both = (load_model(file) for file in (tmp_path / "mean.mgm", *files))
    mean, *ends = (next(model.method.ready().network.parameters()) for model in (soup, *both))
    torch.testing.assert_close(mean, (ends[0] + ends[1]) / 2)
    assert np.isfinite(soup.predict(["CCO"]).value).all() and soup.confidence is None


def test_models_that_cannot_be_averaged_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="other shapes"):
        molgraph.study("transfer(other=gin(depth=3), epochs=1)", series(60), model="gin(depth=2)")
    model = Model(fitted(series(60), 0, 1), targets=series(2).targets)
    with pytest.raises(MissingOptionError, match="two models"):
        molgraph.study("transfer", series(60), model=model)


@pytest.mark.system("filter-normalised-loss-surface", rung="exact")
def test_networks_that_compute_the_same_have_one_surface(off: str) -> None:
    """To 1e-4, the layers being scaled by 10 and 1/10; each filter's step is as long as the filter; off: raw steps."""
    assert rescaled_gap(3, normalise=not off) < 1e-4
    assert rescaled_gap(3, normalise=False) > 0.1
    weights = {"w": torch.randn(4, 7), "bias": torch.randn(4)}
    d = direction(weights, 1, normalise=not off)
    torch.testing.assert_close(d["w"].norm(dim=1), weights["w"].norm(dim=1))
    assert not d["bias"].any()


@pytest.mark.system("filter-normalised-loss-surface", rung="exact")
def test_the_surface_of_a_quadratic_is_its_formula_and_the_middle_is_the_models_loss(off: str) -> None:
    """Off: one direction twice."""
    rng, at = np.random.default_rng(0), np.linspace(-1, 1, 5)
    w = torch.from_numpy(rng.normal(size=(2, 3)))
    one, two = (direction({"w": w}, seed) for seed in (1, 1 if off else 2))
    found = grid(lambda there: float(there["w"].square().sum()), {"w": w}, at, one, two)
    known = direction({"w": w}, 2)["w"]
    wanted = [[float((w + a * one["w"] + b * known).square().sum()) for a in at] for b in at]
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    found = LandscapeStudy(n=3, directions=2).run(Subject(series(150), GIN), seed=5)
    assert found.sound, repr(found)
    model = judged(Subject(series(150), GIN), rows=1000, seed=5)
    y = np.asarray(model.test.y)[:, 0]
    loss = np.mean((model.model.predict_table(model.test).value[:, 0] - y) ** 2) / y.var()
    middle = found.frame.query("first == 0 and second == 0")["loss"].item()
    np.testing.assert_allclose(middle, loss, rtol=1e-4)

"""PopArt: what the moments and the layer are after an update, and targets of which one has another unit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from molgraph.base.errors import UnsupportedError
from molgraph.base.table import Table, Target
from molgraph.data.sources import builtin
from molgraph.nn.popart import PopArtLinear
from molgraph.train.method import GraphMethod
from tests.systems.effect import Effect
from tests.tiny import series, small

HOW: dict[str, Any] = {"epochs": 12, "batch_size": 32, "patience": None, "threads": 1, "head_width": 32}


@pytest.mark.system("popart", rung="exact")
def test_no_output_changes_while_mean_and_deviation_move(off: str) -> None:
    torch.manual_seed(0)
    layer, h = PopArtLinear(8, 3), torch.randn(20, 8)
    layer.move(torch.randn(16, 3), torch.ones(16, 3, dtype=torch.bool), 0.3)
    before, weights = layer(h).detach(), {name: value.detach().clone() for name, value in layer.named_parameters()}
    for turn in range(5):
        known = torch.rand(16, 3) < 0.7
        known[:, 2] &= turn > 2  # a target without a label in some batches
        layer.move(torch.randn(16, 3) * torch.tensor([1.0, 30.0, 0.1]) + torch.tensor([2.0, 50.0, -0.3]), known, 0.3)
        if off:  # the moments move, and the layer is left as it is
            layer.load_state_dict(weights, strict=False)
        torch.testing.assert_close(layer(h).detach(), before, rtol=1e-5, atol=1e-5)


@pytest.mark.system("popart", rung="exact")
def test_the_moments_are_running_means_and_losses_are_those_of_normalised_labels(off: str) -> None:
    """Hessel et al. 2018, equation 8, target by target, and squared errors of (y - mu) / sigma."""
    y, beta = torch.randn(3, 16, 2).double() * torch.tensor([1.0, 100.0]) + 7, 0.0 if off else 0.25
    layer, mu, nu = PopArtLinear(4, 2), y[0].mean(0), y[0].square().mean(0)
    for batch in y:
        layer.move(batch, torch.ones(16, 2, dtype=torch.bool), beta)
    for batch in y[1:]:
        mu, nu = 0.75 * mu + 0.25 * batch.mean(0), 0.75 * nu + 0.25 * batch.square().mean(0)
    torch.testing.assert_close(layer.mu, mu)
    torch.testing.assert_close(layer.sigma, (nu - mu.square()).sqrt())


@pytest.mark.system("popart", rung="exact")
def test_a_step_minimises_the_squares_of_normalised_errors(off: str) -> None:
    table = replace(series(32), y=series(32).y * 50 + 300)  # type: ignore[operator]
    method = small(objective="popart", params={"d_hidden": 8, "objective.beta": 0.0 if off else 1.0}, batch_size=32)
    method.set_params(epochs=1).fit(table)
    layer, y = method.ready().network.head.layers[-1], table.y[:, 0]  # type: ignore[index]
    np.testing.assert_allclose([layer.mu.item(), layer.sigma.item()], [y.mean(), y.std()], rtol=1e-6)
    assert method.curves is not None
    first = method.curves["train_loss"].iloc[0]
    assert first == pytest.approx(1, abs=0.3), "normalised labels, and first outputs of about 0"


def test_a_head_of_other_outputs_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="rewrites the last layer"):
        small(objective="popart", head="gaussian").fit(series(24))


@pytest.mark.system("popart", rung="works")
def test_a_target_in_another_unit_leaves_the_others_as_they_are(off: str, effect: Effect) -> None:
    """Three targets, and the third a thousand times as large."""
    changes, plain, fixed = [], [], []
    for seed in (40, 41, 42):
        table = three_targets(seed)
        large = replace(table, y=table.y * np.array([1, 1, 1000]))  # type: ignore[operator]
        for beta, kept in ((0.01, changes), (0.0, plain), (None, fixed)):
            how: dict[str, Any] = {"objective": "supervised" if beta is None else "popart"}
            own = {} if beta is None else {"objective.beta": beta}
            if not (off and kept is changes):
                one, two = (error(each, seed, own, **how) for each in (table, large))
                kept.append(float(np.abs(two / one - 1).mean()))
    changes = plain if off else changes
    beside = {"squared errors in the targets' units": plain, "the scale of the whole training part": fixed}
    effect("change of the others' RMSE where one target is x 1000", changes, at_most=0.03, beside=beside)


def three_targets(seed: int, n: int = 260) -> Table:
    """Molecules with three noisy counts of their atoms, of mean about 0 and deviation about 1."""
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(builtin.chembl2321810()))[:n]
    table = builtin.chembl2321810().take(rows)
    counts = np.array([[t.count("N"), t.count("O") + t.count("F"), len(t)] for t in map(str, table.smiles)], float)
    y = (counts - counts.mean(0)) / counts.std(0) + 0.2 * rng.normal(size=counts.shape)
    return replace(table, targets=(Target("a"), Target("b"), Target("c")), y=y)


def error(table: Table, seed: int, params: dict[str, Any], **how: Any) -> np.ndarray:
    """float [2], RMSE of the first two targets in the last rows."""
    method = GraphMethod("gin", {"d_hidden": 32, "depth": 2, **params}, seed=seed, **HOW, **how)
    cut = len(table) - 80
    method.fit(table.take(np.arange(cut)))
    rest = table.take(np.arange(cut, len(table)))
    return np.sqrt(((method.predict(rest).value - rest.y) ** 2).mean(axis=0))[:2]

"""SNIP: sensitivities against explicit masks, zeros that stay, and isometry that is drawn and restored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from molgraph.base.errors import BadValueError, ConflictError, UnsupportedError
from molgraph.compress.snip import TrainPruned
from molgraph.data.read import read_table
from molgraph.evaluate.metrics import evaluate_metric, get_metric
from molgraph.train.callback import make_callbacks
from molgraph.train.callbacks import snip
from molgraph.train.callbacks.snip import SNIP, isometry_gap, make_orthogonal, restore_isometry, sensitivity
from molgraph.train.make_method import make_method
from molgraph.train.masks import masks_of, matrices
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.objective import Loss, StepState
from tests.systems.effect import Effect
from tests.tiny import series, small

FIRST = StepState(0, 10, 0)


class Net(nn.Sequential):
    started = frozenset[str]()


def problem(seed: int = 0) -> tuple[Net, torch.Tensor, Any]:
    """A perceptron whose third input is always 0, and its squared error."""
    torch.manual_seed(seed)
    network, x, y = Net(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1)), torch.randn(40, 6), torch.randn(40, 1)
    x[:, 2] = 0
    return network, x, lambda net, batch, state: Loss((net(batch) - y).square().sum(), 40)


def by_size(loss: torch.Tensor, values: Any) -> list[torch.Tensor]:
    """In the place of the sensitivity."""
    return [value.detach().abs() / value.detach().abs().sum() for value in values]


@pytest.mark.system("snip", rung="exact")
def test_sensitivities_are_the_gradients_of_explicit_masks(off: str) -> None:
    network, x, objective = problem()
    values = matrices(network)
    masks = {name: torch.ones_like(value, requires_grad=True) for name, value in values.items()}
    masked = {name: value.detach() * masks[name] for name, value in values.items()}
    out = torch.func.functional_call(network, {**dict(network.named_parameters()), **masked}, (x,))
    total = objective(lambda batch: out, x, FIRST).total
    expected = [gradient.abs() for gradient in torch.autograd.grad(total, [*masks.values()])]
    found = (by_size if off else sensitivity)(objective(network, x, FIRST).total, [*values.values()])
    whole = sum(each.sum() for each in expected)
    for one, two in zip(found, expected, strict=True):
        torch.testing.assert_close(one, two / whole, rtol=0, atol=1e-6)
    assert float(sum(each.sum() for each in found)) == pytest.approx(1)


@pytest.mark.system("snip", rung="exact")
def test_inputs_that_are_always_zero_are_cut_first(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve of 84 weights read such an input, and as many are removed."""
    if off:
        monkeypatch.setattr(snip, "sensitivity", by_size)
    network, x, objective = problem()
    callback = SNIP(fraction=12 / 84)
    callback.begin(network)
    callback.loss(objective, network, x, FIRST)
    zero = network[0].weight == 0
    assert int(zero.sum()) + int((network[2].weight == 0).sum()) == 12
    assert bool(zero[:, 2].all())


@pytest.mark.system("snip", rung="exact")
def test_a_trained_network_has_the_zeros_of_its_first_batch(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine tenths of the matrices, under momentum and weight decay; off: no weight is set to zero after a step."""
    if off:
        monkeypatch.setattr(SNIP, "after_step", lambda self, network, state: None)
    how = {"callback": "snip(fraction=0.9)", "weight_decay": 0.1, "optimizer": "sgd(momentum=0.9)", "epochs": 2}
    method = small(**how).fit(series(48))
    values = [*matrices(method.ready().network).values()]
    n = sum(value.numel() for value in values)
    assert sum(int((value == 0).sum()) for value in values) == round(0.9 * n)
    assert any("snip: 10.0% of the weights left" in note for note in method.notes)


@pytest.mark.system("snip", rung="works")
def test_a_tenth_of_the_weights_by_sensitivity_beats_random_ones(
    off: str, effect: Effect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """AUROC on BBBP, as many weights left in each matrix; off: random ones in both places."""
    table, gains, costs = read_table("dataset:bbbp"), list[float](), dict[str, list[float]]()

    def shuffled(scores: dict[str, torch.Tensor], fraction: float) -> dict[str, torch.Tensor]:
        rng = torch.Generator().manual_seed(0)
        return {
            name: mask.flatten()[torch.randperm(mask.numel(), generator=rng)].view_as(mask)
            for name, mask in masks_of(scores, fraction).items()
        }

    for seed in (51, 52, 53, 54, 55):
        order = np.random.default_rng(seed).permutation(np.flatnonzero(table.ok))
        train, test = table.take(order[:400]), table.take(order[400:1000])
        how = {"epochs": 20, "batch_size": 32, "learning_rate": 0.003, "threads": 1, "head_width": 64, "seed": seed}
        found = {}
        for name, callback in (("snip", "snip(0.9)"), ("random", "snip(0.9)"), ("dense", None)):
            with monkeypatch.context() as patch:
                if name == "random" or off:
                    patch.setattr(snip, "masks_of", shuffled)
                method = GraphMethod("dmpnn", {"d_hidden": 64}, callback=callback, **how).fit(train)
            value = method.predict(test).value[:, 0]
            use = np.isfinite(value)  # not every SMILES can be read
            found[name] = float(evaluate_metric(get_metric("roc_auc"), test.y[use, 0], value[use])[0])
            costs.setdefault(f"AUROC {name}", []).append(found[name])
        assert found["dense"] > 0.75, "it has learned something"
        gains.append(found["snip"] - found["random"])
    effect("AUROC of sensitive weights - of random ones", gains, at_least=0.001, beside=costs)


@pytest.mark.system("layerwise-dynamical-isometry-pruning", rung="exact")
def test_orthogonal_matrices_keep_signals_and_sensitivities_alike_in_all_layers(off: str) -> None:
    """Singular values of 1, and in a deep linear network the same mean sensitivity in each layer; off: uniform."""
    torch.manual_seed(0)
    layers = [nn.Linear(32, 32, bias=False) for _ in range(12)]
    for layer in layers:
        if not off:
            make_orthogonal(layer.weight)
        values = torch.linalg.svdvals(layer.weight.detach())
        torch.testing.assert_close(values, torch.ones(32), rtol=0, atol=1e-5)
    network, x = nn.Sequential(*layers), torch.randn(2000, 32)
    scores = sensitivity((network(x) * torch.randn(2000, 32)).sum(), [layer.weight for layer in layers])
    means = torch.stack([score.mean() for score in scores])
    assert float(means.std() / means.mean()) < 0.05
    stack = torch.zeros(3, 4, 8)
    make_orthogonal(stack)
    torch.testing.assert_close(torch.linalg.svdvals(stack), torch.ones(3, 4), rtol=0, atol=1e-5)


@pytest.mark.parametrize("shape", [(64, 64), (64, 200), (200, 64)])
@pytest.mark.system("layerwise-dynamical-isometry-pruning", rung="exact")
def test_the_gap_of_pruned_matrices_is_halved_on_the_same_weights(
    shape: tuple[int, int], off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After nine tenths are gone at random; the descent follows autograd's gradient of the gap."""
    torch.manual_seed(0)
    value = torch.empty(shape)
    make_orthogonal(value)
    mask = torch.rand(shape) < 0.1
    before = float(isometry_gap(value * mask))
    with_gradient = (value * mask).requires_grad_()
    (gradient,) = torch.autograd.grad(isometry_gap(with_gradient), with_gradient)
    monkeypatch.setattr(snip, "STEPS", 1)
    once = value.clone()
    restore_isometry(once, mask)
    torch.testing.assert_close(once, (with_gradient - snip.RATE * gradient * mask).detach(), rtol=1e-4, atol=1e-6)
    monkeypatch.setattr(snip, "STEPS", 0 if off else 200)
    restore_isometry(value, mask)
    assert bool((value[~mask] == 0).all()) and bool((value[mask] != 0).all())
    assert float(isometry_gap(value)) <= 0.5 * before


@pytest.mark.system(
    "layerwise-dynamical-isometry-pruning",
    rung="works",
    null="SNIP leaves rows of few or no weights, which no descent restores: 0.58 of the gap is left, not half",
)
def test_the_gap_of_what_snip_leaves_is_halved(off: str, effect: Effect, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all matrices of a D-MPNN after nine tenths of the weights are gone, as a share of that before the descent."""
    ratios, table, restore = list[float](), read_table("dataset:esol"), snip.restore_isometry
    for seed in (61, 62, 63):
        order = np.random.default_rng(seed).permutation(len(table))
        gaps: list[tuple[float, float]] = []

        def watched(value: Any, mask: Any, gaps: list[tuple[float, float]] = gaps) -> None:
            before = float(isometry_gap(value.detach() * mask).sum())
            restore(value, mask)
            gaps.append((before, float(isometry_gap(value.detach() * mask).sum())))

        with monkeypatch.context() as patch:
            patch.setattr(snip, "restore_isometry", watched)
            how = {"epochs": 1, "batch_size": 32, "threads": 1, "head_width": 64, "seed": seed}
            callback = "snip(0.9, isometry=true)"
            GraphMethod("dmpnn", {"d_hidden": 64}, callback=callback, **how).fit(table.take(order[:500]))
        ratios.append(sum(after for _, after in gaps) / sum(before for before, _ in gaps))
    effect("isometry gap restored / pruned", ratios, at_most=0.5)


@pytest.mark.system("layerwise-dynamical-isometry-pruning", rung="works")
def test_a_network_pruned_near_isometry_learns_better_than_one_that_is_not(off: str, effect: Effect) -> None:
    """RMSE on ESOL with a tenth of the weights; off: SNIP alone in both places."""
    table, ratios, errors = read_table("dataset:esol"), list[float](), dict[str, list[float]]()
    for seed in (71, 72, 73, 74, 75):
        order, found = np.random.default_rng(seed).permutation(len(table)), {}
        train, test = table.take(order[:500]), table.take(order[500:])
        for name in ("isometry", "snip alone"):
            how = {"epochs": 20, "batch_size": 32, "learning_rate": 0.003, "threads": 1, "head_width": 64, "seed": seed}
            callback = f"snip(0.9, isometry={str(name == 'isometry' and not off).lower()})"
            method = GraphMethod("dmpnn", {"d_hidden": 64}, callback=callback, **how).fit(train)
            found[name] = float(np.sqrt(np.mean((method.predict(test).value - test.y) ** 2)))
            errors.setdefault(f"RMSE {name}", []).append(found[name])
        assert found["snip alone"] < 0.8 * np.std(test.y), "it has learned something"
        ratios.append(found["isometry"] / found["snip alone"])
    effect("RMSE of SNIP with isometry / of SNIP alone", ratios, at_most=0.99, beside=errors)


def test_what_cannot_be_pruned_is_refused_in_a_sentence() -> None:
    for text in ("snip(0)", "snip(1)", "snip(fraction=1.5)"):
        with pytest.raises(BadValueError, match="fraction"):
            make_callbacks(text)
    table = series(24)
    forest = Model(make_method("random_forest(n_estimators=5)").fit(table), targets=table.targets)
    with pytest.raises(UnsupportedError, match="a random_forest has no layers of weights"):
        TrainPruned().compress(forest, table, table, 0)
    network = Net(nn.Linear(2, 2))
    network.started = frozenset({"0.weight"})
    with pytest.raises(ConflictError, match="starts from a file"):
        SNIP(isometry=True).begin(network)

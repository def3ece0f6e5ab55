"""Prompts and gradients as features of a frozen encoder: identities of both, and what they bring beside the head."""

from __future__ import annotations

from collections import OrderedDict
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import molgraph
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.read import read_table
from molgraph.train.callbacks.gradient_features import PART, GradientFeatures
from molgraph.train.callbacks.prompt import PROMPT, Prompt
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect
from tests.systems.test_transfer_scalar_mix import Sample
from tests.tiny import same_bits, series
from tests.train.test_fine_tuning import encoder_of, start, tuned

__all__ = ["start"]  # a fixture
SMILES = [str(text) for text in series(12).smiles]
RATES = (0.003, 0.03)  # step sizes, which the validation part chooses from


@pytest.mark.system("adversarial-reprogramming", rung="exact")
def test_a_prompt_leaves_the_encoder_to_the_bit_and_of_zeros_is_the_encoder(start: str, off: str) -> None:
    loaded = molgraph.load(start).method
    method = tuned(start, None if off else "prompt(n=3)")
    assert same_bits(encoder_of(method), encoder_of(loaded))
    network, batch = method.ready().network, collate(featurize(SMILES), np.arange(12))
    (plain,) = loaded.ready().network.encode(Sample(batch))
    prompt = network.parts[PROMPT]
    assert prompt.p.detach().any() and not torch.equal(network.encoder(batch).graphs, plain.graphs)
    nn.init.zeros_(prompt.p)
    assert torch.equal(network.encoder(batch).graphs, plain.graphs)
    assert any("numbers of the prompt" in note for note in method.notes)


@pytest.mark.system("adversarial-reprogramming", rung="exact")
def test_a_linear_encoder_answers_by_the_same_shift_for_every_atom(off: str) -> None:
    """Why the encoder has to be none: the shift of ``sum_i W x_i`` is n W p, whatever the atoms."""
    torch.manual_seed(0)
    batch, shifts = collate(featurize(SMILES), np.arange(12)), []
    table, offsets = batch["atom"].table, batch["atom"].offsets
    assert table is not None
    prompt, w = Prompt(1, table.shape[1], "atom").double(), torch.randn(4, table.shape[1]).double()
    nn.init.normal_(prompt.p)
    (changed,), _ = prompt.add(w, (batch.with_level("atom", table=table.double()),), {})  # type: ignore[arg-type]
    for each in (table.double() if off else changed["atom"].table, table.double()):
        h = each[batch["atom"].code] @ w.T
        shifts.append(torch.stack([h[a:b].sum(0) for a, b in pairwise(offsets.tolist())]))
    expected = offsets.diff()[:, None] * (prompt.p @ w.T)
    torch.testing.assert_close(shifts[0] - shifts[1], expected, rtol=0, atol=1e-6)


@pytest.fixture(scope="module")
def smooth(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A fitted model with smooth activations, in double precision, and a batch."""
    params = {"d_hidden": 6, "activation": "silu"}
    model = molgraph.pretrain(series(32), params=params, epochs=1, threads=1)
    path = str(model.save(tmp_path_factory.mktemp("smooth") / "dmpnn.mgm"))
    how: dict[str, Any] = {"init": path, "head_width": 5, "epochs": 6, "threads": 1, "learning_rate": 0.01}
    network = GraphMethod(callback="gradient-features", **how).fit(series(40)).ready().network.double()
    batch = collate(featurize(SMILES), np.arange(12))
    for level in ("atom", "bond"):
        table = batch[level].table
        assert table is not None
        batch = batch.with_level(level, table=table.double())
    return network, Sample(batch)


@pytest.mark.system("gradient-features", rung="exact")
def test_the_product_is_that_of_the_explicit_jacobian(smooth: Any, off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    network, sample = smooth
    if off:
        monkeypatch.setattr(network, "_forward_hooks", OrderedDict())  # which add both terms
    part: GradientFeatures = network.parts[PART]
    (h,) = network.encode(sample)
    raw = network.answer([h], sample)
    theta = [network.encoder.get_parameter(name) for name in part.names]
    assert len(theta) == 2 and all(value.any() for value in part.w_2)
    rows = [torch.autograd.grad(raw[i, 0], theta, retain_graph=True) for i in range(12)]
    jacobian = torch.stack([torch.cat([each.flatten() for each in row]) for row in rows])
    w_2 = torch.cat([each.detach().flatten() for each in part.w_2])
    change = jacobian @ w_2
    expected = raw[:, 0] + change + part.w_1(h.graphs)[:, 0]
    torch.testing.assert_close(network(sample)[0][:, 0], expected, rtol=0, atol=1e-5 * float(change.abs().max() or 1))


@pytest.mark.system("gradient-features", rung="exact")
def test_it_is_the_network_with_moved_weights_up_to_the_square_of_the_step(
    smooth: Any, off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    network, sample = smooth
    if off:
        monkeypatch.setattr(network, "_forward_hooks", OrderedDict())
    part: GradientFeatures = network.parts[PART]
    steps, errors = np.array([0.02, 0.04, 0.08, 0.16]), []
    theta = [network.encoder.get_parameter(name) for name in part.names]
    first, w_1 = [value.detach().clone() for value in theta], part.w_1.weight.detach().clone()
    with torch.no_grad():
        directions = [torch.randn(value.shape, generator=torch.manual_seed(3)).double() for value in theta]
        nn.init.zeros_(part.w_1.weight)
        nn.init.zeros_(part.w_1.bias)
        for step in steps:
            for value, direction in zip(part.w_2, directions, strict=True):
                value.copy_(step * direction)
            linear = network(sample)[0]
            for value, before, direction in zip(theta, first, directions, strict=True):
                value.copy_(before + step * direction)
            (moved,) = network.encode(sample)
            errors.append(float((network.answer([moved], sample) - linear).norm()))
            for value, before in zip(theta, first, strict=True):
                value.copy_(before)
        part.w_1.weight.copy_(w_1)
    slope = np.polyfit(np.log(steps), np.log(errors), 1)[0]
    assert slope == pytest.approx(2, abs=0.1)


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """An encoder that learned solubilities, and one with random weights."""
    folder, found, table = tmp_path_factory.mktemp("encoders"), {}, read_table("dataset:esol")
    for name, epochs, rate in (("pretrained", 15, 1e-3), ("random", 1, 1e-12)):
        method = GraphMethod("dmpnn", {"d_hidden": 64}, epochs=epochs, learning_rate=rate, threads=1, head_width=64)
        found[name] = str(Model(method.fit(table), targets=table.targets).save(folder / f"{name}.mgm"))
    return found


@cache
def errors(start: str, callback: str) -> list[float]:
    """Errors of hydration energies, kcal/mol, of about 440 molecules, learned from 100 by a linear head; 3 seeds.

    Of the two step sizes that with the lower loss of the 50 validation molecules is taken, for each seed.
    """
    table, found = read_table("dataset:freesolv"), []
    for seed in range(10, 13):
        order, tried = np.random.default_rng(seed).permutation(len(table)), []
        train, valid, test = (table.take(order[a:b]) for a, b in ((0, 100), (100, 150), (200, len(table))))
        assert test.y is not None
        for rate in RATES:
            how: dict[str, Any] = {"head_layers": 1, "epochs": 100, "batch_size": 16, "learning_rate": rate}
            method = GraphMethod("dmpnn", {}, init=start, callback=callback, seed=seed, patience=20, threads=1, **how)
            curves = method.fit(train, valid).curves
            assert curves is not None
            error = float(np.sqrt(np.square(method.predict(test).value - test.y).mean()))
            tried.append((float(curves["valid_loss"].min()), error))
        found.append(min(tried)[1])
    return found


def compare(effect: Effect, ours: list[float], others: list[float], name: str, most: float) -> None:
    ratios = [a / b for a, b in zip(ours, others, strict=True)]
    effect(f"RMSE / that of {name}", ratios, at_most=most, beside={"RMSE": ours, f"RMSE of {name}": others})


@pytest.mark.system("adversarial-reprogramming", rung="works")
def test_a_prompt_errs_less_than_the_head_alone(encoders: dict[str, str], off: str, effect: Effect) -> None:
    start = encoders["pretrained"]
    probe = errors(start, "linear-probe")
    compare(effect, probe if off else errors(start, "prompt"), probe, "the head alone", 0.9)


@pytest.mark.system(
    "adversarial-reprogramming",
    rung="works",
    null="640 numbers before and after the encoder learn as much through random weights, 100 labels",
)
def test_a_prompt_of_a_pretrained_encoder_errs_less_than_of_a_random_one(
    encoders: dict[str, str], off: str, effect: Effect
) -> None:
    both = [errors(encoders[name], "prompt") for name in ("pretrained", "random")]
    compare(effect, *both, "a random encoder's prompt", 0.9)


@pytest.mark.system("gradient-features", rung="works")
def test_gradients_err_less_than_the_head_alone(encoders: dict[str, str], off: str, effect: Effect) -> None:
    start = encoders["pretrained"]
    probe = errors(start, "linear-probe")
    compare(effect, probe if off else errors(start, "gradient-features"), probe, "the head alone", 0.95)

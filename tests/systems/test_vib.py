"""The information bottleneck of states: its divergence, plain training to the bit, and the spread over seeds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import t

import molgraph
from molgraph.base.errors import UnsupportedError
from molgraph.data.sources import builtin
from molgraph.train.callbacks.vib import PLACE, NoisyState, divergence
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect
from tests.tiny import same_bits, series, small, weights_of

HOW: dict[str, Any] = {"epochs": 40, "batch_size": 32, "patience": None, "threads": 1, "head_width": 16}


@pytest.mark.system("sni-ibac", rung="exact")
def test_the_divergence_is_that_of_a_hundred_thousand_draws(off: str) -> None:
    torch.manual_seed(0)
    mean, log_variance = torch.randn(3, 4), torch.randn(3, 4) - 1
    sd = (0.5 * log_variance).exp()
    z = mean + sd * torch.randn(100_000, 3, 4)
    normal = torch.distributions.Normal
    drawn = (normal(mean, sd).log_prob(z) - normal(0.0, 1.0).log_prob(z)).sum(2).mean(0)
    known = divergence(mean, torch.zeros(3, 4) if off else log_variance)
    torch.testing.assert_close(known, drawn, rtol=0.01, atol=0)


@pytest.mark.system("sni-ibac", rung="exact")
def test_a_pass_has_the_noise_of_the_state_and_predictions_have_none(off: str) -> None:
    torch.manual_seed(0)
    part, h = NoisyState(3), torch.tensor([[1.0, -2.0, 0.5]]).expand(40_000, 3)
    torch.nn.init.normal_(part.log_variance.weight)
    with torch.no_grad():
        assert part.read(part, (h,)) is None
        part.noisy = not off
        z = (part.read(part, (h,)) or (h,))[0]
        sd = (0.5 * part.log_variance(h[0])).exp()
    torch.testing.assert_close(z.mean(0), h[0], rtol=0, atol=0.05)
    torch.testing.assert_close(z.std(0), sd, rtol=0.02, atol=0)


@pytest.mark.system("sni-ibac", rung="exact")
def test_without_noise_and_price_training_is_plain_to_the_bit(off: str) -> None:
    """Dropout's draws included; and with them the price alone changes the weights."""
    how = {"head_dropout": 0.2, "threads": 1}
    plain, other = small(**how).fit(series(32)), small(callback="vib(beta=0, sni_lambda=1)", **how).fit(series(32))
    own = {name: value for name, value in weights_of(other).items() if not name.startswith(f"parts.{PLACE}")}
    assert same_bits(weights_of(plain), own)
    priced = small(callback="none" if off else "vib(beta=0.1, sni_lambda=1)", **how).fit(series(32))
    assert not same_bits(own, {name: weights_of(priced)[name] for name in own})


def test_predictions_have_the_divergence_of_every_molecule_that_can_be_read(tmp_path: Any) -> None:
    table = series(32)
    model = Model(small(callback="vib", threads=1).fit(table), targets=table.targets)
    found = molgraph.load(model.save(tmp_path / "m.mgm")).predict(["CCO", "C(C", "c1ccccc1"]).to_frame()
    assert found.novelty_kl.notna().tolist() == [True, False, True] and (found.novelty_kl.dropna() > 0).all()
    network = model.method.ready().network
    seen = model.method.predict(table.take(np.arange(4))).extra["novelty_kl"]
    batch = model.method.predict(table.take(np.arange(4)))
    assert np.isfinite(seen).all() and np.array_equal(seen, batch.extra["novelty_kl"]), "no noise"
    assert network.parts[PLACE].seen is None
    with pytest.raises(UnsupportedError, match="bottleneck"):
        small(callback="vib", head="atomwise").fit(table)


@pytest.mark.system("sni-ibac", rung="works", null="0.71 of two subsets, with an interval that holds 1")
def test_half_of_the_gradient_without_noise_steadies_training(off: str, effect: Effect) -> None:
    """The deviation of the test RMSE over five seeds of weights, on 120 molecules, against noise in every pass."""
    ratios, means = [], dict[str, list[float]]()
    for seed in SUBSETS:
        found = {name: five(name, seed) for name in ("vib(sni_lambda=0)",) + ("vib",) * (not off)}
        for name, rmse in found.items():
            means.setdefault(f"RMSE of {name}", []).append(float(rmse.mean()))
        own = found["vib(sni_lambda=0)" if off else "vib"]
        ratios.append(float(own.std(ddof=1) / found["vib(sni_lambda=0)"].std(ddof=1)))
    half = float(t.ppf(0.975, len(ratios) - 1)) * np.std(ratios, ddof=1) / len(ratios) ** 0.5
    beside = {"ratio": ratios, **means}
    words = "upper end of the interval of the spread of RMSE over 5 seeds / that of noise in every pass"
    effect(words, [float(np.mean(ratios) + half)], at_most=0.999, beside=beside)


SUBSETS = (21, 22)


def five(callback: str, seed: int) -> np.ndarray:
    """float [5], RMSE on 200 molecules of the ChEMBL series, by five seeds."""
    table = builtin.chembl2321810()
    order = np.random.default_rng(seed).permutation(len(table))
    train, test, values = table.take(order[:120]), table.take(order[-200:]), []
    for weights in range(5):
        method = GraphMethod("gin", {"d_hidden": 16, "depth": 2}, seed=weights, callback=callback, **HOW).fit(train)
        values.append(method.predict(test).value[:, 0])
    return np.sqrt(((np.array(values) - test.y[:, 0]) ** 2).mean(axis=1))  # type: ignore[index]

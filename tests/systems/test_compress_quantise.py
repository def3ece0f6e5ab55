"""Mixed precision: bounded gradients of steps and ranges, a budget met in the file's bytes, and errors as before."""

from __future__ import annotations

import math
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.parts import make_part
from molgraph.compress.quantise import Quantise
from molgraph.compress.quantiser import UniformQuantiser, bits_of, levels, matrices, round_weights
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.train.archive import read_archive
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.packed_weights import LONGEST, SHORTEST
from tests.systems.effect import Effect
from tests.tiny import series, small

ID = "differentiable-mixed-precision-quantisat"
NASTY = ["CC(=O)Nc1ccccc1Cl", "C(C", "C", ""]


@pytest.mark.system(ID, rung="exact")
def test_gradients_of_step_and_range_are_bounded_and_those_of_the_paper(off: str) -> None:
    """One number at a time, by autograd; off: bits are held in the place of the range, and the step moves it."""
    rng = torch.Generator().manual_seed(0)
    for step, bits in ((0.03, 2), (0.5, 3), (0.01, 6), (2.0, 4)):
        x = torch.randn(200, generator=rng, dtype=torch.float64)
        d = torch.full((200,), step, dtype=torch.float64, requires_grad=True)
        q = (d.detach() * levels(bits)).requires_grad_()
        top: Tensor = d * levels(bits) if off else q
        found = torch.stack([UniformQuantiser.apply(x[i], d[i], top[i]) for i in range(200)])
        inside = x.abs() <= step * levels(bits)
        codes = torch.where(inside, (x.abs() / step + 0.5).floor(), levels(bits)) * x.sign()
        torch.testing.assert_close(found.detach(), step * codes, rtol=0, atol=1e-12)
        assert (bits_of(d, q).detach() == bits).all()
        found.sum().backward()
        assert d.grad.abs().max() <= 0.5 + 1e-9
        torch.testing.assert_close(d.grad, torch.where(inside, codes - x / step, 0.0), rtol=0, atol=1e-9)
        torch.testing.assert_close(q.grad, torch.where(inside, 0.0, x.sign()), rtol=0, atol=0)


@pytest.mark.system(ID, rung="exact")
def test_the_budget_is_met_as_counted_in_the_bytes_of_the_file(off: str, tmp_path: Path) -> None:
    """Matrices have different bits; the stream has just those, and the file predicts what the network does."""
    table, valid = series(60), series(20, 60)
    source = Model(
        small(encoder="gin", params={"d_hidden": 16, "depth": 3}, epochs=6).fit(table), targets=table.targets
    )
    before = source.predict(NASTY).value
    for budget in (3.0, 4.5):
        made = Quantise(budget, learn="steps" if off else "widths", epochs=60).compress(source, table, valid, 0)
        network = made.ready().network
        sizes = {name: network.get_parameter(name).numel() for name in network.quantised}
        assert {*sizes} == {name for name, value in network.named_parameters() if value.ndim > 1}
        total = sum(steps.bits * sizes[name] for name, steps in network.quantised.items())
        assert total <= budget * sum(sizes.values())
        assert len({steps.bits for steps in network.quantised.values()}) > 1, "each matrix has its own bits"
        for name, (bits, step) in network.quantised.items():
            codes = network.get_parameter(name).detach().numpy() / np.float32(step)
            assert np.abs(codes - np.rint(codes)).max() < 1e-4 and np.rint(np.abs(codes)).max() <= levels(bits)
        path = Model(made, targets=table.targets).save(tmp_path / f"{budget}.mgm")
        arrays = read_archive(path)[1]
        assert arrays["packed"].nbytes == math.ceil(total / 8)
        assert not any(f"network.{name}" in arrays for name in sizes)
        whole = source.save(tmp_path / "source.mgm").stat().st_size
        saved = 4 * sum(sizes.values()) - arrays["packed"].nbytes
        assert abs(whole - path.stat().st_size - saved) < 4000, "the rest are names, notes and learning curves"
        assert verify(path).largest_gap == 0
        again = load_model(path)
        np.testing.assert_array_equal(again.predict(NASTY).value, made.predict(again.read(NASTY)).value)
        assert again.save(tmp_path / "again.mgm").read_bytes() == path.read_bytes()
    np.testing.assert_array_equal(source.predict(NASTY).value, before)


@pytest.mark.parametrize("how", ["quantise(bits=0)", "quantise(1)", "quantise(bits=32)", "quantise(learn=all)"])
def test_impossible_settings_are_refused_in_a_sentence(how: str) -> None:
    with pytest.raises(BadValueError, match=r"quantise: (bits|learn) is .*, expected"):
        make_part("compressor", how)


@pytest.mark.parametrize("name", ["random_forest(n_estimators=2)", "ensemble(gin, n=2)"])
def test_what_is_no_network_is_refused_in_a_sentence(name: str) -> None:
    params = {"params": {"epochs": 1, "d_hidden": 8, "threads": 1}} if "gin" in name else {}
    source = Model(make_method(name, **params).fit(series(24)), targets=series(4).targets)
    with pytest.raises(UnsupportedError, match="no network whose weights could be quantised") as error:
        Quantise().compress(source, series(24), series(8, 24), 0)
    assert "born_again" in str(error.value.hint)


def test_the_weights_of_a_vanishing_matrix_and_odd_ones_are_rounded() -> None:
    network = small(encoder="gin", params={"d_hidden": 8}, epochs=1).fit(series(16)).ready().network
    name, value = next(matrices(network))
    value.data.zero_()
    round_weights(network, 4.9)
    assert {steps.bits for steps in network.quantised.values()} == {4} and not network.get_parameter(name).any()
    assert all(SHORTEST / 2 < steps.step < LONGEST for steps in network.quantised.values())


@cache
def parts(seed: int) -> tuple[Model, Table, Table, Table]:
    """A network of ESOL, and its rows."""
    table = read_table("dataset:esol")
    order = np.random.default_rng(seed).permutation(len(table))
    train, valid, test = (table.take(order[a:b]) for a, b in ((0, 600), (600, 750), (750, None)))
    how = {"epochs": 40, "batch_size": 32, "patience": None, "threads": 1, "seed": seed, "head_width": 64}
    method = GraphMethod("gin", {"depth": 3, "d_hidden": 64}, **how).fit(train, valid)
    return Model(method, targets=table.targets), train, valid, test


@cache
def rmse(seed: int, bits: float, learn: str) -> float:
    """Of rows of neither part; 32 bits are the source's."""
    model, train, valid, test = parts(seed)
    method = model.method if bits == 32 else Quantise(bits, learn=learn).compress(model, train, valid, seed)
    return float(np.sqrt(np.mean((method.predict(test).value - test.y) ** 2)))


@pytest.mark.system(ID, rung="works")
def test_four_bits_a_weight_cost_little(off: str, effect: Effect) -> None:
    """RMSE on ESOL beside the source's; off: weights are rounded as they are, and nothing is learned."""
    seeds = (31, 32, 33)
    ratios = {
        learn: [rmse(seed, 4.0, learn) / rmse(seed, 32, "") for seed in seeds]
        for learn in ("widths", "steps", "nothing")
    }
    effect("RMSE at 4 bits / at 32", ratios["nothing" if off else "widths"], at_most=1.05,
           beside={"as many bits for each matrix": ratios["steps"], "rounding": ratios["nothing"]})  # fmt: skip

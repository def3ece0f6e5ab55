"""Trials that every registered head meets, and oracles of molgraph's own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError, UsageError
from molgraph.base.parts import make_part
from molgraph.base.registry import entry, get, names
from molgraph.data.table import Table, make_table
from molgraph.nn.head import Head
from molgraph.nn.perceptron import Perceptron
from molgraph.train.method import GraphMethod
from molgraph.trust.ensemble import Ensemble
from tests.tiny import series

NUMBER, CLASS = Target("a"), Target("b", "binary")
MIXED = (NUMBER, CLASS, Target("c", "multiclass", classes=("x", "y", "z")), Target("d", "bounded", bounds=(0.0, 1.0)))
D, N = 4, 12


def kinds_of(name: str) -> tuple[str, ...]:
    """The kinds of targets that a head predicts."""
    return get("head", name).kinds


def build(name: str, targets: tuple[Target, ...] = MIXED, d: int = D) -> Head:
    torch.manual_seed(0)
    targets = tuple(target for target in targets if target.kind in kinds_of(name))
    return make_part("head", f"{name}(d_hidden=16)", d, targets).eval()


def batch(name: str = "perceptron") -> tuple[Tensor, Tensor]:
    """States, and a label of each kind that a head predicts."""
    draw = torch.Generator().manual_seed(1)
    y = [torch.randn(N, generator=draw), *(torch.randint(k, (N,), generator=draw) for k in (2, 3)), torch.rand(N)]
    known = [label for label, target in zip(y, MIXED, strict=True) if target.kind in kinds_of(name)]
    return torch.randn(N, D, generator=draw), torch.stack(known, dim=1).float()


def table(n: int = 32, kinds: tuple[str, ...] = ("regression", "binary")) -> Table:
    y = np.array([[float(len(text)), float(len(text) % 2)] for text in series(n).smiles])
    known = [j for j, target in enumerate((NUMBER, CLASS)) if target.kind in kinds]
    return make_table(list(series(n).smiles), targets=[(NUMBER, CLASS)[j] for j in known], y=y[:, known])


def method(head: str, **params: Any) -> GraphMethod:
    return GraphMethod(**{**GraphMethod.small, "head": head, "threads": 1, "params": {"d_hidden": 8}, **params})


@pytest.mark.parametrize("name", names("head"))
class TestEveryHead:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("head", name)
        assert issubclass(found.value, Head) and found.summary and found.paper and found.value.__doc__

    def test_gives_a_loss_a_label_and_a_value_a_column(self, name: str) -> None:
        head, (h, y) = build(name), batch(name)
        columns = sum(len(target.columns) for target in MIXED if target.kind in kinds_of(name))
        for n in (N, 1, 0):
            raw = head(h[:n])
            value, spread = head.values(raw)
            losses = head.losses(raw, y[:n])
            assert losses.shape == (n, y.shape[1]) and losses.isfinite().all()
            assert value.shape == (n, columns) == (n, head.d_out)
            assert spread is None or (spread.shape == value.shape and not (spread <= 0).any())

    def test_rows_and_targets_do_not_see_each_other(self, name: str) -> None:
        head, (h, y) = build(name), batch(name)
        raw = head(h)
        losses = head.losses(raw, y)
        for i in range(N):
            alone = head.losses(head(h[[i]]), y[[i]])
            torch.testing.assert_close(alone[0], losses[i], rtol=1e-5, atol=1e-5)
        for j in range(y.shape[1]):
            other = y.clone()
            other[:, j] = 1 - other[:, j].clamp(0, 1)
            changed = (head.losses(raw, other) - losses).abs().amax(dim=0) > 0
            assert changed.tolist() == [k == j for k in range(y.shape[1])]

    def test_descriptors_stand_beside_the_state(self, name: str) -> None:
        head, (h, _) = build(name), batch(name)
        if name != "agreement":  # which gives each half of the state to a branch, and descriptors to both
            assert head(h[:, :3], h[:, 3:]).equal(head(h))

    def test_gradients_are_finite_and_reach_every_parameter(self, name: str) -> None:
        head, (h, y) = build(name).train(), batch(name)
        for far in (1.0, 1e4):
            head.zero_grad()
            head.losses(head(far * h), y).sum().backward()
            for label, parameter in head.named_parameters():
                assert parameter.grad is not None and parameter.grad.isfinite().all(), label
                assert far > 1 or parameter.grad.abs().sum() > 0, f"{label} is not used"

    def test_learns_labels_by_heart(self, name: str) -> None:
        head, (h, y) = build(name), batch(name)
        optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
        for _ in range(400):
            optimizer.zero_grad()
            head.losses(head(h), y).sum().backward()
            optimizer.step()
        value, _ = head.values(head(h))
        assert (value[:, 0] - y[:, 0]).abs().median() < 0.25, "a likelihood may take a row for noise"
        if len(kinds_of(name)) == 4:
            assert (value[:, 5].sigmoid() - y[:, 3]).abs().median() < 0.2
            assert (value[:, 1] > 0).equal(y[:, 1] > 0) and value[:, 2:5].argmax(dim=1).equal(y[:, 2].long())

    def test_trains_in_a_model_and_is_stored(self, name: str) -> None:
        rows = table(kinds=kinds_of(name))
        fitted = method(name).fit(rows, rows.take(np.arange(8)))
        before, after = fitted.predict(table()), GraphMethod.from_state(fitted.state()).predict(table())
        assert np.array_equal(before.value, after.value) and np.isfinite(before.value).all()
        assert (before.spread is None) == (after.spread is None)
        assert before.spread is None or np.array_equal(before.spread, after.spread, equal_nan=True)


@pytest.mark.parametrize("name", [name for name in names("head") if len(get("head", name).kinds) < 4])
def test_targets_that_a_head_does_not_predict_are_refused(name: str) -> None:
    for target in MIXED:
        if target.kind not in kinds_of(name):
            with pytest.raises(UnsupportedError, match=f"{target.name!r} is {target.kind}"):
                method(name).fit(make_table(["C", "CC"], targets=(target,), y=np.array([[0.0], [1.0]])))


def test_the_perceptron_is_one_and_has_its_names_in_files() -> None:
    head, (h, _) = build("perceptron"), batch()
    torch.manual_seed(0)
    own = Perceptron(D, 16, 6)
    assert own(h).equal(head(h)) and [*own.state_dict()] == [*head.state_dict()]
    arrays = method("perceptron").fit(table()).state().arrays
    assert arrays["network.head.layers.1.weight"].shape == (2, 8), "width 8 by head_width"
    wider = method("perceptron(d_hidden=5, n_layers=3)").fit(table()).state().arrays
    assert wider["network.head.layers.2.weight"].shape == (2, 5)


def test_gaussian_is_the_likelihood_of_torch_and_leaves_classes_as_they_are() -> None:
    (h, y), torch_loss = batch(), torch.nn.GaussianNLLLoss(reduction="none")
    head = build("gaussian")
    raw = head(h)
    value, spread = head.values(raw)
    expected = torch_loss(value[:, 0], y[:, 0], spread[:, 0].square())
    torch.testing.assert_close(head.losses(raw, y)[:, 0], expected)
    torch.testing.assert_close(head.losses(raw, y)[:, 1:], build("perceptron").losses(value, y)[:, 1:])
    assert spread[:, 1:].isnan().all()
    assert build("gaussian", (CLASS,)).values(build("gaussian", (CLASS,))(h))[1] is None
    assert build("gaussian", (CLASS,))(h).equal(build("perceptron", (CLASS,))(h))


def test_gaussian_learns_where_labels_are_noisy() -> None:
    """Noise of standard deviation 0.1 on the left and 1 on the right; the mean is a line."""
    x = torch.linspace(-1, 1, 800)[:, None]
    true = torch.where(x > 0, 1.0, 0.1)
    y = x + true * torch.randn(800, 1, generator=torch.Generator().manual_seed(0))
    head = build("gaussian", (NUMBER,), 1)
    optimizer = torch.optim.Adam(head.parameters(), lr=0.02)
    for _ in range(600):
        optimizer.zero_grad()
        head.losses(head(x), y).mean().backward()
        optimizer.step()
    value, spread = head.values(head(x).detach())
    assert spread is not None and (value[:200] - x[:200]).abs().max() < 0.1
    assert spread[:200].mean() == pytest.approx(0.1, rel=0.2) and spread[-200:].mean() == pytest.approx(1.0, rel=0.2)


def test_spreads_stand_in_predictions_in_the_units_of_the_target_and_mix_in_an_ensemble() -> None:
    fitted = method("gaussian").fit(table())
    found = fitted.predict(make_table(["CCO", "no molecule"]))
    columns = found.to_frame()
    assert columns["a_spread"][0] > 0 and np.isnan(columns["a_spread"][1]) and np.isnan(columns["b_spread"][0])
    thousand = make_table(list(table().smiles), targets=table().targets, y=table().y * [[1000.0, 1.0]])
    scaled = method("gaussian").fit(thousand).predict(make_table(["CCO"]))
    assert scaled.spread[0, 0] == pytest.approx(1000 * found.spread[0, 0], rel=1e-3)
    params = {**GraphMethod.small, "head": "gaussian", "d_hidden": 8, "threads": 1}
    ensemble = Ensemble("dmpnn", n=3, params=params).fit(table())
    parts = [member.predict(table()) for member in ensemble.members]
    mixed = ensemble.predict(table())
    draw = np.random.default_rng(0).standard_normal((3, 20_000))
    points = np.stack([p.value[0, 0] + p.spread[0, 0] * row for p, row in zip(parts, draw, strict=True)])
    assert mixed.spread[0, 0] == pytest.approx(points.std(), rel=0.03)
    assert mixed.spread[0, 1] == pytest.approx(np.std([p.value[0, 1] for p in parts])), "of classes as before"


@pytest.mark.parametrize("head", ["gausian", "gaussian(n_layers=0)", "gaussian(depth=2)", "gaussian+perceptron"])
def test_heads_that_cannot_be_are_refused(head: str) -> None:
    with pytest.raises(UsageError):
        method(head).fit(table())

"""Magnitude pruning: rewound learning rates, zeros that stay, hidden units that are gone, and errors after both."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import molgraph.compress.magnitude as magnitude
from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.compress.compressor import make_compressor
from molgraph.compress.magnitude import Magnitude, with_zeros
from molgraph.compress.retrain import rates_of, retrain
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.train.make_method import make_method
from molgraph.train.masks import Masked, matrices
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from tests.systems.effect import Effect
from tests.tiny import series, small

TABLE, VALID = series(48), series(16, 48)
SOURCES: dict[str, dict[str, Any]] = {
    "dmpnn": {"params": {"d_hidden": 8}},
    "dmpnn with norms": {"params": {"d_hidden": 8, "norm": "batch", "bias": True, "readout": "sum_max"}},
    "gin": {"encoder": "gin", "params": {"d_hidden": 8, "depth": 3}},
    "gin of a deep head": {"encoder": "gin", "params": {"d_hidden": 8, "edges": False}, "head_layers": 3},
}


@pytest.mark.system("learning-rate-rewinding", rung="exact")
def test_the_rates_of_the_last_epochs_come_once_more(off: str) -> None:
    """Of a warm-up and a cosine, up to the epoch that was kept; fine-tuning has the last of them all the time."""
    source = small(epochs=12, warmup_epochs=3, schedule="cosine", patience=None).fit(TABLE, VALID)
    source.best_epoch = 10
    before = source.ready().network.state_dict()
    rates = source.curves["learning_rate"].to_numpy()
    for rewind, first in ((0.5, 5), (1.0, 0)):
        how = Magnitude(0.5, rewind=rewind, retrain="finetune" if off else "lr_rewind")
        made = how.compress(Model(source, targets=TABLE.targets), TABLE, VALID, 0)
        np.testing.assert_allclose(made.curves["learning_rate"], rates[first:10], rtol=1e-12)
    assert rates_of(source, 0.5, "finetune") == [rates[9]] * 5
    assert all(torch.equal(value, before[name]) for name, value in source.ready().network.state_dict().items())


class Watched(Masked):
    """Counts zeros after every step."""

    def after_step(self, network: Any, state: Any) -> None:
        super().after_step(network, state)
        self.zeros.append(sum(int((value == 0).sum()) for value in matrices(network).values()))


@pytest.mark.parametrize("optimizer", ["sgd(momentum=0.9)", "adam", "adamw"])
@pytest.mark.system("learning-rate-rewinding", rung="exact")
def test_zeros_are_exact_after_every_step_of_momentum_and_weight_decay(
    optimizer: str, off: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The smallest weights of all matrices together, as torch's global unstructured pruning chooses them."""
    source = small(epochs=2, optimizer=optimizer, weight_decay=0.1, batch_size=8).fit(TABLE)
    made = with_zeros(source, 0.8)
    network = source.ready().network
    values = torch.cat([value.detach().abs().flatten() for value in matrices(network).values()])
    cut, n = values.sort().values[round(0.8 * len(values)) - 1], round(0.8 * len(values))
    for name, value in matrices(made.ready().network).items():
        own = network.get_parameter(name).detach()
        torch.testing.assert_close(value.detach(), torch.where(own.abs() > cut, own, 0.0), rtol=0, atol=0)
    if off:
        monkeypatch.setattr(Masked, "after_step", lambda self, network, state: None)
    watch = Watched()
    watch.zeros = []
    done = retrain(made, TABLE, VALID, [0.01, 0.005, 0.001], seed=0, callbacks=[watch])
    assert len(watch.zeros) == 3 * 6 and {*watch.zeros} == {n}
    moved = [bool((value != made.ready().network.get_parameter(name)).any())
             for name, value in matrices(done.ready().network).items()]  # fmt: skip
    assert any(moved)


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.system("learning-rate-rewinding", rung="exact")
def test_hidden_units_of_zero_weights_go_first_and_change_nothing(
    name: str, off: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the units of each group have weights of zero; off: the larger ones are removed."""
    source = small(epochs=2, **SOURCES[name]).fit(TABLE)
    network, rng = source.ready().network, np.random.default_rng(0)
    weights = network.state_dict()
    groups = [units.within("encoder") for units in network.encoder.hidden_units().groups]
    for units in [*groups, *magnitude.head_units(network.head)]:
        gone = rng.permutation(units.n)[units.n // 2 :].tolist()
        for axis in units.axes:
            if "running" not in axis.name:
                weights[axis.name].movedim(axis.dim, 0)[units.places(axis)[:, gone].flatten()] = 0
    network.load_state_dict(weights)
    if off:
        chosen = magnitude.largest
        monkeypatch.setattr(magnitude, "largest", lambda scores, k: chosen(-scores, k))
    made = Magnitude(0.5, retrain=None).compress(Model(source, targets=TABLE.targets), TABLE, VALID, 0)
    np.testing.assert_allclose(made.predict(VALID).value, source.predict(VALID).value, rtol=0, atol=1e-5)
    assert made.head_width == 4 and made.params["d_hidden"] == 4
    paths = [Model(each, targets=TABLE.targets).save(tmp_path / f"{i}.mgm") for i, each in enumerate((source, made))]
    assert verify(paths[1]).largest_gap == 0
    again = load_model(paths[1]).method
    np.testing.assert_array_equal(again.predict(VALID).value, made.predict(VALID).value)
    sizes = [sum(value.numel() for value in each.ready().network.state_dict().values()) for each in (source, again)]
    assert sizes[1] < 0.75 * sizes[0]


def rmse(test: Table, method: Any) -> float:
    return float(np.sqrt(np.mean((method.predict(test).value - test.y) ** 2)))


@pytest.mark.system("learning-rate-rewinding", rung="works")
def test_rewound_learning_rates_beat_fine_tuning_for_as_many_epochs(off: str, effect: Effect) -> None:
    """ESOL, a fifth of the hidden units left; off: fine-tuning in both places."""
    table, wins, ratios = read_table("dataset:esol"), list[float](), dict[str, list[float]]()
    for seed in (31, 32, 33, 34, 35):
        order = np.random.default_rng(seed).permutation(len(table))
        train, valid, test = (table.take(order[a:b]) for a, b in ((0, 600), (600, 750), (750, None)))
        how = {"epochs": 30, "batch_size": 32, "patience": None, "threads": 1, "seed": seed}
        source = GraphMethod("dmpnn", {"d_hidden": 64}, head_width=64, **how).fit(train, valid)
        model = Model(source, targets=table.targets)
        error = partial(rmse, test)
        pruned = {
            name: error(Magnitude(0.8, retrain=how).compress(model, train, valid, seed))
            for name, how in (("rewound", "finetune" if off else "lr_rewind"), ("finetune", "finetune"), ("none", None))
        }
        wins.append(float(pruned["rewound"] < pruned["finetune"]))
        for name, value in pruned.items():
            ratios.setdefault(f"RMSE {name} / source", []).append(value / error(source))
    effect("share of seeds in which rewinding beats fine-tuning", wins, at_least=0.8, beside=ratios)


def test_what_cannot_be_pruned_is_refused_in_a_sentence() -> None:
    targets = TABLE.targets
    for text in ("magnitude(0)", "magnitude(1)", "magnitude(1, structured=false)"):
        with pytest.raises(BadValueError, match="fraction"):
            make_compressor(text)
    forest = Model(make_method("random_forest(n_estimators=5)").fit(TABLE), targets=targets)
    with pytest.raises(UnsupportedError, match=r"a random_forest has no hidden units"):
        Magnitude().compress(forest, TABLE, VALID, 0)
    cases = [
        ({"encoder": "graphconv", "params": {"d_hidden": 8}}, "graphconv does not say"),
        ({"encoder": "gin", "params": {"d_hidden": 8, "stack": "layer_drop"}}, "params.stack"),
        ({"params": {"d_hidden": 8, "readout": "set2set"}}, "readout set2set"),
    ]
    for params, words in cases:
        model = Model(small(epochs=1, **params).fit(TABLE), targets=targets)
        with pytest.raises(UnsupportedError, match=words):
            Magnitude().compress(model, TABLE, VALID, 0)
    model = Model(small(epochs=1).fit(TABLE), targets=targets)
    with pytest.raises(BadValueError, match="less than one"):
        Magnitude(0.01).compress(model, TABLE, VALID, 0)
    model.method.curves = None
    with pytest.raises(UnsupportedError, match="learning rates"):
        Magnitude().compress(model, TABLE, VALID, 0)


def test_a_model_trains_on_from_its_own_scales() -> None:
    """What comes before the first step predicts as before, though the rows have another mean and spread."""
    source = small(epochs=3).fit(TABLE)
    done = retrain(source, series(16, 20), None, [1e-12], seed=0)
    np.testing.assert_allclose(done.predict(VALID).value, source.predict(VALID).value, rtol=1e-5)

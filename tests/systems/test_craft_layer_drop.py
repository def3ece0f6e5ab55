"""LayerDrop: a network cut to some of its layers computes those alone, and loses little where it was trained for it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.registry import get
from molgraph.data.batch import collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.data.read import read_table
from molgraph.nn.block import with_options
from molgraph.nn.blocks.layer_drop import kept_layers
from molgraph.nn.encoder import Encoder
from molgraph.train.cut_depth import cut_depth
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from tests.systems.effect import Effect
from tests.tiny import series, small

STORE = featurize([str(text) for text in series(12).smiles])


def encoder(stack: str = "", **params: object) -> Encoder:
    torch.manual_seed(0)
    cls = get("encoder", "gin")
    options = {"stack": stack} if stack else {}
    return with_options(lambda spec: cls(spec, d_hidden=8, **params), cls, "gin", MOLECULE_SPEC, options)


@pytest.mark.system("layerdrop", rung="exact")
def test_without_a_chance_of_dropping_it_is_the_plain_network_to_the_bit(off: str) -> None:
    batch = collate(STORE, np.arange(12))
    for training in (True, False):
        plain, own = encoder().train(training), encoder(f"layer_drop(p={0.5 if off else 0})").train(training)
        torch.manual_seed(1)
        assert torch.equal(own(batch).graphs, plain(batch).graphs)


@pytest.mark.parametrize("keep", ["every", "first"])
@pytest.mark.parametrize("residual", ["false", "true"])
@pytest.mark.system("layerdrop", rung="exact")
def test_a_cut_model_runs_the_kept_layers_alone(keep: str, residual: str, off: str, tmp_path: Path) -> None:
    """Their states one after the other, each atom a row of its own; the file holds no other layer."""
    params = {"d_hidden": 8, "depth": 6, "stack": f"layer_drop(p=0.3, residual={residual})"}
    method = small(encoder="gin", params=params, epochs=1).fit(series(24))
    cut = method if off else cut_depth(method, 2, keep)
    kept, runs = kept_layers(6, 2, keep), []
    whole = method.ready().network.encoder
    layer = whole._layer
    whole.options[0].kept = frozenset(kept)
    whole._layer = lambda t, *args: runs.append(t) or layer(t, *args)
    expected = method.predict(series(8, 40)).value
    whole._layer, whole.options[0].kept = layer, None
    assert runs == kept
    np.testing.assert_allclose(cut.predict(series(8, 40)).value, expected, rtol=0, atol=1e-6)
    paths = [Model(each, targets=series(8).targets).save(tmp_path / f"{each is cut}.mgm") for each in (method, cut)]
    found = load_model(paths[1])
    np.testing.assert_array_equal(found.method.predict(series(8, 40)).value, cut.predict(series(8, 40)).value)
    assert paths[1].stat().st_size < paths[0].stat().st_size
    names = found.method.ready().network.state_dict()
    assert {int(name.split(".")[2]) for name in names if ".perceptrons." in name} == {*kept}


def test_what_cannot_be_cut_is_refused_in_a_sentence() -> None:
    ode = small(encoder="gin", params={"d_hidden": 8, "stack": "ode"}, epochs=1).fit(series(16))
    with pytest.raises(UnsupportedError, match="ode"):
        cut_depth(ode, 2)
    with pytest.raises(UnsupportedError, match="stack"):
        cut_depth(small(epochs=1).fit(series(16)), 2)
    gin = small(encoder="gin", params={"d_hidden": 8, "depth": 4}, epochs=1).fit(series(16))
    with pytest.raises(BadValueError, match="5 layers"):
        cut_depth(gin, 5)
    once = cut_depth(gin, 2)
    with pytest.raises(UnsupportedError, match="not in the trained model"):
        cut_depth(once, 3)
    assert once.predict(series(4)).value.shape == (4, 1)


@pytest.mark.system("layerdrop", rung="works")
def test_cut_to_half_its_layers_it_loses_little(off: str, effect: Effect) -> None:
    """Eight layers, of which every second stays; the network without dropped layers, cut alike, loses more."""
    table, losses = read_table("dataset:esol"), dict[float, list[float]]()
    for p in (0.0,) if off else (0.3, 0.0):
        for seed in (21, 22, 23) if off or p else (21,):
            order = np.random.default_rng(seed).permutation(len(table))
            train, valid, test = (table.take(order[a:b]) for a, b in ((0, 500), (500, 650), (650, 850)))
            params = {"depth": 8, "d_hidden": 32, "norm": "layer", "stack": f"layer_drop(p={p}, residual=true)"}
            how = {"epochs": 20, "learning_rate": 0.003, "batch_size": 32, "patience": None, "threads": 1, "seed": seed}
            method = GraphMethod("gin", params, head_width=64, **how).fit(train, valid)
            before, after = (
                float(np.sqrt(np.nanmean((each.predict(test).value - test.y) ** 2)))
                for each in (method, cut_depth(method, 4))
            )
            assert before < 0.8 * np.nanstd(test.y), "it has learned something"
            losses.setdefault(p, []).append(after / before)
    effect(
        "RMSE of 4 of 8 layers / RMSE of all",
        losses[0.0 if off else 0.3],
        at_most=1.15,
        beside={"without dropped layers": losses[0.0]},
    )

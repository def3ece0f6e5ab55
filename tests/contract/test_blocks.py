"""Trials of block options: each encoder changes its answer under each, or refuses it by name."""

from __future__ import annotations

import warnings
from types import MethodType

import numpy as np
import pytest
import torch

from molgraph.base.errors import UnknownNameError, UnsupportedError
from molgraph.base.registry import entry, get, names
from molgraph.data.batch import GraphBatch, collate
from molgraph.nn.block import KEYS, BlockOption, split_options
from molgraph.nn.encoder import Encoder
from molgraph.train.network import _encoder
from tests.contract.test_encoders import ENCODERS, graphs, store_of

BLOCKS = names("block")
#: the method of an option of each key that is taken out, and what then stands in its place
SILENT = {
    "positions": ("features", lambda self, batch: torch.zeros(batch.n_atoms, self.columns)),
    "frames": ("coordinates", lambda self, batch: iter([torch.zeros(batch.n_atoms, 3)])),
    "symbols": ("pool", lambda self, call, found: call(found)),
    "stack": ("run", lambda self, layers, h, skips=(): [h := skip(h) for skip in skips or [torch.clone] * len(layers)]),
    "exit": ("pool", lambda self, call, found: call(found)),
}


def build(encoder: str, block: str) -> Encoder:
    cls = get("encoder", encoder)
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return _encoder(cls, {**cls.small, get("block", block).key: block}, encoder, store_of(encoder).spec).eval()


def build_or_refuse(encoder: str, block: str) -> Encoder | str:
    try:
        return build(encoder, block)
    except UnsupportedError as error:
        return str(error)


def batch_of(encoder: str) -> GraphBatch:
    store = store_of(encoder)
    return collate(store, np.arange(len(store)))


@pytest.mark.parametrize("block", BLOCKS)
class TestEveryBlockOption:
    def test_says_what_it_is(self, block: str) -> None:
        found = entry("block", block)
        assert issubclass(found.value, BlockOption) and found.summary and found.value.__doc__
        assert found.value.key in KEYS and found.tags == (found.value.key,)

    @pytest.mark.parametrize("encoder", ENCODERS)
    def test_an_encoder_changes_its_answer_or_refuses_it_by_name(self, block: str, encoder: str) -> None:
        own = build_or_refuse(encoder, block)
        if isinstance(own, str):
            assert encoder in own and get("block", block).key in own
            return
        batch = batch_of(encoder)
        answer = graphs(own, batch)
        assert answer.shape == (batch.n_graphs, own.d_out) and answer.isfinite().all()
        torch.testing.assert_close(graphs(own, batch), answer)
        alone = collate(store_of(encoder), np.array([5]))
        torch.testing.assert_close(graphs(own, alone)[0], answer[5], rtol=1e-4, atol=1e-4)
        (option,) = own.options
        method, silent = SILENT[option.key]
        setattr(option, method, MethodType(silent, option))
        assert (graphs(own, batch_of(encoder)) - answer).abs().max() > 1e-6

    def test_some_encoder_takes_it_and_its_weights_train(self, block: str) -> None:
        for encoder in ("gin", "schnet"):
            own = build_or_refuse(encoder, block)
            if isinstance(own, str):
                continue
            own.train()(batch_of(encoder), rows=True).graphs.square().sum().backward()
            assert all(p.grad is not None for p in own.options[0].parameters())
            return
        raise AssertionError("neither gin nor schnet takes it")


def test_unknown_options_are_refused_with_the_known_ones() -> None:
    gin = get("encoder", "gin")
    assert split_options(gin, {"depth": 3, "positions": None, "exit": None}) == ({"depth": 3}, {})
    with pytest.raises(UnknownNameError, match="wlks"):
        split_options(gin, {"positions": "wlks(4)"})
    with pytest.raises(UnknownNameError, match="step"):
        split_options(gin, {"positions": "walks(step=4)"})

"""Trials of every registered encoder with what stands around it: readouts with penalties, torch.func."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from molgraph.base import registry
from molgraph.base.registry import Entry, entry
from molgraph.data.batch import collate
from molgraph.data.featurize_reaction import Reactions
from molgraph.nn.readouts import Sum
from tests.contract.test_encoders import ENCODERS, build, store_of


class Penal(Sum):
    """A sum that penalises large states."""

    def read(self, h: Any, relation: Any) -> Any:
        return super().read(h, relation), {"size": h.square().sum()}


@pytest.mark.parametrize("name", ENCODERS)
class TestEveryEncoder:
    def test_the_penalties_of_its_readout_are_passed_on(self, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
        make = entry("encoder", name).value
        if "readout" not in inspect.signature(make.__init__).parameters:
            return
        registry.load_kind("readout")
        monkeypatch.setitem(registry._entries["readout"], "penal", Entry("readout", "penal", Penal))
        store = store_of(name)
        encoded = make(store.spec, readout="penal")(collate(store, np.arange(4)))
        assert encoded.penalties["size"] > 0  # beside the encoder's own

    def test_reactions_are_read_as_molecules_are(self, name: str) -> None:
        if "reaction" not in entry("encoder", name).value.reads:
            return
        store = Reactions().featurise([*Reactions.examples, "[CH3:7]Br.[OH-:1]>>[OH:1][CH3:7]", "[CH4:1]>>[CH3-:1]"])
        encoder = entry("encoder", name).value(store.spec, **entry("encoder", name).value.small).eval()
        found = encoder(collate(store, np.arange(5))).graphs
        assert torch.isfinite(found).all() and len(found.round(decimals=5).unique(dim=0)) == 5

    def test_torch_func_goes_through_a_batch_that_is_prepared(self, name: str) -> None:
        store, encoder = store_of(name, slice(4)), build(name).eval()
        weights = {key: value.detach() for key, value in encoder.named_parameters()}
        prepared = collate(store, np.arange(4))
        encoder.prepare(prepared)

        def loss(weights: dict[str, Tensor]) -> Tensor:
            return torch.func.functional_call(encoder, weights, (prepared,)).graphs.sin().sum()

        found = torch.func.grad(loss)(weights)
        encoder(collate(store, np.arange(4))).graphs.sin().sum().backward()
        for key, parameter in encoder.named_parameters():
            torch.testing.assert_close(found[key], parameter.grad, msg=key)

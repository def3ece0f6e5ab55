"""InfoGraph: batches that leave negatives, and every encoder that gives rows; its loss stands in tests/systems."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch

import molgraph
from molgraph.base import registry
from molgraph.base.errors import UnsupportedError, UsageError
from molgraph.data.table import make_table
from molgraph.train.inputs import trial_inputs
from molgraph.train.network import build_network
from molgraph.train.objective import StepState
from molgraph.train.objectives.infograph import InfoGraph
from molgraph.train.preparation import prepare
from tests.tiny import series, small

SMILES = ["CC(=O)Nc1ccc(O)cc1", "C", "C#N", "OCC1CC1"]


def made(encoder: str, **params: Any) -> tuple[Any, Any, InfoGraph]:
    """A batch of molecules, a network and the objective."""
    found = prepare(make_table(SMILES), None, encoder, None, None, {}, targets=False)
    torch.manual_seed(0)
    network = build_network(found.inputs, params, joiner="concat", d_extra=0)
    return found.train.sample(np.arange(len(SMILES))), network, InfoGraph(network, found.inputs, d_score=6)


@pytest.mark.parametrize("encoder", registry.names("encoder"))
def test_every_encoder_of_molecules_that_gives_rows_can_be_pretrained(encoder: str) -> None:
    make = registry.get("encoder", encoder)
    if "molecule" not in make.reads:
        pytest.skip("no encoder of molecules")
    if not build_network(trial_inputs(encoder), make.small, joiner="concat", d_extra=0).encoder.d_rows:
        with pytest.raises(UnsupportedError, match=encoder):
            made(encoder, **make.small)
        return
    batch, network, objective = made(encoder, **make.small)
    network.prepare(batch)
    found = objective(network, batch, StepState(0, 1, 0))
    found.total.backward()
    assert math.isfinite(found.total.item()) and found.count == 4
    assert any(p.grad is not None and p.grad.abs().sum() > 0 for p in network.encoder.parameters())


def test_a_last_batch_of_one_graph_joins_the_one_before_and_batches_differ_by_epoch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    seen: list[tuple[int, ...]] = []
    forward = InfoGraph.forward

    def watched(self: InfoGraph, network: Any, batch: Any, state: StepState) -> Any:
        if state.training:
            sizes.append(batch.parts[0].batch.n_graphs)
            seen.append(tuple(batch.parts[0].batch["atom"].offsets.diff().tolist()))
        return forward(self, network, batch, state)

    monkeypatch.setattr(InfoGraph, "forward", watched)
    small(objective="infograph", epochs=2, batch_size=16).fit(make_table(series(33).smiles), make_table(SMILES))
    assert sizes == [16, 17, 16, 17]
    assert seen[0] != seen[2] and sorted(seen[0] + seen[1]) == sorted(seen[2] + seen[3])


@pytest.mark.parametrize(
    ("rows", "batch_size", "valid", "words"),
    [(1, 8, 4, "training part"), (8, 1, 4, "a batch"), (8, 8, 1, "validation part")],
)
def test_one_graph_is_refused(rows: int, batch_size: int, valid: int, words: str) -> None:
    parts = [make_table(series(n).smiles) for n in (rows, valid)]
    with pytest.raises(UsageError, match=f"{words} has 1") as found:
        small(objective="infograph", batch_size=batch_size).fit(*parts)
    assert found.value.hint == ("set batch_size to 2 or more" if batch_size == 1 else "give it more rows")


def test_pretrained_vectors_and_a_model_that_starts_from_them(tmp_path: Any) -> None:
    params = {"d_hidden": 8, "depth": 2, "objective.d_score": 16}
    model = molgraph.pretrain(series(48).smiles.tolist(), model="gin", objective="infograph", params=params, epochs=8)
    losses = model.method.curves["train_loss"]  # type: ignore[attr-defined]
    assert losses.iloc[-1] < losses.iloc[0]
    path = model.save(tmp_path / "encoder.mgm")
    vectors = molgraph.embed(path, ["CCO", "not a molecule"]).value
    assert vectors.shape == (2, 24) and np.isfinite(vectors[0]).all() and np.isnan(vectors[1]).all()
    how: dict[str, Any] = {"epochs": 1, "baseline": False, "split": "random"}
    started = molgraph.finetune(path, series(48), **how).model
    assert any("pretrained by infograph" in note for note in started.card.notes)


def test_several_columns_are_refused() -> None:
    table = make_table(SMILES)
    inputs = prepare(table, None, "gin", None, None, {}, targets=False).inputs * 2
    network = build_network(inputs, {"d_hidden": 8}, joiner="concat", d_extra=0)
    with pytest.raises(UnsupportedError, match="infograph"):
        InfoGraph(network, inputs)

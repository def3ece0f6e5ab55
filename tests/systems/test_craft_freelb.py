"""FreeLB: its gradient is the mean of those of its steps, changes keep within the ball, and what it brings on BBBP."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score
from torch import Tensor

from molgraph.base.errors import UnsupportedError
from molgraph.data.batch import collate
from molgraph.data.read import read_table
from molgraph.data.standardise import standardise
from molgraph.nn.relations import members
from molgraph.train.callbacks import freelb
from molgraph.train.callbacks.freelb import FreeLB, lengths
from molgraph.train.method import GraphMethod
from molgraph.train.objective import Loss, StepState
from molgraph.train.samples import InputBatch, Sample
from tests.systems.effect import Effect
from tests.tiny import series, small

STATE = StepState(3, 10, 0)


def case() -> tuple[Any, Sample]:
    """A GIN with batch norm and dropout, and a batch of eight molecules, in double precision."""
    method = small(encoder="gin", head_dropout=0.3, threads=1, epochs=1).fit(series(16))
    network, spec = method.ready().network.train().double(), method.graph_inputs()[0]
    batch = collate(spec.featuriser.featurise(list(map(str, series(8).smiles)), spec=spec.spec), np.arange(8))
    for level in ("atom", "bond"):
        table = batch[level].table
        batch = batch.with_level(level, table=None if table is None else table.double())
    torch.manual_seed(4)
    return network, Sample((InputBatch(batch, None),), None, torch.randn(8, 1).double(), torch.ones(8, 1))


def squares(network: Any, batch: Sample, state: StepState) -> Loss:
    raw, penalties = network(batch)
    assert batch.y is not None
    return Loss((raw - batch.y).square().sum(), 8).with_penalties(penalties)


def gradients(network: Any, callback: FreeLB, objective: Any = squares) -> Tensor:
    """Those of the weights, side by side, and behind them the running means of the batch norms."""
    network, batch = network[0], network[1]
    network.zero_grad()
    torch.manual_seed(5)
    callback.loss(objective, network, batch, STATE).total.backward()
    means = [value for name, value in network.named_buffers() if "running" in name]
    own = [value.grad for value in network.parameters() if value.grad is not None]
    return torch.cat([each.flatten() for each in (*own, *means)])


@pytest.mark.system("freelb", rung="exact", twins=("moved",))
def test_one_step_of_no_length_is_plain_training(off: str) -> None:
    """Dropout and the running means of batch norms included."""
    network, plain = case(), case()
    plain[0].load_state_dict(network[0].state_dict())
    found = gradients(network, FreeLB(steps=1, eps=0.5 if off else 0.0))
    plain[0].zero_grad()
    torch.manual_seed(5)
    squares(*plain, STATE).total.backward()
    own = [value.grad for value in plain[0].parameters() if value.grad is not None]
    means = [value for name, value in plain[0].named_buffers() if "running" in name]
    torch.testing.assert_close(found, torch.cat([each.flatten() for each in (*own, *means)]), rtol=1e-7, atol=1e-7)


@pytest.mark.system("freelb", rung="exact")
def test_the_gradient_is_the_mean_of_those_of_all_steps(off: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each at a change that raises the loss, with the same dropout, no longer than ``eps``."""
    network, seen, losses = case(), list[Tensor](), list[float]()
    graphs = network[1].parts[0].batch

    def objective(network: Any, batch: Sample, state: StepState) -> Loss:
        loss = squares(network, batch, state)
        seen.append((batch.parts[0].batch.features("atom") - graphs.features("atom")).detach())
        losses.append(float(loss.total.detach()))
        return loss

    found = gradients(network, FreeLB(steps=1 if off else 4, eps=0.5), objective)
    assert len(seen) == 4 and all(float(lengths(graphs, each).max()) <= 0.5 + 1e-5 for each in seen)
    assert np.all(np.diff(losses) > 0)
    n_means = sum(value.numel() for name, value in network[0].named_buffers() if "running" in name)
    apart = []
    for change in seen:
        moved = freelb.perturbed_sample(network[1], {0: graphs}, {0: change})
        network[0].zero_grad()
        torch.manual_seed(5)
        squares(network[0], moved, STATE).total.backward()
        apart.append(torch.cat([v.grad.flatten() for v in network[0].parameters() if v.grad is not None]))
    torch.testing.assert_close(found[:-n_means], torch.stack(apart).mean(0), rtol=1e-6, atol=1e-6)


def test_a_molecule_has_a_change_of_its_own_length() -> None:
    graphs = collate(small().fit(series(16)).graph_inputs()[0].featuriser.featurise(["CCO", "C"]), np.arange(2))
    assert members(graphs).n_target == 2
    x = torch.ones(4, graphs.features("atom").shape[1])
    width = x.shape[1]
    torch.testing.assert_close(lengths(graphs, x)[:, 0], torch.tensor([3.0 * width] * 3 + [1.0 * width]).sqrt())


def test_layers_that_have_no_gradient_twice_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="reversible"):
        small(encoder="gin", params={"d_hidden": 8, "stack": "reversible"}, callback="freelb").fit(series(16))


@pytest.mark.system(
    "freelb", rung="works", null="AUC 0.832 beside 0.855 of BBBP at equal gradients: the weights move a third as often"
)
def test_it_ranks_new_molecules_better_than_plain_training_with_as_many_gradients(off: str, effect: Effect) -> None:
    """BBBP, 400 molecules to learn from and 800 others; 8 epochs of 3 steps, and 24 epochs."""
    table, found = standardise(read_table("dataset:bbbp", targets=["p_np"]), "standard"), dict[str, list[float]]()
    table = table.take(np.flatnonzero(table.ok))
    for seed in range(5):
        order = np.random.default_rng(seed).permutation(len(table))
        train, test = table.take(order[:400]), table.take(order[400:1200])
        for name, epochs in (("freelb", 8), ("none", 24)):
            how: dict[str, Any] = {"head_width": 64, "batch_size": 32, "patience": None, "threads": 1, "seed": seed}
            method = GraphMethod("gin", {"depth": 3, "d_hidden": 64}, callback=name, epochs=epochs, **how).fit(train)
            value, y = method.predict(test).value[:, 0], test.y[:, 0]  # type: ignore[index]
            known = np.isfinite(value)
            found.setdefault(name, []).append(float(roc_auc_score(y[known], value[known])))
    gain = [a - b for a, b in zip(found["freelb"], found["none"], strict=True)]
    effect("AUC less that of plain training with as many gradients", gain, at_least=0.01, beside=found)

"""FedAvg: one step of all rows a round is a pooled step, bytes are those of the weights, more local epochs need fewer
rounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from molgraph.auxiliary.study.federated import Arm, FederatedStudy, _parts, _score, begin, divide, with_graphs
from molgraph.study.study import Subject
from molgraph.train.inputs import input_graphs
from tests.systems.effect import Effect
from tests.tiny import series, small

CLIENTS = [np.arange(7), np.arange(7, 20), np.arange(20, 48)]  # of unequal sizes
GOAL, ROUNDS = 1.5, 60  # rmse of new scaffolds, log mol/l; rounds that are tried


def started(clients: list[np.ndarray] | None, **how: Any) -> Arm:
    return begin(small(), series(48), clients, **{"epochs": 1, "batch_size": 0, "rate": 0.1, **how})


def weights(arm: Arm) -> torch.Tensor:
    return torch.cat([p.detach().double().ravel() for p in arm.federation.network.parameters()])


@pytest.mark.system("fedavg", rung="exact")
def test_one_step_of_all_rows_a_round_is_a_pooled_step(off: str) -> None:
    """Three rounds, clients of 7, 13 and 28 rows; off: two epochs a round."""
    pooled, clients = started(None), started(CLIENTS, epochs=2 if off else 1)
    first = weights(pooled)
    torch.testing.assert_close(weights(clients), first, rtol=0, atol=0)
    for _ in range(3):
        pooled.federation.round(), clients.federation.round()
    assert (weights(pooled) - first).abs().max() > 1e-4
    torch.testing.assert_close(weights(clients), weights(pooled), rtol=0, atol=1e-6)


@pytest.mark.system("fedavg", rung="exact")
def test_a_round_is_the_mean_of_its_clients_alone_by_their_rows(off: str) -> None:
    """Four epochs in batches of 5; off: the plain mean, as if all clients had as many rows."""
    how: dict[str, Any] = {"epochs": 4, "batch_size": 5}
    all_clients, start = started(CLIENTS, **how), weights(started(None))
    all_clients.federation.round()
    rows = np.ones(3) if off else np.array([len(each) for each in CLIENTS], float)
    total = torch.zeros_like(start)
    for k, share in enumerate(rows / rows.sum()):
        one = started(CLIENTS, **how)
        before = {name: value.clone() for name, value in one.federation.network.state_dict().items()}
        for j in range(k + 1):  # the seeds of clients are those of their numbers
            one.federation.network.load_state_dict(before)
            one.federation._train(CLIENTS[j], client_seed(one, j))
        total += share * weights(one)
    torch.testing.assert_close(weights(all_clients), total, rtol=0, atol=1e-6)


def client_seed(arm: Arm, k: int) -> int:
    from molgraph.base.seeds import derive

    return derive(arm.federation.seed, "client", arm.federation.rounds, k)


@pytest.mark.system("fedavg", rung="exact")
def test_bytes_are_those_of_the_weights_to_the_clients_of_a_round_and_back(off: str) -> None:
    """Two of three clients, three rounds, beside a header of safetensors; off: all clients."""
    arm = started(CLIENTS, share=1.0 if off else 0.6)
    for _ in range(3):
        arm.federation.round()
    state = arm.federation.network.state_dict()
    plain = sum(value.numel() * value.element_size() for value in state.values())
    least = 3 * 2 * 2 * plain
    assert least < arm.federation.bytes < least + 12 * (100 * len(state) + 100)


@pytest.mark.system("fedavg", rung="works")
def test_more_epochs_of_the_clients_need_fewer_rounds(off: str, effect: Effect) -> None:
    """ESOL, five clients of scaffolds of their own: rounds to an RMSE of 1.5 on new scaffolds; off: one epoch."""
    shares, rounds = list[float](), dict[str, list[float]]()
    for seed in (51, 52, 53):
        method = small(params={"d_hidden": 32}, head_width=32, seed=seed)
        table, target, _ = FederatedStudy()._table(Subject("dataset:esol"), seed)
        train, test, _ = _parts(table, seed)
        train = with_graphs(train, method)
        clients, n = divide(train, "scaffold:5", seed), dict[int, int]()
        for epochs in (5, 1):
            arm = begin(method, train, clients, epochs=1 if off else epochs, rate=0.05, seed=seed)
            graphs, n[epochs] = input_graphs(test, arm.method.graph_inputs()), ROUNDS
            for done in range(1, ROUNDS + 1):
                arm.federation.round()
                if _score(arm.method, test, graphs, target) <= GOAL:
                    n[epochs] = done
                    break
            rounds.setdefault(f"rounds of {epochs}", []).append(n[epochs])
        shares.append(n[5] / n[1])
    effect(f"rounds of 5 epochs over rounds of 1 (at most {ROUNDS})", shares, at_most=0.8, beside=rounds)

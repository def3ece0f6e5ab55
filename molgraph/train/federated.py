"""Train one network on rows that stay with several clients, by federated averaging of their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from molgraph.base.errors import MolgraphError
from molgraph.base.seeds import derive, generator
from molgraph.data.loader import batch_order
from molgraph.data.table import Table
from molgraph.train.inference import FittedNetworks
from molgraph.train.method import GraphMethod
from molgraph.train.network import Network
from molgraph.train.objective import Objective, StepState, make_objective
from molgraph.train.optimizers import make_optimizer
from molgraph.train.preparation import prepare
from molgraph.train.runtime import torch_settings
from molgraph.train.samples import Samples

PLAIN = "sgd(momentum=0, nesterov=false)"


class Federation:
    """A network that clients train in rounds, each on its own rows, in one process.

    McMahan et al. 2017, "Communication-efficient learning of deep networks from decentralized data", algorithm 1: in
    each round a share C of the clients begins with the weights ``w_t``, client k takes E epochs of gradient descent in
    batches of B of its rows, and ``w_{t+1} = sum_k (n_k / n) w_k``, where ``n_k`` is the number of its labels and ``n``
    that of all clients of the round. With E = 1, B without bound and C = 1 a round is a step of gradient descent on all
    rows. Running statistics of a norm are averaged as weights are. Nothing is encrypted and no privacy is promised.

    Args:
        network: trained in place; its first weights are those that all clients begin with.
        objective: what the clients minimise.
        samples: the rows of all clients.
        clients: int64 [n_k], the rows of each client.
        epochs: E, passes of a client over its rows in a round.
        batch_size: B, rows of a step; 0 takes all rows of the client.
        share: C, of the clients that take part in a round; one at least.
        optimizer: a registered optimiser of the clients, which begins anew in each round; the paper's has no momentum.
        rate: its learning rate.
        seed: of the draws of clients, the order of their rows and dropout.
        training: whether dropout and the statistics of batches are at work.
    """

    def __init__(
        self,
        network: Network,
        objective: Objective,
        samples: Samples,
        clients: Sequence[np.ndarray],
        *,
        epochs: int = 5,
        batch_size: int = 32,
        share: float = 1.0,
        optimizer: str = PLAIN,
        rate: float = 0.05,
        seed: int = 0,
        training: bool = True,
    ) -> None:
        self.network, self.objective, self.samples, self.clients = network, objective, samples, clients
        self.epochs, self.batch_size, self.share = epochs, batch_size, share
        self.optimizer, self.rate, self.seed, self.training = optimizer, rate, seed, training
        self.rounds = self.bytes = 0  # done so far; sent so far, both ways

    def round(self) -> None:
        """One round: weights go out, come back, and are averaged; both ways count in ``bytes``."""
        rng = generator(self.seed, "round", self.rounds)
        n_drawn = max(round(self.share * len(self.clients)), 1)
        drawn = np.sort(rng.permutation(len(self.clients))[:n_drawn])
        counts = np.array([self._labels(self.clients[k]) for k in drawn], dtype=float)
        start = {name: value.clone() for name, value in self.network.state_dict().items()}
        mean = {name: torch.zeros_like(value, dtype=torch.float64) for name, value in start.items()}
        for k, weight in zip(drawn, counts / counts.sum(), strict=True):
            self.network.load_state_dict(start)
            self._train(self.clients[k], derive(self.seed, "client", self.rounds, int(k)))
            update = self.network.state_dict()
            self.bytes += len(save(start)) + len(save(update))
            for name, value in update.items():
                mean[name] += weight * value.double()
        self.network.load_state_dict({name: _like(mean[name], value) for name, value in start.items()})
        self.network.eval()
        self.rounds += 1

    def _labels(self, rows: np.ndarray) -> int:
        weights = self.samples.weights
        return len(rows) if weights is None else int((weights[rows] > 0).sum())

    def _train(self, rows: np.ndarray, seed: int) -> None:
        """The epochs of one client."""
        self.network.train(self.training)
        optimizer = make_optimizer(self.optimizer, self.network.parameters(), self.rate, 0.0)
        with torch_settings(1, derive(seed, "dropout")):
            for epoch in range(self.epochs):
                size = self.batch_size or len(rows)
                for batch in batch_order(len(rows), size, seed=seed, epoch=epoch, least=2):
                    sample = self.samples.sample(rows[batch])
                    self.network.prepare(sample)
                    optimizer.zero_grad()
                    loss = self.objective(self.network, sample, StepState(self.rounds, self.rounds + 1, epoch))
                    (loss.total / max(loss.count, 1)).backward()
                    optimizer.step()
                    if not torch.isfinite(loss.total.detach()):
                        words = f"the loss is {float(loss.total.detach())} in round {self.rounds + 1}"
                        raise MolgraphError(
                            words, hint=f"give a smaller learning rate than {self.rate:g}, or optimizer=adam"
                        )


def _like(mean: Tensor, value: Tensor) -> Tensor:
    """In the type of the value; a whole number, such as a count of batches, is rounded."""
    return mean.to(value.dtype) if value.is_floating_point() else mean.round().to(value.dtype)


@dataclass
class Arm:
    """A network that is trained in rounds, with its scores so far.

    Args:
        method: predicts with the network as it is now.
        federation: trains it.
        scores: of the test rows after each round.
    """

    method: GraphMethod
    federation: Federation
    scores: list[float] = field(default_factory=list)


def begin(method: GraphMethod, table: Table, clients: Sequence[np.ndarray] | None = None, **how: Any) -> Arm:
    """A fresh network for a table whose readable rows belong to clients (to one, if not given).

    Args:
        method: not fitted; its encoder, head and seed are used, and none of its settings of training.
        table: rows that all have a label and a graph.
        clients: rows of each client.
        how: settings of ``Federation``.

    Raises:
        DataError: nothing can be learned from the table.
    """
    params = dict(method.params or {})
    data = prepare(table, None, method.encoder, method.inputs, None, {"head": method.head, "params": params})
    with torch_settings(method.threads, derive(method.seed, "weights")):
        network = method.build(data.inputs, d_extra=len(data.descriptors.names), targets=data.outputs.targets)
        network.measure(data.train.stores)
        objective = make_objective("supervised", params, network, data.inputs, data.outputs)
    clone = type(method)(**method.get_params())
    clone.fitted = FittedNetworks(network.eval(), data.outputs, data.descriptors, data.inputs)
    parts = [np.arange(len(data.train))] if clients is None else clients
    return Arm(clone, Federation(network, objective, data.train, parts, **how))

"""Train an objective by a plain loop, so that its own parts (a discriminator, a codebook) can be judged afterwards."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from molgraph.data.table import make_table
from molgraph.train.network import Network, build_network
from molgraph.train.objective import StepState, make_objective
from molgraph.train.outputs import Outputs
from molgraph.train.preparation import prepare
from molgraph.train.samples import Samples


class Pretraining(NamedTuple):
    """An objective, the network that it trains, and molecules."""

    objective: Any
    network: Network
    samples: Samples

    def batch(self, rows: Sequence[int] | np.ndarray, seed: int = 0) -> Any:
        """The corrupted batch of some rows."""
        return self.objective.corrupt(self.samples.sample(np.asarray(rows)), np.random.default_rng(seed))

    def learn(self, rows: np.ndarray, n_steps: int, *, seed: int = 0, size: int = 64, rate: float = 2e-3) -> None:
        """Steps of Adam on random batches of the rows; then everything judges, and no longer trains."""
        rng = np.random.default_rng(seed)
        torch.manual_seed(seed)
        both = torch.nn.ModuleList([self.network, self.objective]).train()
        optimizer = torch.optim.Adam(both.parameters(), rate)
        for step in range(n_steps):
            batch = self.objective.corrupt(self.samples.sample(rng.choice(rows, size, replace=False)), rng)
            self.network.prepare(batch)
            loss = self.objective(self.network, batch, StepState(step, n_steps, 0))
            optimizer.zero_grad()
            (loss.total / loss.count).backward()
            optimizer.step()
        both.eval()


def pretraining(
    smiles: Sequence[str], objective: str, encoder: str = "gin", seed: int = 0, **params: Any
) -> Pretraining:
    """Fresh weights; ``params`` are the encoder's."""
    ready = prepare(make_table(list(smiles)), None, encoder, None, None, {}, targets=False)
    torch.manual_seed(seed)
    network = build_network(ready.inputs, params, joiner="concat", d_extra=0)
    made = make_objective(objective, {}, network, ready.inputs, Outputs((), np.zeros(0), np.ones(0)))
    return Pretraining(made, network, ready.train)

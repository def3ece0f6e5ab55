"""Learn the values of states from replayed transitions: a deep Q-network with prioritised replay."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch.nn import functional as F

from molgraph.base.seeds import derive
from molgraph.nn.perceptron import Perceptron
from molgraph.train.runtime import torch_settings

BATCH = 32
POWER = 0.6  # of the error, by which a transition is drawn
RENEW = 50  # updates after which the target network is renewed


class Transition(NamedTuple):
    """An action, by the state that it leads to.

    Args:
        state: uint8 [d], that state.
        reward: of the step.
        choices: uint8 [k, d], the states that actions lead to from there; none at the end of an episode.
    """

    state: np.ndarray
    reward: float
    choices: np.ndarray


class QNetwork:
    """``Q(s, a) = f(s')`` by ``y = r + gamma f_target(argmax_s'' f(s''))``, s' being the state that a leads to from s.

    Mnih et al. 2015 (Nature 518:529) with double learning (van Hasselt et al. 2016, AAAI, equation 4); actions are read
    as the states that they lead to, as by Zhou et al. 2019 (MolDQN, Sci. Rep. 9:10752), where the dynamics are known.
    Priorities are the proportional ones of Schaul et al. 2016 (equation 1) without weights of importance: a transition
    is drawn by the 0.6th power of its last error, and a new one like the largest.

    Args:
        d: width of a state.
        gamma: discount of a step.
        width: of the hidden layers.
        size: transitions that are kept, the last ones.
        seed: of weights and batches.

    Example:
        >>> network = QNetwork(2, width=8)
        >>> a, b = np.eye(2, dtype=np.uint8)
        >>> network.add([Transition(a, 0.0, b[None]), Transition(b, 1.0, np.zeros((0, 2), np.uint8))])
        >>> network.learn(300, 0)
        >>> network.values(np.array([a, b])).round(1).tolist()
        [1.0, 1.0]
    """

    def __init__(self, d: int, *, gamma: float = 1.0, width: int = 128, size: int = 20_000, seed: int = 0) -> None:
        self.gamma, self.size, self.seed, self.updates = gamma, size, seed, 0
        self.kept: list[Transition] = []
        self.priority = np.zeros(0)
        with torch_settings(None, derive(seed, "q")):
            self.network, self.target = (Perceptron(d, width, 1, 3, 0.0, "relu") for _ in range(2))
        self.target.load_state_dict(self.network.state_dict())
        self.optimizer = torch.optim.Adam(self.network.parameters(), 1e-3)

    def add(self, transitions: list[Transition]) -> None:
        """Keep transitions."""
        new = np.full(len(transitions), self.priority.max() if len(self.priority) else 1.0)
        self.kept = [*self.kept, *transitions][-self.size :]
        self.priority = np.concatenate([self.priority, new])[-self.size :]

    def learn(self, updates: int, step: int) -> None:
        """Descend so often on batches of transitions."""
        rng = np.random.default_rng(derive(self.seed, "replay", step))
        with torch_settings(None):
            for _ in range(updates if self.kept else 0):
                rows = rng.choice(len(self.kept), BATCH, p=self.priority / self.priority.sum())
                error = self._descend([self.kept[row] for row in rows])
                self.priority[rows] = (np.abs(error) + 1e-3) ** POWER
                self.updates += 1
                if self.updates % RENEW == 0:
                    self.target.load_state_dict(self.network.state_dict())

    def _descend(self, batch: list[Transition]) -> np.ndarray:
        choices = torch.from_numpy(np.concatenate([t.choices for t in batch])).float()
        of = torch.tensor([row for row, t in enumerate(batch) for _ in t.choices], dtype=torch.int64)
        with torch.no_grad():
            y = torch.tensor([t.reward for t in batch])
            if len(choices):
                online = self.network(choices)[:, 0]
                best = torch.full((len(batch),), -torch.inf).scatter_reduce(0, of, online, "amax")
                first = torch.full((len(batch),), len(choices)).scatter_reduce(
                    0, of[online == best[of]], (online == best[of]).nonzero()[:, 0], "amin"
                )
                goes_on = first < len(choices)
                y[goes_on] += self.gamma * self.target(choices[first[goes_on]])[:, 0]
        q = self.network(torch.from_numpy(np.stack([t.state for t in batch])).float())[:, 0]
        self.optimizer.zero_grad()
        F.smooth_l1_loss(q, y).backward()
        self.optimizer.step()
        return np.asarray((q - y).detach().double().numpy())

    def values(self, states: np.ndarray) -> np.ndarray:
        """float32 [n] of states, uint8 [n, d]."""
        with torch_settings(None), torch.no_grad():
            return np.asarray(self.network(torch.from_numpy(states).float())[:, 0].numpy())

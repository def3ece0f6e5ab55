"""Reward term: a bonus that a recurrent network computes from the history of a search, trained on other searches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from safetensors.numpy import save
from torch import Tensor, nn

from molgraph.base.paths import write_whole
from molgraph.base.ranges import Count, NotNegative
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.generate.rewards.novelty import Tanimoto
from molgraph.generate.rewards.reward import Reward
from molgraph.generate.searches.search import builtin_molecules
from molgraph.nn.perceptron import Perceptron
from molgraph.train.archive import refused, tensors_of
from molgraph.train.restore import restore_network, stored_weights
from molgraph.train.runtime import torch_settings

BITS, LARGEST = 256, 16 << 20  # columns of a fingerprint; bytes of a file
POOL, STEPS, DRAWS, TOGETHER, RATE = 512, 16, 16, 8, 8.0  # of a search that the network is trained on


class HistoryBonus(nn.Module):
    """``b(x | history) = tanh(MLP([h, f(x)]))``, ``h`` the state of a GRU that has read ``f`` of all molecules before.

    ``f(x)`` is a projected fingerprint, the standardised score, and its difference from the best one before.

    Args:
        width: of the state.
    """

    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.project, self.gru = nn.Linear(BITS, 16), nn.GRU(18, width, batch_first=True)
        self.bonus = Perceptron(width + 18, width)

    def forward(
        self, x: Float[Tensor, "k n d"], z: Float[Tensor, "k n"], best: Float[Tensor, " k"], h: Float[Tensor, "1 k w"]
    ) -> tuple[Float[Tensor, "k n"], Float[Tensor, "1 k w"]]:
        """The bonuses of n molecules in each of k searches, from -1 to 1, and the states after them.

        Args:
            x: fingerprints, z: standardised scores, best: the best score before, h: the states before.
        """
        f = torch.cat([self.project(x), z[:, :, None], (z - best[:, None])[:, :, None]], dim=2)
        before = h[0][:, None].expand(-1, f.shape[1], -1)
        bonus = self.bonus(torch.cat([before, f], dim=2).flatten(0, 1)).view(z.shape)
        return bonus.tanh(), self.gru(f, h)[1]


def prints(smiles: Sequence[str]) -> Float[Tensor, "n 256"]:
    """Morgan fingerprints of length 1."""
    return nn.functional.normalize(torch.from_numpy(morgan(smiles, n_bits=BITS).x).float(), dim=1)


def simulate(network: HistoryBonus, x: Float[Tensor, "m d"], score: Float[Tensor, "k m"], weight: float) -> Tensor:
    """float [k, steps], the expected score after each step of k searches, with gradients of the network.

    A search draws from ``pi(x) = softmax(theta f(x))`` over m molecules, from ``theta = 0``, and follows
    ``grad log pi(x) (z + weight b)``.

    Args:
        network: of the bonus ``b``.
        x: fingerprints of the molecules.
        score: of each search, standardised.
        weight: of the bonus.
    """
    k = len(score)
    theta, h, best = torch.zeros(k, BITS), torch.zeros(1, k, network.gru.hidden_size), torch.zeros(k)
    expected = []
    for _ in range(STEPS):
        pi = (theta @ x.T).softmax(dim=1)
        rows = torch.multinomial(pi.detach(), DRAWS, replacement=True)
        z = score.gather(1, rows)
        bonus, h = network(x[rows], z, best, h)
        reward, best = z + weight * bonus, torch.maximum(best, z.max(dim=1).values)
        advantage = reward - reward.mean(dim=1, keepdim=True)
        theta = theta + RATE * (advantage[:, :, None] * (x[rows] - (pi @ x)[:, None])).mean(dim=1)
        expected.append(((theta @ x.T).softmax(dim=1) * score).sum(dim=1))
    return torch.stack(expected, dim=1)


@cache
def trained_bonus(steps: int, width: int, weight: float) -> HistoryBonus:
    """A network trained by the gradient of the mean score of whole searches, through the steps of the searches.

    The searches are for molecules of the built-in list, by Tanimoto similarity.
    """
    rng = random_numbers(0, "learned bonus")
    smiles = [builtin_molecules()[i] for i in rng.permutation(len(builtin_molecules()))[:POOL]]
    x, bits = prints(smiles), Tanimoto().describe(smiles)
    alike = torch.from_numpy(Tanimoto().compare(bits, bits)).float()
    alike = (alike - alike.mean(dim=1, keepdim=True)) / alike.std(dim=1, keepdim=True)
    with torch_settings(None, derive(0, "learned bonus")), torch.enable_grad():
        made = HistoryBonus(width)
        descent = torch.optim.Adam(made.parameters(), 3e-3)
        for _ in range(steps):
            targets = torch.from_numpy(rng.choice(POOL, TOGETHER, replace=False))
            loss = -simulate(made, x, alike[targets], weight).mean()
            descent.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(made.parameters(), 1.0)
            descent.step()
    return made.eval().requires_grad_(requires_grad=False)


@register(
    "reward",
    "learned",
    summary="a bonus that a network computes from the search so far, trained on searches for other molecules",
    paper="Zheng et al. 2020, ICML, arXiv:1912.05500",
    systems=(
        SystemCard(
            "lifetime-learned-intrinsic-reward",
            left_out="the learned value of the rest of a lifetime, which short searches in training do without; the "
            "intrinsic reward alone: it is added to the score",
            off="'learned(weight=0)'",
            beside=("no term", "the fixed bonus novelty"),
            command="molgraph optimise --search graph-ga --oracle qed --reward 'learned(steps=4)' -o found.csv",
        ),
    ),
)
class LearnedBonus(Reward):
    """``S(x) + weight s b(x | history)`` of Zheng et al. 2020, with the score beside the intrinsic reward ``b``.

    The network is trained once, on searches for molecules of the built-in list, so that whole searches score high
    (their section 3), and does not learn any more. It reads molecules and scores in the order in which they come.

    Args:
        file: a safetensors file with the network; it is made where there is none. If not given, none is kept.
        weight: of the bonus, in units of s, the standard deviation of the scores so far, as in its training.
        steps: of training, where there is no file.
        width: of the network's state, which a file's has to equal.
    """

    small = MappingProxyType({"steps": 2, "width": 8})

    def __init__(self, file: str = "", *, weight: NotNegative = 1.0, steps: Count = 100, width: Count = 32) -> None:
        self.file, self.weight, self.steps, self.width = file, weight, steps, width

    def begin(self, *args: Any, **how: Any) -> None:
        """Read or train the network, and forget the history."""
        super().begin(*args, **how)
        self.h, self.best, self.known = torch.zeros(1, 1, self.width), 0.0, np.zeros(0)
        if not self.weight:
            return
        if self.file and Path(self.file).exists():
            with refused("this is no file of a learned bonus", Path(self.file)):
                data = Path(self.file).read_bytes()[:LARGEST]
                self.network = restore_network("learned bonus", lambda: HistoryBonus(self.width), tensors_of(data))
            return
        self.network = trained_bonus(self.steps, self.width, self.weight)
        if self.file:
            write_whole(self.file, save(stored_weights(self.network)))

    def adjust(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """The scores with their bonuses; then the molecules are part of the history."""
        out, rows = score.copy(), np.flatnonzero(np.isfinite(score))
        if not self.weight or not len(rows):
            return out
        self.known = np.append(self.known, score[rows])
        mean, deviation = float(self.known.mean()), float(self.known.std()) or 1.0
        before = self.known[: -len(rows)].max(initial=mean)
        z, best = (torch.as_tensor((v - mean) / deviation).float() for v in (score[rows], np.array([before])))
        with torch.inference_mode():
            bonus, self.h = self.network(prints([smiles[row] for row in rows.tolist()])[None], z[None], best, self.h)
        out[rows] += self.weight * deviation * bonus[0].double().numpy()
        return out

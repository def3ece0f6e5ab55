"""Train a recurrent network that computes a bonus from the history of a search, by the gradient of whole searches."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.chem.fingerprints import morgan
from molgraph.generate.rewards.novelty import Tanimoto
from molgraph.generate.searches.search import builtin_molecules
from molgraph.nn.perceptron import Perceptron
from molgraph.train.runtime import torch_settings

BITS = 256  # columns of a fingerprint
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
        bonus = HistoryBonus(width)
        descent = torch.optim.Adam(bonus.parameters(), 3e-3)
        for _ in range(steps):
            targets = torch.from_numpy(rng.choice(POOL, TOGETHER, replace=False))
            loss = -simulate(bonus, x, alike[targets], weight).mean()
            descent.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(bonus.parameters(), 1.0)
            descent.step()
    return bonus.eval().requires_grad_(requires_grad=False)

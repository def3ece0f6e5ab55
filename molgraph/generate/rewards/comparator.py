"""Learn from walks of random edits whether two molecules are few edits apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.chem.fingerprints import morgan
from molgraph.chem.graph_edits import mutate
from molgraph.nn.perceptron import Perceptron
from molgraph.train.runtime import torch_settings

BITS, ELEMENTS = 256, 64  # columns of counts of environments of one bond, and of atoms alone
CLIP = 3.0  # the largest difference of a column that counts
TOGETHER = 16_384  # pairs that go through the network at once


class Comparator(nn.Module):
    """The probability that two molecules are within k edits: ``sigmoid(MLP(|E(a) - E(b)|))``, equal for (b, a).

    The comparator of Savinov et al. 2019 (section 2.2) with Morgan counts of radius 0 and 1 as the embedding ``E``,
    and walks of random edits (``mutate``) in the place of a random policy's: two molecules of a walk are near where
    they are within ``k`` steps, and not where they are more than ``gamma k`` apart; pairs between are left out.

    Args:
        k: edits within which two molecules are near.
        gamma: multiple of k beyond which they are not.
        width: of the perceptron.
    """

    def __init__(self, k: int = 3, gamma: int = 2, width: int = 64) -> None:
        super().__init__()
        self.k, self.gamma = k, gamma
        self.network = Perceptron(BITS + ELEMENTS + 3, width)

    def describe(self, smiles: Sequence[str]) -> np.ndarray:
        """float32 [n, 320], counts of each molecule's environments."""
        columns = [
            morgan(smiles, radius=radius, n_bits=bits, counts=True).x for radius, bits in ((1, BITS), (0, ELEMENTS))
        ]
        return np.hstack(columns).astype(np.float32)

    def forward(self, a: Float[Tensor, "n d"], b: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """float [n], the logit of each pair."""
        apart = (a - b).abs()
        both, either = torch.minimum(a, b)[:, :BITS].sum(1), torch.maximum(a, b)[:, :BITS].sum(1)
        sums = [apart[:, :BITS].sum(1) / 4, apart[:, BITS:].sum(1) / 4, both / either.clamp(min=1)]
        return self.network(torch.column_stack([apart.clamp(max=CLIP), *sums]))[:, 0]

    def compare(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """float64 [n, m], the probability that each of n described molecules is near each of m."""
        row, column = (index.ravel() for index in np.indices((len(a), len(b))))
        x, y, parts = torch.from_numpy(a), torch.from_numpy(b), []
        with torch.inference_mode():
            for start in range(0, len(row), TOGETHER):
                piece = slice(start, start + TOGETHER)
                parts.append(self(x[row[piece]], y[column[piece]]).double().sigmoid().numpy())
        return np.concatenate([np.zeros(0), *parts]).reshape(len(a), len(b))

    def fit(self, walks: Sequence[Sequence[str]], *, seed: int = 0, epochs: int = 10, pairs: int = 12) -> Comparator:
        """Train on pairs of each walk, by cross-entropy, with AdamW."""
        a, b, near = pairs_of(walks, self.k, self.gamma * self.k, pairs, random_numbers(seed, "pairs"))
        if not len(near):
            return self
        x, y, labels = *(torch.from_numpy(self.describe(part)) for part in (a, b)), torch.from_numpy(near).float()
        optimizer = torch.optim.AdamW(self.parameters(), 1e-3, weight_decay=1e-2)
        with torch_settings(None, derive(seed, "batches")):
            for _ in range(epochs):
                for rows in torch.randperm(len(labels)).split(64):
                    loss = F.binary_cross_entropy_with_logits(self(x[rows], y[rows]), labels[rows])
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
        return self


def random_walks(smiles: Sequence[str], length: int, rng: np.random.Generator) -> list[list[str]]:
    """A walk of random edits from each molecule, of ``length`` edits at most; it ends where no edit is possible."""
    walks = []
    for text in smiles:
        walk = [text]
        while len(walk) <= length and (edited := mutate(walk[-1], rng)):
            walk.append(edited)
        walks.append(walk)
    return walks


def pairs_of(
    walks: Sequence[Sequence[str]], near: int, far: int, pairs: int, rng: np.random.Generator
) -> tuple[list[str], list[str], np.ndarray]:
    """Pairs of molecules of the same walk, and float64 [n]: 1 within ``near`` steps, 0 more than ``far`` apart.

    Half of ``pairs`` of each walk are near; a walk that is too short for a distance has fewer.
    """
    a, b, labels = list[str](), list[str](), list[float]()
    for walk in walks:
        for label in (1.0, 0.0) * (pairs // 2):
            steps = int(rng.integers(1, near + 1) if label else rng.integers(far + 1, 2 * far + 1))
            if steps < len(walk):
                first = int(rng.integers(len(walk) - steps))
                a.append(walk[first])
                b.append(walk[first + steps])
                labels.append(label)
    return a, b, np.array(labels)

"""Train a classifier on descriptors that tells generated molecules from reference molecules."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch.nn import functional as F

from molgraph.base.seeds import derive
from molgraph.chem.descriptors import NAMES, rdkit_descriptors
from molgraph.nn.perceptron import Perceptron
from molgraph.train.runtime import torch_settings

BATCH = 32
CLIP = 10.0  # deviations of the reference beyond which a descriptor is cut off


class Discriminator:
    """``D(m)``, the probability that a molecule belongs to the reference: a perceptron of two hidden layers.

    Nigam et al. 2020, section 3.1, with the published settings: descriptors to 100 to 10 to 1, a sigmoid, binary
    cross-entropy, Adam with step size 1e-3 and weight decay 1e-4, 10 epochs on the molecules of each generation. The
    descriptors are those of ``molgraph.chem.descriptors`` in the place of the paper's 51, scaled by the reference.

    Args:
        reference: SMILES that a molecule should resemble, two or more.
        epochs: passes of each training.
        seed: of the first weights and the batches.

    Example:
        >>> judge = Discriminator(["CCO", "CCN", "c1ccccc1O"], epochs=30)
        >>> judge.learn(["S=S=S", "CCCCCCCCCC"], 0)
        >>> bool(judge.probability(["CCO"])[0] > judge.probability(["CCCCCCCCCC"])[0])
        True
    """

    def __init__(self, reference: Sequence[str], *, epochs: int = 10, seed: int = 0) -> None:
        self.rows: dict[str, np.ndarray] = {}
        self.mean, self.deviation = np.zeros(len(NAMES)), np.ones(len(NAMES))
        self.epochs, self.seed, self.reference = epochs, seed, list(reference)
        with torch_settings(None, derive(seed, "discriminator")):
            self.network = torch.nn.Sequential(Perceptron(len(NAMES), 100, 10, 2, 0.0, "relu"), torch.nn.ReLU(),
                                               torch.nn.Linear(10, 1))  # fmt: skip
        self.optimizer = torch.optim.Adam(self.network.parameters(), 1e-3, weight_decay=1e-4)
        x = rdkit_descriptors(self.reference).x.astype(np.float64)
        self.mean, self.deviation = np.nanmean(x, axis=0), np.maximum(np.nanstd(x, axis=0), 1e-3)

    def learn(self, molecules: Sequence[str], step: int) -> None:
        """Train on molecules of a search, class 0, and as many of the reference, class 1."""
        rng = np.random.default_rng(derive(self.seed, "batches", step))
        chosen = rng.choice(len(self.reference), min(len(molecules), len(self.reference)), replace=False)
        texts = [*molecules, *(self.reference[row] for row in chosen)]
        x, y = self.features(texts), torch.tensor([0.0] * len(molecules) + [1.0] * len(chosen))
        with torch_settings(None):
            for _ in range(self.epochs):
                for rows in torch.from_numpy(rng.permutation(len(texts))).split(BATCH):
                    self.optimizer.zero_grad()
                    F.binary_cross_entropy_with_logits(self.network(x[rows])[:, 0], y[rows]).backward()
                    self.optimizer.step()

    def probability(self, smiles: Sequence[str]) -> np.ndarray:
        """float64 [n], of each molecule."""
        with torch_settings(None), torch.no_grad():
            return np.asarray(self.network(self.features(smiles))[:, 0].sigmoid().double().numpy())

    def features(self, smiles: Sequence[str]) -> torch.Tensor:
        """float32 [n, k], scaled descriptors; 0 where one has no value. Those of each molecule are computed once."""
        fresh = [text for text in dict.fromkeys(smiles) if text not in self.rows]
        if fresh:
            x = (rdkit_descriptors(fresh).x - self.mean) / self.deviation
            self.rows.update(zip(fresh, np.nan_to_num(x).clip(-CLIP, CLIP).astype(np.float32), strict=True))
        return torch.from_numpy(np.array([self.rows[text] for text in smiles]))

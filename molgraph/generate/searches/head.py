"""Fit a property head on points of a latent space and their scores."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from molgraph.base.contracts import Target
from molgraph.base.seeds import derive
from molgraph.nn import head
from molgraph.train.engine import fit_network
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.runtime import torch_settings
from molgraph.train.samples import Sample, Samples

EPOCH = 4_096  # rows of an epoch


class Head(nn.Module):
    """``F(z)``, a perceptron on latent vectors.

    Args:
        d_latent: width of a vector.
        width: of its two hidden layers.
    """

    def __init__(self, d_latent: int, width: int) -> None:
        super().__init__()
        self.head = head.Head(d_latent, (Target("score"),), width, n_layers=3, activation="tanh")

    def prepare(self, sample: Sample) -> None:
        """Nothing: a batch of vectors has no index work."""

    def forward(self, sample: Sample) -> tuple[Tensor, dict[str, Tensor]]:
        """The scaled score of each vector of a batch, and no penalties."""
        assert sample.extra is not None
        return self.head(sample.extra), {}

    def scores(self, z: Tensor) -> Tensor:
        """float [n]: the scaled scores of vectors [n, d]."""
        scores: Tensor = self.head(z)
        return scores.squeeze(-1)


def latent_samples(z: np.ndarray, y: np.ndarray) -> Samples:
    """Vectors [n, d] with a label each, as the engine takes rows to learn from."""
    y = np.asarray(y, dtype=np.float32)[:, None]
    return Samples((), np.zeros((len(z), 0), dtype=np.int64), z.astype(np.float32), y, np.ones_like(y))


def fit_head(z: np.ndarray, score: np.ndarray, *, width: int = 64, epochs: int = 80, seed: int = 0) -> Head:
    """A head that learned the scores of some points, scaled to mean 0 and deviation 1.

    Args:
        z: float [n, d].
        score: float [n].
        width, epochs: of the perceptron and its training.
        seed: the same one gives the same head.
    """
    again = max(EPOCH // len(z), 1)  # rows are repeated and passes fewer: an epoch of one step is mostly its overhead
    outputs = Outputs.fit((Target("score"),), score[:, None])
    with torch_settings(None, derive(seed, "head")):
        head = Head(z.shape[1], width)
    how: dict[str, Any] = {
        "epochs": max(epochs // again, 1),
        "batch_size": 256,
        "learning_rate": 5e-3,
        "weight_decay": 1e-3,
    }
    run = {"seed": seed, "device": "cpu", "precision": "float32", "checkpoint_seconds": 600.0, "optimizer": "adamw"}
    train = latent_samples(np.tile(z, (again, 1)), np.tile(outputs.labels(score[:, None])[:, 0], again))
    fit_network(head, Supervised(outputs), train, None, how | run, {}, workdir=None, label="property head")
    return head.eval()

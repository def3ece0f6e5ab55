"""Domain score: BiGAN, the error of a generator and an encoder that are each other's inverse on training molecules."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Self

import numpy as np
import torch
from torch import Tensor

from molgraph.base.ranges import Count, Probability, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.chem.descriptors import rdkit_descriptors
from molgraph.nn.bigan import BiGAN
from molgraph.trust.domains.domain import Domain

FARTHEST = 5.0  # deviations, at which a descriptor is cut off


def descriptors(x: np.ndarray) -> np.ndarray:
    """float64 [n, d], RDKit's cheap descriptors of SMILES; 0 where one has no value."""
    return np.nan_to_num(rdkit_descriptors([str(text) for text in x]).x.astype(np.float64))


@register(
    "domain",
    "bigan",
    summary="error of the way to noise and back of networks that learned the training molecules' descriptors (BiGAN)",
    paper="Donahue et al. 2017, ICLR, arXiv:1605.09782",
    systems=(
        SystemCard(
            "bigan",
            left_out="pictures, and features of the encoder for other tasks; it reads descriptors of molecules",
            off="-s params.by=nearest",
            beside=("a latent regressor", "nearest neighbour", "Tanimoto distance", "heavy atoms"),
            command="molgraph train dataset:chembl2321810 -m 'domain(random_forest)' -s params.by=bigan -o model.mgm",
            modules=("molgraph.nn.bigan", "molgraph.trust.with_domain"),
        ),
    ),
)
class BiGANDomain(Domain):
    """``a |x - G(E(x))| + (1 - a) |f_D(x, E(x)) - f_D(G(E(x)), E(x))|`` of standardised descriptors x.

    Donahue et al. 2017; as a score Zenati et al. 2018, arXiv:1802.06222, equation 3. A generator G and an encoder E are
    each other's inverse on the training molecules; f_D is the discriminator's last hidden layer.

    Use it as one more row beside ``nearest``, which usually tells more.

    Args:
        steps: of gradient descent, each on ``batch`` molecules.
        width: of hidden layers.
        noise: width of the generator's noise.
        share: a, of the way to noise and back.
        batch: molecules of a step.
        learning_rate: of Adam.
    """

    reads = "smiles"
    small = MappingProxyType({"steps": 30, "width": 16, "noise": 4})

    def __init__(
        self,
        *,
        steps: Annotated[int, Range(0, 100_000)] = 1000,
        width: Count = 128,
        noise: Count = 8,
        share: Probability = 0.9,
        batch: Count = 128,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 5e-4,
    ) -> None:
        self.steps, self.width, self.noise, self.share = steps, width, noise, share
        self.batch, self.learning_rate = batch, learning_rate
        self.learns = ("mean", "scale", *self._made(1).state_dict())

    def fit(self, x: np.ndarray) -> Self:
        """Standardise the descriptors, and train the networks."""
        values = descriptors(x)
        self.mean, self.scale = values.mean(axis=0), np.maximum(values.std(axis=0), 1e-6)
        rows, self.networks = self._standardised(values), self._made(values.shape[1])
        with torch.random.fork_rng():
            torch.manual_seed(derive(self.seed, "steps"))
            for _ in range(self.steps):
                self.networks.learn(rows[torch.randint(len(rows), (min(self.batch, len(rows)),))])
        return self

    def score(self, x: np.ndarray) -> np.ndarray:
        """The errors."""
        if not len(x):
            return np.zeros(0)
        with torch.no_grad():
            return self.networks(self._standardised(descriptors(x)), self.share).double().numpy()

    def state(self) -> dict[str, np.ndarray]:
        """The scale of the descriptors, and all weights."""
        weights = {name: value.numpy().copy() for name, value in self.networks.state_dict().items()}
        return {"mean": self.mean, "scale": self.scale, **weights}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """As ``Domain.restore``."""
        self.mean, self.scale = arrays["mean"], arrays["scale"]
        if self.mean.ndim != 1 or self.mean.shape != self.scale.shape:
            raise ValueError("the descriptors' mean and scale are lists of one length")
        self.networks = self._made(len(self.mean))
        self.networks.load_state_dict(
            {name: torch.from_numpy(value.copy()) for name, value in arrays.items() if name not in ("mean", "scale")}
        )
        return self

    def _made(self, d: int) -> BiGAN:
        return BiGAN(d, self.noise, self.width, self.seed, self.learning_rate)

    def _standardised(self, values: np.ndarray) -> Tensor:
        z = np.clip((values - self.mean) / self.scale, -FARTHEST, FARTHEST)
        return torch.from_numpy(z).float()

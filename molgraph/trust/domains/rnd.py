"""Domain score: random network distillation, the error about random features that training molecules taught."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Self

import numpy as np
import torch

from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.nn.random_distillation import RandomDistillation, of_one_length
from molgraph.trust.domains.domain import BITS, Domain, Prints


@register(
    "domain",
    "rnd",
    summary="error of a network that learned the random features of training molecules (random network distillation)",
    paper="Burda et al. 2019, ICLR, arXiv:1810.12894",
    systems=(
        SystemCard(
            "rnd",
            left_out="two value heads of an agent (of searches: reward rnd); running scales of observations, in whose "
            "place fingerprints have one length",
            off="-s params.by=nearest",
            beside=("Tanimoto distance", "number of bits"),
            command="molgraph train dataset:chembl2321810 -m 'domain(random_forest)' -s params.by=rnd -o model.mgm",
            modules=("molgraph.nn.random_distillation", "molgraph.trust.with_domain"),
        ),
    ),
)
class RandomDistillationDomain(Domain):
    """``|g(x) - phi(x)|^2`` with a random ``phi`` that never changes and a ``g`` that learned it on training molecules.

    Burda et al. 2019, section 2.2. Where ``g`` saw a molecule often, or others like it, the error is small; ``phi`` is
    a function of the molecule and within reach of ``g``, so that no noise of a label makes it large.

    Args:
        steps: of gradient descent, each on ``batch`` molecules.
        width: of the features and of the hidden layer.
        batch: molecules of a step.
        learning_rate: of ``g``, with Adam.
    """

    learns = tuple(
        f"{part}.layers.{layer}.{kind}" for part in ("phi", "g") for layer in (0, 1) for kind in ("weight", "bias")
    )
    small = MappingProxyType({"steps": 20, "width": 16})

    def __init__(
        self,
        *,
        steps: Annotated[int, Range(0, 100_000)] = 500,
        width: Count = 128,
        batch: Count = 256,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 1e-3,
    ) -> None:
        self.steps, self.width, self.batch, self.learning_rate = steps, width, batch, learning_rate

    def fit(self, x: Prints) -> Self:
        """Draw both networks, and train one of them."""
        rng = generator(self.seed, "batches")
        self.networks = RandomDistillation(BITS, self.width, self.seed, self.learning_rate)
        for _ in range(self.steps):
            rows = rng.integers(len(x), size=min(self.batch, len(x)))
            self.networks.learn(of_one_length(x[rows]))
        return self

    def score(self, x: Prints) -> np.ndarray:
        """The errors."""
        with torch.no_grad():
            return self.networks(of_one_length(x)).double().numpy()

    def state(self) -> dict[str, np.ndarray]:
        """The weights of both networks."""
        return {name: value.numpy().copy() for name, value in self.networks.state_dict().items()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """As ``Domain.restore``."""
        self.networks = RandomDistillation(BITS, self.width, self.seed, self.learning_rate)
        self.networks.load_state_dict({name: torch.from_numpy(value.copy()) for name, value in arrays.items()})
        return self

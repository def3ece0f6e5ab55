"""Domain score: Deep SAD, the distance from a centre to which training molecules are drawn and oddities are not."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Self

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import EmptyError
from molgraph.base.ranges import Count, NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.data.read import read_table
from molgraph.nn.random_distillation import of_one_length
from molgraph.trust.domains.domain import BITS, Domain, Prints

NEAR = 1e-6  # added to squared distances that stand below a fraction, as in the authors' experiments
DECAY = 1e-6  # lambda, of the weights


def semi_supervised(rest: Float[Tensor, " n"], odd: Float[Tensor, " m"], eta: float, share: float) -> Float[Tensor, ""]:
    """``(1 - share) mean_i d_i + eta share mean_j 1 / d_j`` with squared distances from the centre.

    Ruff et al. 2020, equation 7, where all labelled molecules are anomalies: with n molecules without a label and m
    anomalies the share is ``m / (n + m)``. Without anomalies it is the loss of Deep SVDD (Ruff et al. 2018).

    Args:
        rest, odd: squared distances of molecules without a label, and of anomalies.
        eta: weight of the anomalies.
        share: of the anomalies among all.
    """
    loss = (1 - share) * rest.mean()
    return loss + eta * share * (1 / (odd + NEAR)).mean() if len(odd) else loss


@register(
    "domain",
    "deep_sad",
    summary="distance from a centre to which training molecules are drawn, and named oddities are not (Deep SAD)",
    paper="Ruff et al. 2020, ICLR, arXiv:1906.02694",
    systems=(
        SystemCard(
            "deep-sad",
            left_out="labelled molecules that are normal: those without a label are what was trained on",
            off="-s params.by=nearest",
            beside=("Deep SVDD, without oddities", "Tanimoto distance"),
            command="molgraph train dataset:chembl2321810 -m 'domain(random_forest)' "
            "-s 'params.by=deep_sad(library.smi)' -o model.mgm",
            modules=("molgraph.trust.with_domain",),
        ),
    ),
)
class DeepSAD(Domain):
    """``|phi(x) - c|^2``, where ``phi`` draws training molecules to the centre c and oddities away from it.

    Ruff et al. 2020. ``phi`` has no biases, lest it be constant, and begins as the encoder of an autoencoder of the
    training molecules; c is the mean of its first embeddings. Without oddities it is Deep SVDD.

    Args:
        oddities: a table of molecules that are no part of the domain, such as assay artefacts; none if empty.
        eta: weight of the oddities.
        steps: of gradient descent, as many for the autoencoder.
        width: of the embedding; the hidden layer has four times as many.
        batch: molecules of a step.
        learning_rate: of Adam.
    """

    learns = ("0.weight", "2.weight", "centre")
    small = MappingProxyType({"steps": 20, "width": 8})

    def __init__(
        self,
        oddities: str = "",
        *,
        eta: NotNegative = 1.0,
        steps: Annotated[int, Range(0, 100_000)] = 300,
        width: Count = 32,
        batch: Count = 128,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 1e-3,
    ) -> None:
        self.oddities, self.eta, self.steps, self.width = oddities, eta, steps, width
        self.batch, self.learning_rate = batch, learning_rate

    def odd_prints(self) -> Prints:
        """The fingerprints of the oddities; raises ``EmptyError`` where none can be read."""
        if not self.oddities:
            return np.zeros((0, BITS), np.uint8)
        table = read_table(self.oddities, on_error="keep")
        prints = morgan([str(text) for text in table.smiles[table.ok]])
        if not prints.ok.any():
            raise EmptyError(f"no molecule of {self.oddities} can be read", hint="look at its rows")
        return prints.x[prints.ok]

    def fit(self, x: Prints) -> Self:
        """Train the autoencoder, then the embedding."""
        return self.learn(x, self.odd_prints())

    def learn(self, x: Prints, odd: Prints) -> Self:
        """As ``fit``, with the fingerprints of the oddities."""
        rng, share = generator(self.seed, "batches"), len(odd) / (len(x) + len(odd))
        self.network = self.fresh()
        with torch.random.fork_rng():
            torch.manual_seed(derive(self.seed, "decoder"))
            decoder = nn.Linear(self.width, BITS)
        optimizer = torch.optim.Adam([*self.network.parameters(), *decoder.parameters()], self.learning_rate)
        for _ in range(self.steps):
            bits = x[rng.integers(len(x), size=min(self.batch, len(x)))]
            truth = torch.from_numpy(bits).float()
            loss = F.binary_cross_entropy_with_logits(decoder(self.network(of_one_length(bits))), truth)
            _descend(optimizer, loss)
        with torch.no_grad():
            self.centre = self.network(of_one_length(x)).mean(dim=0)
        optimizer = torch.optim.Adam(self.network.parameters(), self.learning_rate, weight_decay=DECAY)
        for _ in range(self.steps):
            rest = self.distance(x[rng.integers(len(x), size=min(self.batch, len(x)))])
            some = self.distance(odd[rng.integers(len(odd), size=min(self.batch, len(odd)))] if len(odd) else odd)
            _descend(optimizer, semi_supervised(rest, some, self.eta, share))
        return self

    def fresh(self) -> nn.Sequential:
        """The network before training: no layer has a bias, and no activation is bounded above and below."""
        with torch.random.fork_rng():
            torch.manual_seed(derive(self.seed, "phi"))
            first, last = nn.Linear(BITS, 4 * self.width, bias=False), nn.Linear(4 * self.width, self.width, bias=False)
        return nn.Sequential(first, nn.LeakyReLU(), last)

    def distance(self, x: Prints) -> Float[Tensor, " n"]:
        """float32 [n], squared distances from the centre."""
        return (self.network(of_one_length(x)) - self.centre).square().sum(dim=1)

    def score(self, x: Prints) -> np.ndarray:
        """The squared distances."""
        with torch.no_grad():
            return self.distance(x).double().numpy()

    def state(self) -> dict[str, np.ndarray]:
        """The weights and the centre."""
        weights = {name: value.numpy().copy() for name, value in self.network.state_dict().items()}
        return weights | {"centre": self.centre.numpy().copy()}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """As ``Domain.restore``."""
        self.network = self.fresh()
        weights = {name: torch.from_numpy(arrays[name].copy()) for name in self.learns[:-1]}
        self.network.load_state_dict(weights)
        if arrays["centre"].shape != (self.width,):
            raise ValueError(f"the centre has {self.width} values, not {arrays['centre'].shape}")
        self.centre = torch.from_numpy(arrays["centre"].copy())
        return self


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor) -> None:
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()

"""Train one language model to write several series of molecules, which a discriminator can tell apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.ranges import Count, NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.base.systems import SystemCard
from molgraph.generate.rewards.novelty import Tanimoto
from molgraph.generate.searches.policy import PolicySearch
from molgraph.generate.searches.search import Search
from molgraph.generate.searches.written import Written
from molgraph.nn.perceptron import Perceptron
from molgraph.train.runtime import torch_settings

BITS = 2048


@register(
    "search",
    "diayn",
    summary="several series of molecules in one run: policy gradients of a language model that is told which to write",
    paper="Eysenbach et al. 2019, ICLR, arXiv:1802.06070",
    systems=(
        SystemCard(
            "diayn",
            left_out="states before the end: the discriminator sees finished molecules; the soft actor-critic, whose "
            "place a policy gradient takes, with kl for the entropy",
            off="'diayn(weight=0)'",
            beside=("the same without the discriminator's reward",),
            command="molgraph optimise prior --search 'diayn(series=3)' --oracle qed -o found.csv",
            modules=("molgraph.generate.searches.policy", "molgraph.generate.policy"),
        ),
    ),
)
class Diayn(PolicySearch):
    """``S(x) (1 + weight (log q(z | x) - log p(z)) / log K)``, of Eysenbach et al. 2019, equation 3.

    Each text is written for one of ``K`` series, ``z`` uniform: a learned vector of the series is added to the
    embedding of each of its tokens. ``q`` is a perceptron on the fingerprint of the molecule's Bemis-Murcko scaffold
    (of a molecule without rings its own), trained by cross-entropy on what was written. The mean of ``log q(z | x) -
    log p(z)`` is a lower bound of the mutual information of series and scaffold: ``log K`` at most, where every
    series has scaffolds of its own, and 0 for a model that takes no notice of the series. The paper has no score;
    multiplied by it, the reward is of series of good molecules: a sum bought series with molecules of low scores. What
    is no molecule has the reward 0, and known molecules are learned for a series at random.

    Args:
        series: K.
        weight: of the discriminator's reward.
        estimator: a registered estimator with its settings.
        kl: weight of the distance from the prior, as ``policy`` has it; the paper's has the entropy instead.
        learning_rate: step size of Adam.
        steps: of the discriminator on each batch.
        delay: batches before its reward is paid, so that the model learns the score first.
    """

    name = "diayn"
    small = MappingProxyType({"learning_rate": 1e-3, "series": 3})
    trained_generator = Search.trained_generator  # a model's file has no place for the vectors of the series

    def __init__(
        self,
        *,
        series: Annotated[int, Range(2, 1000)] = 4,
        weight: NotNegative = 2.0,
        estimator: str = "reinforce",
        kl: NotNegative = 0.05,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 5e-4,
        steps: Count = 4,
        delay: Annotated[int, Range(0, 1 << 20)] = 0,
    ) -> None:
        super().__init__(estimator=estimator, kl=kl, learning_rate=learning_rate)
        self.series, self.weight, self.steps, self.delay = series, weight, steps, delay

    def begin(self, generator: Any = None, **how: Any) -> None:
        """As ``Search.begin``."""
        self.weights_seed = derive(how.get("seed", 0), "series")
        self.series_of: dict[tuple[int, ...], int] = {}
        super().begin(generator, **how)

    def prepare(self) -> None:
        """The vectors of the series and the discriminator, beside the model's weights."""
        super().prepare()
        with torch_settings(None, self.weights_seed):
            vectors = torch.randn(self.series, self.agent.network.embedding.embedding_dim) / 2
            self.q = Perceptron(BITS, 64, self.series)
        self.vectors = torch.nn.Parameter(vectors.to(self.agent.device))
        self.optimizer.add_param_group({"params": [self.vectors], "lr": self.learning_rate})
        self.descent = torch.optim.Adam(self.q.parameters(), 5e-3)

    def write(self, n: int, step: int) -> list[str]:
        """``n`` texts of the agent, each for a series at random."""
        z = random_numbers(self.seed, "series", step).integers(self.series, size=n)
        codes = self.agent.draw(n, derive(self.seed, "write", step), self.vectors.detach()[torch.from_numpy(z)])
        self.series_of = dict(zip(map(tuple, codes), z.tolist(), strict=True))
        return self.remember(codes)

    def codes_of(self, told: Sequence[Written]) -> np.ndarray:
        """int64 [n], the series that each text was written for."""
        other = random_numbers(self.seed, "other", len(told)).integers(self.series, size=len(told))
        return np.array([self.series_of.get(tuple(one.codes), int(z)) for one, z in zip(told, other, strict=True)])

    def condition(self, told: Sequence[Written]) -> Float[Tensor, "n d"] | None:
        """The vector of each text's series, with gradient."""
        return self.vectors[torch.from_numpy(self.codes_of(told)).to(self.vectors.device)]

    def learn(self, told: Sequence[Written], step: int) -> None:
        """Add the discriminator's reward, train the discriminator, then the agent."""
        x, ok = self.describe(self.agent.texts([one.codes for one in told]))
        z = torch.from_numpy(self.codes_of(told))
        if self.weight and step >= self.delay:
            gain = self.information(x, z) / math.log(self.series)
            paid = np.where(ok, 1 + self.weight * gain, 0.0)
            told = [one._replace(reward=one.reward * float(more)) for one, more in zip(told, paid, strict=True)]
        if ok.any():
            self.discriminate(x[torch.from_numpy(ok)], z[torch.from_numpy(ok)])
        super().learn(told, step)

    def describe(self, texts: Sequence[str]) -> tuple[Float[Tensor, "n 2048"], np.ndarray]:
        """Fingerprints of the texts' scaffolds, and whether each is a molecule."""
        x = torch.from_numpy(Tanimoto(of_scaffolds=True).describe(texts)).float()
        return x, x.any(dim=1).numpy()

    def information(self, x: Float[Tensor, "n 2048"], z: Tensor) -> np.ndarray:
        """float64 [n], ``log q(z | x) - log p(z)``."""
        with torch.no_grad():
            log_q = self.q(x).double().log_softmax(dim=1)
        return log_q[torch.arange(len(z)), z].numpy() + math.log(self.series)

    def discriminate(self, x: Float[Tensor, "n 2048"], z: Tensor) -> None:
        """Steps of the discriminator on a batch."""
        for _ in range(self.steps):
            loss = F.cross_entropy(self.q(x), z)
            self.descent.zero_grad()
            loss.backward()
            self.descent.step()

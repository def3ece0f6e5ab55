"""Reward term of SeqGAN and ORGAN: how real a molecule is to a discriminator that is trained beside."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import EmptyError
from molgraph.base.ranges import Count, Probability, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.base.systems import SystemCard
from molgraph.chem.identity import canonical_smiles
from molgraph.data.read import read_table
from molgraph.generate.rewards.reward import Reward
from molgraph.generate.searches.search import ENOUGH, builtin_molecules
from molgraph.train.runtime import torch_settings

LONGEST = 120  # characters of a text that are read
WIDTHS = (1, 2, 3, 4, 5)  # characters that a filter spans
KEPT = 512  # molecules of the search, the latest, that the discriminator learns from
BATCH = 32  # of each kind, at a step


class TextNetwork(nn.Module):
    """The logit that a text is real: filters over its characters, the largest value of each, a highway layer.

    Kim 2014 (arXiv:1408.5882), with the highway layer of Yu et al. 2017 (equations 12 and 13):
    ``t * relu(W h) + (1 - t) * h`` with ``t = sigmoid(W_t h)``.

    Args:
        width: filters of each span.
        dropout: of the pooled values while training.
    """

    def __init__(self, width: int = 32, dropout: float = 0.25) -> None:
        super().__init__()
        self.embedding = nn.Embedding(128, width, padding_idx=0)
        self.filters = nn.ModuleList(nn.Conv1d(width, width, span) for span in WIDTHS)
        d = width * len(WIDTHS)
        self.gate, self.change, self.dropout, self.logit = (
            nn.Linear(d, d),
            nn.Linear(d, d),
            nn.Dropout(dropout),
            nn.Linear(d, 1),
        )

    def forward(self, codes: Int[Tensor, "n length"]) -> Float[Tensor, " n"]:
        """float [n], from ASCII codes, 0 behind a text's end."""
        x = self.embedding(codes).transpose(1, 2)
        h = torch.cat([F.relu(conv(x)).amax(dim=2) for conv in self.filters], dim=1)
        gate = self.gate(h).sigmoid()
        return self.logit(self.dropout(gate * F.relu(self.change(h)) + (1 - gate) * h))[:, 0]


def ascii_codes(texts: Sequence[str]) -> Int[Tensor, "n length"]:
    """int64 [n, length], ASCII codes of the first characters, with zeros behind each text and at least four."""
    rows = [list(text.encode("ascii", "replace")[:LONGEST]) for text in texts]
    length = max(map(len, rows), default=0) + max(WIDTHS) - 1
    return torch.tensor([row + [0] * (length - len(row)) for row in rows], dtype=torch.int64)


@register(
    "reward",
    "discriminator",
    summary="how real a molecule's text looks, mixed with the score (adversarial training)",
    paper="Yu et al. 2017, AAAI, arXiv:1609.05473; Guimaraes et al. 2017, arXiv:1705.10843",
    systems=(
        SystemCard(
            "seqgan",
            left_out="roll-outs of prefixes: a whole text's score stands for each of its tokens, the same gradient in "
            "expectation with more variance; texts that are no molecule never reach the discriminator, and have 0",
            off="'discriminator(0)'",
            beside=("the model before the search",),
            command="molgraph optimise prior --search policy --oracle qed --reward 'discriminator(1)' -o found.csv",
        ),
        SystemCard(
            "organ-organ",
            left_out="roll-outs of prefixes, and the Wasserstein critic",
            off="'discriminator(0)'",
            beside=("no discriminator",),
            command="molgraph optimise prior --search policy --oracle qed --reward 'discriminator(0.5)' -o found.csv",
            modules=("molgraph.generate.rewards.repeats",),
        ),
    ),
)
class Discriminator(Reward):
    """``R(x) = lambda scale D(x) + (1 - lambda) S(x)`` (Guimaraes et al. 2017, equation 6; ``scale`` is the oracle's).

    ``D(x)`` is the probability that a network of characters gives the canonical SMILES of ``x`` to be real; it is
    trained by cross-entropy after each batch, on real molecules and the latest of the search (Yu et al. 2017, equation
    5). With lambda 1 the discriminator is the only reward (SeqGAN), with 0 it has no part. The term ``repeats`` beside
    it is ORGAN's penalty of repeated molecules.

    Args:
        weight: lambda.
        real: a table of real molecules, a file or ``dataset:NAME``. If not given: the starts and known molecules where
            there are ten or more, else draws of the generator as it is before the search, without one a built-in list.
        draws: of the generator, or of the built-in list.
        steps: of gradient descent after each batch.
        width: filters of each span.
        dropout: of the discriminator while it learns.
        learning_rate: of the discriminator, with Adam.
    """

    small = MappingProxyType({"width": 8, "draws": 20, "steps": 1})

    def __init__(
        self,
        weight: Probability = 0.5,
        *,
        real: str = "",
        draws: Count = 1000,
        steps: Annotated[int, Range(0, 1000)] = 4,
        width: Annotated[int, Range(1, 1024)] = 32,
        dropout: Probability = 0.25,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 1e-3,
    ) -> None:
        self.weight, self.real, self.draws, self.steps = weight, real, draws, steps
        self.width, self.dropout, self.learning_rate = width, dropout, learning_rate

    def begin(self, *args: Any, **how: Any) -> None:
        """Read the real molecules, and draw the discriminator's weights."""
        super().begin(*args, **how)
        self.known, self.met, self.batches = self.real_molecules(), list[str](), 0
        with torch_settings(None, derive(self.seed, "network")):
            self.network = TextNetwork(self.width, self.dropout).eval()
        self.optimizer = torch.optim.Adam(self.network.parameters(), self.learning_rate)

    def real_molecules(self) -> list[str]:
        """Canonical SMILES of molecules that count as real.

        Raises:
            EmptyError: none can be read.
        """
        if self.real:
            texts = [str(text) for text in read_table(self.real).smiles]
        elif len(self.examples) >= ENOUGH:
            texts = self.examples
        elif self.generator is not None:
            texts = self.generator.sample(self.draws, derive(self.seed, "real"))
        else:
            order = random_numbers(self.seed, "real").permutation(len(builtin_molecules()))
            texts = [builtin_molecules()[row] for row in order[: self.draws]]
        readable = [molecule.smiles for molecule in canonical_smiles(texts) if not molecule.reason]
        if not readable:
            words = f"none of {len(texts):,} real molecules of the discriminator can be read"
            raise EmptyError(words, hint="name a table of molecules: discriminator(real=TABLE)")
        return readable

    def chance(self, smiles: Sequence[str]) -> np.ndarray:
        """float64 [n], ``D(x)``."""
        with torch.inference_mode():
            return self.network(ascii_codes(smiles)).double().sigmoid().numpy()

    def adjust(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """The mixed scores; then the discriminator learns."""
        if not self.weight or not len(smiles):
            return score.copy()
        real = self.weight * self.scale * self.chance(smiles)
        self.met = [*self.met, *smiles][-KEPT:]
        self.learn()
        if self.weight == 1:
            return np.where(np.isnan(score), np.nan, real)
        return real + (1 - self.weight) * score

    def learn(self) -> None:
        """Steps on real molecules and the latest of the search, as many of each."""
        rng, self.batches = random_numbers(self.seed, "batch", self.batches), self.batches + 1
        self.network.train()
        with torch_settings(None, derive(self.seed, "dropout", self.batches)):
            for _ in range(self.steps):
                real, met = (
                    [texts[row] for row in rng.integers(len(texts), size=BATCH)] for texts in (self.known, self.met)
                )
                labels = torch.cat([torch.ones(BATCH), torch.zeros(BATCH)])
                loss = F.binary_cross_entropy_with_logits(self.network(ascii_codes([*real, *met])), labels)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
        self.network.eval()

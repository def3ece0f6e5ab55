"""A language model of all 64 strings of three of four tokens, whose distributions are known exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from molgraph.generate.language import LanguageGenerator
from molgraph.generate.network_generator import Fitted
from molgraph.generate.policy import Policy
from molgraph.generate.searches.policy import LanguageSearch

TOKENS, LENGTH = ("w", "x", "y", "z"), 3
STRINGS = ["".join(each) for each in product(TOKENS, repeat=LENGTH)]


class Three:
    """A constraint: three tokens, then the end."""

    def allowed_at(self, place: int) -> np.ndarray:
        return np.arange(1 + len(TOKENS)) > 0 if place < LENGTH else np.arange(1 + len(TOKENS)) == 0

    def begin(self, n: int, seed: int = 0) -> Three:
        self.place = 0
        return self

    def allowed(self, live: Tensor) -> Tensor:
        return torch.from_numpy(self.allowed_at(self.place)).expand(len(live), -1)

    def take(self, live: Tensor, codes: Tensor) -> None:
        self.place += 1

    def whole(self, texts: list[list[int]]) -> list[list[int]]:
        return texts

    def masks(self, codes: Sequence[Sequence[int]]) -> Tensor:
        places = np.stack([self.allowed_at(place) for place in range(LENGTH + 1)])
        return torch.from_numpy(places).expand(len(codes), -1, -1)

    def accepts(self, text: Sequence[int]) -> bool:
        return len(text) == LENGTH


def toy_model(seed: int = 0) -> Any:
    """A recurrent network with random weights, far from uniform."""
    made = LanguageGenerator(d_embedding=8, d_hidden=32, n_layers=1, max_length=8, threads=1)
    torch.manual_seed(seed)
    network = made.build(TOKENS)
    with torch.no_grad():
        network.scores.weight.mul_(8)
    made.fitted, made.constraint = Fitted(network.eval(), TOKENS), Three()  # type: ignore[assignment]
    return made


def probabilities(policy: Policy) -> np.ndarray:
    """float64 [64], of each string."""
    codes = [row for row in policy.encode(STRINGS) if row is not None]
    return np.exp(policy.log_prob(codes))


def total_variation(p: np.ndarray, q: np.ndarray) -> float:
    """Half the sum of the differences."""
    return float(np.abs(p - q).sum() / 2)


def tilted(p: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """``p exp(exponent) / Z``."""
    out = p * np.exp(exponent - exponent.max())
    return np.asarray(out / out.sum())


SCORES = np.random.default_rng(3).random(len(STRINGS))


def trained(
    search: LanguageSearch,
    steps: int,
    *,
    n: int = 256,
    scores: np.ndarray = SCORES,
    model: Any = None,
    begin: Callable[[LanguageSearch], None] | None = None,
) -> LanguageSearch:
    """Ask and tell as a run does, without reading the strings as molecules; the step size falls to nothing."""

    def remember(codes: Sequence[list[int]]) -> list[str]:
        texts = search.agent.texts(codes)
        search.drawn = dict(zip(texts, codes, strict=True))
        return texts

    search.remember = remember  # type: ignore[method-assign]
    search.begin(model or toy_model())
    if begin:
        begin(search)
    value = dict(zip(STRINGS, scores.tolist(), strict=True))
    rates = [group["lr"] for group in search.optimizer.param_groups]
    for step in range(steps):
        for group, rate in zip(search.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate * (1 - step / steps)
        texts = search.ask(n, step).smiles
        search.tell(texts, np.array([value[text] for text in texts]))
    return search

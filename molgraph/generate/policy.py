"""Hold a trainable copy of a language model: sample texts, and compute their tokens' log-probabilities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from molgraph.base.errors import ConflictError
from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.chem.tokens import alphabet
from molgraph.generate.distinct import DistinctTexts, draw_distinct
from molgraph.generate.network_generator import NetworkGenerator
from molgraph.generate.next_token import PAD, draw_codes, sampling_copy, shifted, until_end
from molgraph.train.runtime import resolve_device, torch_settings

TOGETHER = 256  # texts that go through the network at once


class Tokens(NamedTuple):
    """The log-probability of each token of n texts, and of their ends.

    Args:
        log_p: float [n, t], ``log p(x_t | x_1 ... x_(t-1))``; 0 behind a text's end.
        mask: bool [n, t], whether a place has a token or an end.
        states: float [n, t, d], the network's states from which each was drawn.
    """

    log_p: Float[Tensor, "n t"]
    mask: Bool[Tensor, "n t"]
    states: Float[Tensor, "n t d"]

    @property
    def total(self) -> Float[Tensor, " n"]:
        """float [n], the log-probability of each text."""
        return self.log_p.sum(dim=1)


class Policy:
    """A copy of a language model's network: ``p(text) = prod_t p(x_t | x_1 ... x_(t-1))``, to draw from and to train.

    Args:
        model: a fitted language model, which stays as it is.

    Example:
        >>> from molgraph.data.table import make_table
        >>> from molgraph.generate.language import LanguageGenerator
        >>> model = LanguageGenerator(**LanguageGenerator.small, threads=1).fit(make_table(["CCO", "CCN", "CCCl"]))
        >>> policy = Policy(model)
        >>> with policy.at_work():
        ...     codes = policy.draw(4, seed=1)
        ...     tokens = policy.tokens(codes)
        >>> len(policy.texts(codes)), tokens.log_p.shape == tokens.mask.shape
        (4, True)
    """

    def __init__(self, model: NetworkGenerator) -> None:
        fitted = model.ready()
        self.network, self.vocabulary = deepcopy(fitted.network).eval(), tuple(fitted.vocabulary)
        self.network.requires_grad_(requires_grad=True)
        self.written, self.max_length = alphabet(model.tokens), model.max_length
        self.constraint = getattr(model, "constraint", None)
        self.temperature, self.threads, self.precision = model.temperature, model.threads, model.precision
        self.device = resolve_device(model.device)
        self.network.to(self.device)
        self.code_of = {token: code for code, token in enumerate(self.vocabulary, 1)}
        first = [code for token, code in self.code_of.items() if self.written.begins(token)]
        self.first = first if len(first) < len(self.vocabulary) else []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Threads and precision as the model has them."""
        bfloat16 = self.precision == "bfloat16"
        with torch_settings(self.threads), torch.autocast(self.device.type, torch.bfloat16, enabled=bfloat16):
            yield

    def draw(self, n: int, seed: int, condition: Float[Tensor, "n d"] | None = None) -> list[list[int]]:
        """The codes of ``n`` texts; ``condition`` is added to the embedding of every token of a text."""
        out: list[list[int]] = []
        for start in range(0, n, TOGETHER):
            size = min(TOGETHER, n - start)
            uniform = random_numbers(seed, "draw", start).random((size, self.max_length))
            limit = self.constraint and self.constraint.begin(size, derive(seed, start))
            step, rows = self.stepper(None if condition is None else condition[start : start + size])
            how: dict[str, Any] = {"first": self.first, "rows": rows, "limit": limit}
            with torch.inference_mode():
                code = draw_codes(step, uniform, self.temperature, self.device, **how)
            texts = [until_end(row) for row in code.tolist()]
            out += limit.whole(texts) if limit else texts
        return out

    def stepper(self, condition: Float[Tensor, "n d"] | None) -> tuple[Callable[..., Any], Callable[..., Any]]:
        """The step from token to token, and the choice of some texts' states, which hold their conditions too."""
        network = sampling_copy(self.network, self.precision)
        if condition is None:
            return network, network.sequence.rows
        first = condition.to(self.device)

        def step(token: Tensor, state: Any) -> tuple[Tensor, Any]:
            before, context = (None, first) if state is None else state
            scores, after = network(token, before, context)
            return scores, (after, context)

        def rows(state: Any, index: Tensor) -> Any:
            return network.sequence.rows(state[0], index), state[1][index]

        return step, rows

    def draw_distinct(self, k: int, seed: int, groups: int = 1) -> list[DistinctTexts]:
        """``k`` distinct texts for each of some independent groups, without replacement; the temperature is ``draw``'s.

        Raises:
            ConflictError: the policy keeps a scaffold.
        """
        if self.constraint is not None:
            words = "distinct texts are not drawn of a model that keeps a scaffold"
            raise ConflictError(words, hint="leave one of the two out")
        rng, network = random_numbers(seed, "distinct"), self.network
        how = {"length": self.max_length, "first": self.first, "rows": network.sequence.rows}
        with torch.inference_mode():
            return draw_distinct(network, k, groups, rng, self.temperature, self.device, **how)

    def texts(self, codes: Sequence[Sequence[int]]) -> list[str]:
        """The SMILES that codes stand for."""
        return [self.written.join([self.vocabulary[code - 1] for code in row]) for row in codes]

    def encode(self, smiles: Sequence[str]) -> list[list[int] | None]:
        """The codes of each SMILES as it is written; None where the alphabet lacks a token or it is too long."""
        split = self.written.split(list(smiles))
        rows: list[list[int] | None] = [
            [self.code_of.get(token, 0) for token in tokens] if not reason else [0] for tokens, reason in split
        ]
        rows = [row if row and all(row) and len(row) <= self.max_length else None for row in rows]
        if self.constraint is None:
            return rows
        return [row if row and self.constraint.accepts(row) else None for row in rows]

    def tokens(self, codes: Sequence[Sequence[int]], condition: Float[Tensor, "n d"] | None = None) -> Tokens:
        """The log-probabilities of texts, with gradients where they are wanted; ``condition`` as ``draw`` has it."""
        flat = torch.tensor([code for row in codes for code in row], dtype=torch.int64)
        offsets = torch.tensor(np.cumsum([0, *map(len, codes)]))
        inputs, target = (tensor.to(self.device) for tensor in shifted(flat, offsets))
        states, _ = self.network.sequence(self.network.embed(inputs, condition), None, None)
        scores = self.network.scores(states).float()
        if self.constraint is not None:
            scores = scores.masked_fill(~self.constraint.masks(codes).to(self.device), -torch.inf)
        log_p = scores.log_softmax(dim=2)
        mask = target != PAD
        chosen = log_p.gather(2, target.clamp(min=0).unsqueeze(2))[:, :, 0]
        return Tokens(torch.where(mask, chosen, 0.0), mask, states.float())

    def log_prob(self, codes: Sequence[Sequence[int]]) -> np.ndarray:
        """float64 [n], the log-probability of each text, without gradients."""
        order = sorted(range(len(codes)), key=lambda row: len(codes[row]))
        out = np.zeros(len(codes))
        with torch.inference_mode():
            for start in range(0, len(order), TOGETHER):
                rows = order[start : start + TOGETHER]
                out[rows] = self.tokens([codes[row] for row in rows]).total.double().cpu().numpy()
        return out

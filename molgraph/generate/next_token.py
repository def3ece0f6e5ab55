"""A network that scores the next token of a text, and the objective that trains it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import get, names
from molgraph.nn.sequence import make_sequence
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample, Samples

EDGE = 0  # the code of a text's start and end
PAD = -100  # a target that does not count
ENDED = 16  # one in so many texts that ended are computed no further


class LanguageNetwork(nn.Module):
    """Scores of the next token: ``W h_t + b`` with the states ``h_t`` of a causal sequence layer.

    Args:
        n_tokens: distinct tokens, the edge among them.
        d_embedding, d_hidden, n_layers, dropout, sequence: as ``LanguageGenerator`` has them.

    Raises:
        UnsupportedError: sequence layers that are not causal.
    """

    def __init__(
        self, n_tokens: int, d_embedding: int, d_hidden: int, n_layers: int, dropout: float, sequence: str = "gru"
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embedding)
        self.sequence = make_sequence(sequence, d_embedding, d_hidden, n_layers, dropout)
        if not self.sequence.causal:
            able = [name for name in names("sequence") if get("sequence", name).causal]
            raise UnsupportedError(f"{sequence} reads and cannot write", hint=f"choose one of {', '.join(able)}")
        self.scores = nn.Linear(d_hidden, n_tokens)

    def prepare(self, sample: Sample) -> None:
        """Nothing is made ahead."""

    def forward(self, tokens: Tensor, state: Any = None, condition: Tensor | None = None) -> tuple[Tensor, Any]:
        """Float [n, length, n_tokens] and the last state, from int64 [n, length] and the state before.

        ``condition``: float [n, d_embedding], added to the embedding of every token of a text.
        """
        h, state = self.sequence(self.embed(tokens, condition), None, state)
        return self.scores(h), state

    def embed(self, tokens: Tensor, condition: Tensor | None = None) -> Tensor:
        """Float [n, length, d_embedding], what the sequence layer reads."""
        h = self.embedding(tokens)
        return h if condition is None else h + condition.unsqueeze(1)


class NextToken(Objective):
    """Cross-entropy of each next token and of the end, given the tokens before: the mean over tokens."""

    labelled = False

    def lengths(self, samples: Samples) -> np.ndarray:
        """The tokens of each text and its end."""
        return np.diff(samples.stores[0].levels["token"].offsets)[samples.graph[:, 0]] + 1

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum of the cross-entropies of a batch's tokens and ends."""
        (part,) = batch.parts
        level = part.batch["token"]
        inputs, target = shifted(level.code.long(), level.offsets)
        if batch.weights is not None:
            target[batch.weights[:, 0] == 0] = PAD
        condition = None if batch.extra is None else network.conditions(batch.extra)
        scores, _ = network(self.inputs(network, inputs, condition, state), condition=condition)
        total = F.cross_entropy(scores.float().flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum")
        return Loss(total, int((target != PAD).sum()))

    def inputs(self, network: Any, tokens: Tensor, condition: Tensor | None, state: StepState) -> Tensor:
        """What the network reads: int64 [n, length], the tokens before each next one."""
        return tokens


def shifted(code: Tensor, offsets: Tensor) -> tuple[Tensor, Tensor]:
    """What a network reads and what it should answer, both int64 [n, longest + 1].

    Args:
        code: int64 [tokens] of n texts, one after the other.
        offsets: int64 [n + 1], where each begins.

    Example:
        >>> given, target = shifted(torch.tensor([5, 6, 7]), torch.tensor([0, 2, 3]))
        >>> given.tolist(), target.tolist()
        ([[0, 5, 6], [0, 7, 0]], [[5, 6, 0], [7, 0, -100]])
    """
    texts, edge = code.split(offsets.diff().tolist()), code.new_full((1,), EDGE)
    inputs = pad_sequence([torch.cat([edge, text]) for text in texts], batch_first=True, padding_value=EDGE)
    target = pad_sequence([torch.cat([text, edge]) for text in texts], batch_first=True, padding_value=PAD)
    return inputs, target


def sampling_copy(network: Any, precision: str) -> Any:
    """The network; at bfloat16 a copy with weights of that type, which are then not converted at each token.

    Sequence layers whose weights need float32 (``lower_weights``) stay as they are.
    """
    if precision != "bfloat16" or not network.sequence.lower_weights:
        return network
    return deepcopy(network).to(torch.bfloat16)


def draw_codes(
    step: Callable[[Tensor, Any], tuple[Tensor, Any]],
    uniform: np.ndarray,
    temperature: float,
    device: torch.device | str = "cpu",
    *,
    first: Sequence[int] = (),
    rows: Callable[[Any, Tensor], Any] | None = None,
    limit: Any = None,
) -> Tensor:
    """int64 [n, length], the codes of texts that are drawn token by token; those behind a text's end mean nothing.

    Args:
        step: ``(token [m, 1], state) -> (scores [m, 1, n_tokens], state)``, where the first state is None.
        uniform: float [n, length], random numbers from 0 to 1, each of which picks a token.
        temperature: of the softmax.
        device: where ``step`` has its tokens.
        first: codes that a text may begin with; any, the end too, where none are given.
        rows: ``(state, index [m]) -> state`` of some texts: those that have ended are then computed no further.
        limit: which tokens may come next, as ``ScaffoldConstraint.begin`` gives; any if not given.
    """
    draws, live = torch.from_numpy(uniform), torch.arange(len(uniform))
    code = torch.zeros(draws.shape, dtype=torch.int64)
    token, state = torch.full((len(draws), 1), EDGE, device=device), None
    ended = torch.zeros(len(draws), dtype=torch.bool)
    for place in range(draws.shape[1]):
        scores, state = step(token, state)
        likely = torch.nan_to_num(scores[:, 0].double().cpu()) / temperature
        if not place and first:
            likely[:, [code for code in range(likely.shape[1]) if code not in {*first}]] = -torch.inf
        if limit is not None:
            likely.masked_fill_(~limit.allowed(live), -torch.inf)
        upto = likely.softmax(dim=1).cumsum(dim=1)
        drawn = torch.searchsorted(upto, draws[live, place : place + 1] * upto[:, -1:], right=True)
        drawn.clamp_(max=upto.shape[1] - 1)
        code[live, place] = drawn[:, 0]
        if limit is not None:
            limit.take(live, drawn)
        ended |= drawn[:, 0] == EDGE
        if ended.all():
            break
        if rows is not None and int(ended.sum()) > len(live) // ENDED:
            going = (~ended).nonzero()[:, 0]
            live, drawn, ended = live[going], drawn[going], ended[going]
            state = rows(state, going.to(device))
        token = drawn.to(device)
    return code


def until_end(codes: list[int]) -> list[int]:
    """The codes before the first end.

    Example:
        >>> until_end([3, 1, 0, 2])
        [3, 1]
    """
    return codes[: codes.index(EDGE)] if EDGE in codes else codes

"""Sample distinct texts from a language model, by stochastic beam search (Gumbel top-k)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.generate.next_token import EDGE


@runtime_checkable
class SamplesDistinct(Protocol):
    """A generator that draws different texts without replacement."""

    def sample_distinct(self, n: int, seed: int = 0) -> tuple[list[str], np.ndarray]:
        """``n`` different texts and float64 [n], the weights by which their means are those of ``sample``'s texts."""


class DistinctTexts(NamedTuple):
    """Texts of which no two are the same, in the order in which they were drawn.

    Args:
        codes: of each text.
        log_p: float64 [n], the log-probability with which one draw is that text.
        weight: float64 [n], ``p / q`` with the probability ``q`` that the text is among those that are drawn: the sum
            of weight times value over the texts estimates the mean value of independent draws without bias.
    """

    codes: list[list[int]]
    log_p: np.ndarray
    weight: np.ndarray


def children(
    parent: Float[Tensor, " m"], log_p: Float[Tensor, "m v"], uniform: Float[Tensor, "m v"]
) -> Float[Tensor, "m v"]:
    """float64 [m, v]: Gumbel variables of the places ``log_p`` whose greatest is the parent's.

    Kool et al. 2019, section 4 and appendix B.3, where ``T`` is the parent's and ``Z`` the greatest of free variables
    ``G``: ``- log(exp(-T) - exp(-Z) + exp(-G))``, written so that nothing cancels.

    Args:
        parent: perturbed log-probability of each text so far.
        log_p: log-probability of each of its continuations.
        uniform: random numbers, above 0 and below 1.
    """
    free = log_p - (-uniform.log()).log()
    most = free.max(dim=1, keepdim=True).values
    gap = (most - free).clamp(min=0)
    less = torch.where(gap < 0.6931, (-torch.expm1(-gap)).log(), torch.log1p(-(-gap).exp()))  # log(1 - exp(G - Z))
    v = parent[:, None] - free + less
    out = parent[:, None] - v.clamp(min=0) - torch.log1p((-v.abs()).exp())
    return torch.where(free == -torch.inf, -torch.inf, out)


def draw_distinct(
    step: Callable[[Tensor, Any], tuple[Tensor, Any]],
    k: int,
    groups: int,
    rng: np.random.Generator,
    temperature: float,
    device: torch.device | str = "cpu",
    *,
    length: int,
    first: Sequence[int] = (),
    rows: Callable[[Any, Tensor], Any],
) -> list[DistinctTexts]:
    """``k`` distinct texts for each of some groups, which are independent; fewer where there are no more.

    Kool et al. 2019, algorithm 1. Texts that are perturbed by Gumbel noise and sorted are a sample without
    replacement; the noise of a text so far is the greatest of the texts that begin with it, so that a beam of the
    ``k + 1`` greatest loses none. The last of them is the threshold ``t`` of the weights, whose chance of inclusion is
    ``q = 1 - exp(-exp(log p - t))``.

    Args:
        step: ``(token [m, 1], state) -> (scores [m, 1, n_tokens], state)``, where the first state is None.
        k: texts of a group.
        groups: how many.
        rng: makes the noise.
        temperature: of the softmax.
        device: where ``step`` has its tokens.
        length: tokens of a text, at most; what is not ended there is cut, as ``draw_codes`` cuts it.
        first: codes that a text may begin with; any, the end too, where none are given.
        rows: ``(state, index [m]) -> state`` of some texts.
    """
    width = k + 1
    beam = torch.zeros(groups, 1, length, dtype=torch.int64)
    log_p = torch.zeros(groups, 1, dtype=torch.float64)
    noisy = torch.from_numpy(rng.gumbel(size=(groups, 1)))
    live = torch.ones(groups, 1, dtype=torch.bool)
    token, state = torch.full((groups, 1), EDGE, device=device), None
    for place in range(length):
        scores, state = step(token, state)
        likely = torch.nan_to_num(scores[:, 0].double().cpu()) / temperature
        if not place and first:
            likely[:, [code for code in range(likely.shape[1]) if code not in {*first}]] = -torch.inf
        n_tokens = likely.shape[1]
        shares = log_p[live][:, None] + likely.log_softmax(dim=1)
        uniform = torch.from_numpy(rng.random(shares.shape)).clamp(min=1e-300)
        next_p = torch.full((*log_p.shape, n_tokens), -torch.inf, dtype=torch.float64)
        next_noisy = next_p.clone()
        next_p[:, :, EDGE], next_noisy[:, :, EDGE] = log_p, noisy  # those that have ended stay
        next_p[live], next_noisy[live] = shares, children(noisy[live], shares, uniform)
        noisy, best = next_noisy.flatten(1).topk(min(width, next_noisy[0].numel()), dim=1)
        log_p, parent, code = next_p.flatten(1).gather(1, best), best // n_tokens, best % n_tokens
        beam = beam.gather(1, parent[:, :, None].expand(-1, -1, length))
        beam[:, :, place] = code
        row_of = (live.flatten().cumsum(0) - 1).view_as(live).gather(1, parent)
        live = live.gather(1, parent) & (code != EDGE) & (noisy > -torch.inf)
        if not live.any():
            break
        state, token = rows(state, row_of[live].to(device)), code[live][:, None].to(device)
    return [_texts(*row, k) for row in zip(beam, log_p, noisy, strict=True)]


def _texts(beam: Tensor, log_p: Tensor, noisy: Tensor, k: int) -> DistinctTexts:
    """The first k of a beam, which is sorted, and their weights by the one behind them."""
    there = log_p.exp() > 0  # texts without a chance are none
    n, more = min(int(there.sum()), k), bool(there[k:].any())
    p = log_p[:n]
    chance = -torch.expm1(-(p - noisy[k]).exp()) if more else torch.ones_like(p)
    codes = [row[: row.index(EDGE)] if EDGE in row else row for row in beam[:n].tolist()]
    return DistinctTexts(codes, p.numpy(), (p.exp() / chance).numpy())

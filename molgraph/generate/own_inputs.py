"""Train a language model on its own samples in the place of some tokens, so that it learns to go on from those."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from molgraph.generate.next_token import EDGE, NextToken
from molgraph.train.objective import StepState


class OwnInputs(NextToken):
    """Cross-entropy of each next token, where some tokens before it are the model's own samples.

    Freeman et al. 2019, "Learning to Predict Without Looking Ahead", section 2.1 (observational dropout):
    ``x_t = o_t`` with probability ``1 - share``, otherwise a sample of the model's ``p(x_t | x_0 ... x_(t-1))``. The
    model reads its own outputs until the next observation. There a search for reward trains the model; here the
    cross-entropy of the observed tokens does, as in the scheduled sampling of Bengio et al. 2015. A validation part is
    judged on observations alone.

    Args:
        share: probability that a token is replaced; 0 is ``NextToken``.
    """

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share = share

    def inputs(self, network: Any, tokens: Tensor, condition: Tensor | None, state: StepState) -> Tensor:
        """The observed tokens, some replaced while training."""
        if not self.share or not state.training:
            return tokens
        return with_own_inputs(network, tokens, self.share, condition)


@torch.no_grad()
def with_own_inputs(network: Any, tokens: Tensor, share: float, condition: Tensor | None = None) -> Tensor:
    """Replace tokens by samples of the model, one place after the other.

    The start of a text stays. The end is not sampled, since nothing follows it.

    Args:
        network: ``(tokens [n, 1], state, condition) -> (scores [n, 1, n_tokens], state)``.
        tokens: int64 [n, t], the observations, each text after its start.
        share: probability that a token is replaced.
        condition: float [n, d_embedding], as ``LanguageNetwork`` has it.

    Returns:
        int64 [n, t].
    """
    replaced = torch.rand(tokens.shape, device=tokens.device) < share
    read, state = [tokens[:, :1]], None
    for place in range(1, tokens.shape[1]):
        scores, state = network(read[-1], state, condition)
        likely = torch.nan_to_num(scores[:, 0].float())
        likely[:, EDGE] = -torch.inf
        sample = torch.multinomial(likely.softmax(dim=1), 1)
        read.append(torch.where(replaced[:, place : place + 1], sample, tokens[:, place : place + 1]))
    return torch.cat(read, dim=1)

"""Train a language model offline on scored molecules, by critic-regularised regression."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from molgraph.base.errors import MissingOptionError
from molgraph.base.progress import bar
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator as random_numbers
from molgraph.base.systems import SystemCard
from molgraph.generate.next_token import PAD, shifted
from molgraph.generate.searches.policy import LanguageSearch

LARGEST = 20.0  # weight of a token, at most, as in the paper
RENEW = 20  # steps after which the critic's targets are made by its present weights


@register(
    "search",
    "crr",
    summary="offline: learns from --known molecules alone, the better the token the more",
    paper="Wang et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "crr",
            left_out="the distributional critic, and policies of continuous actions",
            off="crr(f=one)",
            beside=("cloning: f=one",),
            command="molgraph optimise prior --search crr --known dataset:esol --objective qed -o found.csv",
            modules=("molgraph.generate.searches.policy",),
        ),
    ),
)
class CRR(LanguageSearch):
    """``- sum_t f(A(s_t, x_t)) log p(x_t | s_t)`` over known molecules, ``s_t`` the tokens before (critic regularised
    regression, Wang et al. 2020, equations 2 to 4).

    ``A(s, x) = Q(s, x) - sum_a p(a | s) Q(s, a)``, the mean over the model's own tokens exactly where the paper draws
    some. ``f`` is ``one`` (1: cloning), ``binary`` (``A > 0``) or ``exp`` (``exp(A / beta)``, 20 at most). The critic
    is a second network that is trained by temporal differences, ``Q(s_t, x_t) = sum_a p(a | s_(t+1)) Q'(s_(t+1), a)``
    and the score at the end, in standard deviations of the known scores. Nothing is learned after ``begin``: the
    scores of proposals judge the model, and change nothing. Known limits: 300 batches of networks as wide as `prior`
    take five minutes of one core before the first proposal.

    Args:
        f: how an advantage becomes a weight.
        beta: of ``exp``, in standard deviations of the known scores.
        steps: batches that are learned from.
        batch_known: molecules of each.
        learning_rate: step size of Adam, of both networks.
    """

    name = "crr"
    offline = True
    small = MappingProxyType({"steps": 4, "batch_known": 8})

    def __init__(
        self,
        *,
        f: Literal["exp", "binary", "one"] = "exp",
        beta: Annotated[float, Range(0.0, 1e6, above=True)] = 0.5,
        steps: Count = 300,
        batch_known: Count = 64,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 1e-3,
    ) -> None:
        self.f, self.beta, self.steps, self.batch_known = f, beta, steps, batch_known
        self.learning_rate = learning_rate

    def begin(self, generator: Any = None, **how: Any) -> None:
        """As ``Search.begin``, and all the learning; raises ``MissingOptionError`` without known molecules."""
        if how.get("known") is None:
            hint = "name a table: --known scored.csv, with a column of the oracle's name or values that are computed"
            raise MissingOptionError(
                "the search 'crr' learns from molecules with known scores, and has none", hint=hint
            )
        super().begin(generator, **how)

    def prepare(self) -> None:
        """The critic beside the model: a network of its size whose last layer gives values, 0 at first."""
        self.critic = deepcopy(self.agent.network)
        for parameter in (self.critic.scores.weight, self.critic.scores.bias):
            torch.nn.init.zeros_(parameter)
        self.target = deepcopy(self.critic)
        super().prepare()
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), self.learning_rate)

    def learn_known(self, smiles: Sequence[str], score: np.ndarray) -> int:
        """Train on the molecules whose tokens the model knows: how many they are."""
        rows = [(codes, s) for codes, s in zip(self.agent.encode(smiles), score, strict=True) if codes is not None]
        if not rows:
            return 0
        scores = np.array([s for _, s in rows])
        scores = (scores - scores.mean()) / (scores.std() or 1.0)
        rng = random_numbers(self.seed, "crr")
        with bar("learning from known molecules", self.steps) as line, self.agent.at_work():
            for step in range(self.steps):
                chosen = rng.choice(len(rows), min(self.batch_known, len(rows)), replace=False)
                self.descend([rows[row][0] for row in chosen], scores[chosen], step)
                line.advance(1)
        return len(rows)

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Learn nothing."""

    def descend(self, codes: Sequence[list[int]], score: np.ndarray, step: int) -> None:
        """One step of both networks."""
        if not step % RENEW:
            self.target.load_state_dict(self.critic.state_dict())
        loss, td = self.losses(codes, torch.from_numpy(score).float().to(self.agent.device))
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.agent.network.parameters(), 10.0)
        self.optimizer.step()
        self.critic_optimizer.zero_grad()
        td.backward()
        torch.nn.utils.clip_grad_norm_(self.critic.parameters(), 10.0)
        self.critic_optimizer.step()

    def losses(
        self, codes: Sequence[list[int]], score: Float[Tensor, " n"]
    ) -> tuple[Float[Tensor, ""], Float[Tensor, ""]]:
        """The model's loss and the critic's, means over tokens and ends."""
        flat = torch.tensor([code for row in codes for code in row], dtype=torch.int64)
        seqs, target = (x.to(self.agent.device) for x in shifted(flat, torch.tensor(np.cumsum([0, *map(len, codes)]))))
        mask, place = target != PAD, target.clamp(min=0).unsqueeze(2)
        logits, values = self.agent.network(seqs)[0].float(), self.critic(seqs)[0].float()
        if self.agent.constraint is not None:
            logits = logits.masked_fill(~self.agent.constraint.masks(codes).to(self.agent.device), -torch.inf)
        log_p = logits.log_softmax(dim=2)
        taken = log_p.gather(2, place)[:, :, 0]
        q = values.gather(2, place)[:, :, 0]
        with torch.no_grad():
            p = log_p.exp()
            weight = self.weight(q - (p * values).sum(dim=2))
            later = (p * self.target(seqs)[0].float()).sum(dim=2)
            aim = torch.cat([later[:, 1:], later[:, :1]], dim=1)
            ends = torch.arange(mask.shape[1], device=mask.device) == mask.sum(dim=1, keepdim=True) - 1
            aim = torch.where(ends, score.unsqueeze(1), aim)
        return -_mean(weight * taken, mask), _mean((q - aim).square(), mask)

    def weight(self, advantage: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """``f`` of advantages.

        Example:
            >>> CRR(f="binary").weight(torch.tensor([[-1.0, 0.5]])).tolist()
            [[0.0, 1.0]]
        """
        if self.f == "one":
            return torch.ones_like(advantage)
        if self.f == "binary":
            return (advantage > 0).to(advantage.dtype)
        return (advantage / self.beta).exp().clamp(max=LARGEST)


def _mean(x: Float[Tensor, "n t"], mask: Bool[Tensor, "n t"]) -> Float[Tensor, ""]:
    return torch.where(mask, x, 0.0).sum() / mask.sum()

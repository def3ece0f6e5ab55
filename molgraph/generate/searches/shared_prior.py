"""Train a language model for each part of the oracle, and one prior that they share and that is distilled from all."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated

import numpy as np
import torch

from molgraph.base.errors import ConflictError
from molgraph.base.ranges import NotNegative, Probability, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.generate.estimators.estimator import make_estimator
from molgraph.generate.searches.policy import LanguageSearch, PolicySearch
from molgraph.generate.searches.search import Proposals


class TermPolicy(PolicySearch):
    """The policy of one part of the oracle: ``policy`` with the shared model in the place of its prior.

    ``latest``: the codes of its last texts as they were drawn, repeated ones too.
    """

    def remember(self, codes: Sequence[list[int]]) -> list[str]:
        """As ``LanguageSearch.remember``."""
        self.latest = list(codes)
        return super().remember(codes)


@register(
    "search",
    "shared-prior",
    summary="a language model for each part of the oracle, near a prior that is distilled from all of them",
    paper="Igl et al. 2020, UAI, arXiv:1904.01033",
    systems=(
        SystemCard(
            "msol",
            left_out="options: a policy writes whole molecules, so that there is no master policy over options and no "
            "termination of one; the discount of the divergence, and the paper's actor-critic",
            off="'shared-prior(learn_prior=false, learning_rate=0.02)'",
            beside=("a prior that is not learned",),
            command="molgraph optimise prior --search 'shared-prior(learning_rate=0.02)' --oracle qed,logp "
            "-o found.csv",
            modules=("molgraph.generate.searches.policy", "molgraph.generate.oracles.term_scores"),
        ),
    ),
)
class SharedPrior(LanguageSearch):
    """Policies ``q_i`` that maximise ``E_q_i[r_i(x) - beta log(q_i(x) / p(x))]``, and ``p`` distilled from all of them.

    Igl et al. 2020, equation 3, with molecules for trajectories: ``r_i`` is the score by part i of the oracle, of those
    that have a weight (``qed,logp`` has two; an oracle of one has one), less what the bounds cost. For a fixed prior
    the optimum is ``q_i = p exp(r_i / beta) / Z``. ``p`` maximises ``sum_i E_q_i[log p(x)]`` by a step on each batch:
    its optimum is the mean of the ``q_i``. Alone with its policies, such a prior becomes narrower and narrower, so
    that a share of what it learns from are texts of the model that the search began with. A part that joins in a
    later stage begins with the prior as it is then. ``optimise --learned FILE`` keeps the prior, for a search by
    another oracle to begin with.

    Args:
        beta: weight of the divergence, in units of a score from 0 to 1.
        learn_prior: whether the prior is learned; else it stays the model that the search began with.
        original: share of the model that the search began with in what the prior learns from.
        estimator: a registered estimator with its settings, of each policy.
        learning_rate: step size of Adam, of the policies and of the prior.
    """

    name = "shared-prior"
    small = MappingProxyType({"learning_rate": 1e-3})

    def __init__(
        self,
        *,
        beta: NotNegative = 0.05,
        learn_prior: bool = True,
        original: Probability = 0.5,
        estimator: str = "reinforce",
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 5e-4,
    ) -> None:
        self.beta, self.learn_prior, self.original = beta, learn_prior, original
        self.estimator, self.learning_rate = estimator, learning_rate
        if make_estimator(estimator).distinct:
            words = f"{estimator} takes texts that differ, which are no draws of a policy to distil"
            raise ConflictError(words, hint="take another estimator, such as reinforce")

    def prepare(self) -> None:
        """The optimiser of the shared prior; policies are made once their parts are known."""
        super().prepare()
        self.policies: dict[str, TermPolicy] = {}
        self.writers: dict[str, list[str]] = {}

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the parts."""
        return ("score",) if self.terms is None else self.terms.labels

    def policy(self, label: str) -> TermPolicy:
        """The policy of a part, which begins as the shared prior."""
        if label not in self.policies:
            policy = TermPolicy(estimator=self.estimator, kl=self.beta, learning_rate=self.learning_rate)
            how = {"standardiser": self.standardiser, "batch": self.batch, "seed": derive(self.seed, label)}
            policy.begin(self.generator, **how)
            policy.agent.network.load_state_dict(self.agent.network.state_dict())
            policy.prior = self.agent
            self.policies[label] = policy
        return self.policies[label]

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Each policy learns the scores, by its own part, of its own texts and of those that no policy wrote."""
        score = np.asarray(score, dtype=np.float64)
        scores = score[:, None] if self.terms is None else self.terms(smiles, score)
        rows: dict[str, list[int]] = defaultdict(list)
        for row, text in enumerate(smiles):
            wrote = self.writers.get(text)
            for label in [wrote.pop(0)] if wrote else self.labels:
                rows[label].append(row)
        for i, label in enumerate(self.labels):
            self.policy(label).tell([smiles[row] for row in rows[label]], scores[rows[label], i])

    def ask(self, n: int, step: int) -> Proposals:
        """A share of each policy, which learns first; then the prior learns from what they drew."""
        texts, self.writers = list[str](), defaultdict(list)
        for i, label in enumerate(self.labels):
            share = n // len(self.labels) + (i < n % len(self.labels))
            drawn = self.policy(label).ask(share, step).smiles if share else []
            texts += drawn
            for text in drawn:
                self.writers[text].append(label)
        if self.learn_prior:
            self.distil([self.policies[label].latest for label in self.labels[:n]], step)
        return Proposals(texts, np.zeros(len(texts)))

    def distil(self, drawn: Sequence[list[list[int]]], step: int) -> None:
        """A step of the prior on ``-mean_i E_q_i[log p]``, from the codes that each policy drew."""
        groups, share = list(drawn), [(1 - self.original) / len(drawn)] * len(drawn)
        with self.agent.at_work():
            if self.original:
                groups.append(self.prior.draw(max(map(len, drawn)), derive(self.seed, "original", step)))
                share.append(self.original)
            log_p = self.agent.tokens([row for group in groups for row in group]).total
            means = torch.stack([piece.mean() for piece in log_p.split([*map(len, groups)])])
            loss = -(means * torch.tensor(share).to(means)).sum()
            self.optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.agent.network.parameters(), 10.0)
            self.optimizer.step()
        for policy in self.policies.values():
            policy.known.clear()

    def forget(self) -> None:
        """Every policy forgets the range of its scores."""
        super().forget()
        for policy in self.policies.values():
            policy.forget()

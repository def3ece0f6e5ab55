"""Policy-gradient search: train a language model by the scores of the molecules that it writes."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy, deepcopy
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Float
from torch.nn.utils.rnn import pad_sequence

from molgraph.base.contracts import Generator
from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.base.systems import SystemCard
from molgraph.chem.graph_edits import mutate
from molgraph.chem.standardise import standardise_smiles
from molgraph.generate.estimators.estimator import Episodes, Estimator, make_estimator
from molgraph.generate.network_generator import Fitted, NetworkGenerator
from molgraph.generate.policy import Policy
from molgraph.generate.searches.search import Proposals, Search
from molgraph.generate.searches.written import Unit, Written

PATIENCE = 3  # batches that hold nothing within the bounds, after which molecules near the starts are proposed too
EDITS = 4  # of a start, at most, in a molecule near it


class LanguageSearch(Search):
    """The base class of searches that train a copy of a language model; a subclass writes ``learn``.

    The generator is a language model, by default the one that ships. Each proposal is a text that the trained copy
    draws; before the next batch is drawn, ``learn`` is given the texts of the last with their rewards. A text that is
    no molecule, or has no score, has the reward 0. Starts and known molecules are learned from as texts of their own,
    where the vocabulary has their tokens. Where nothing that it writes is within the bounds, as of similarity to the
    start, molecules some edits away from the starts are scored, and learned from, beside its own.

    ``agent``: the copy. ``prior``: the model as it was. ``unit``: brings scores to 0 to 1. ``keeps_log_mu``: whether
    texts keep their log-probabilities under the agent that drew them.
    """

    batch_size = 64
    chooses = False
    default_model = "prior"
    learning_rate: float = 5e-4
    keeps_log_mu: bool = False

    def begin(self, generator: Any = None, **how: Any) -> None:
        """As ``Search.begin``; raises ``UnsupportedError`` for a generator that is no language model."""
        if not hasattr(generator, "log_prob") or not isinstance(generator, NetworkGenerator):
            words = (
                f"the search {self.name!r} trains a language model, and {getattr(generator, 'name', generator)} is none"
            )
            hint = f"name one made by train-generator -m language, or none: then {self.default_model!r} is used"
            raise UnsupportedError(words, hint=hint)
        self.prior, self.agent, self.unit = Policy(generator), Policy(generator), Unit()
        self.drawn: dict[str, list[int]] = {}
        self.told: list[Written] = []
        self.known: dict[tuple[int, ...], torch.Tensor] = {}  # text -> the prior's log-probabilities of its tokens
        self.prepare()
        super().begin(generator, **how)

    def prepare(self) -> None:
        """Make the optimiser, and the weights that are trained beside the model."""
        self.optimizer = torch.optim.Adam(self.agent.network.parameters(), self.learning_rate)

    def ask(self, n: int, step: int) -> Proposals:
        """Learn from what was told, then draw ``n`` texts."""
        with self.agent.at_work():
            if self.told:
                samples = self.rewarded(self.told)
                self.learn(self.dated(samples) if self.keeps_log_mu else samples, step)
                self.told = []
            texts = self.write(n, step)
        return Proposals(texts, np.zeros(len(texts)))

    def ask_wider(self, n: int, step: int, idle: int, outside: bool) -> Proposals:
        """As ``Search.ask_wider``; where batch after batch lies outside, molecules near the starts too."""
        asked = super().ask_wider(n, step, idle, outside)
        if idle < PATIENCE or not (outside and self.starts) or self.agent.constraint is not None:
            return asked
        rng, near = random_numbers(self.seed, "neighbours", step), list[str]()
        for _ in range(n):
            text = self.starts[rng.integers(len(self.starts))]
            for _ in range(rng.integers(1, EDITS + 1)):
                text = mutate(text, rng) or text
            near.append(text)
        texts = [*filter(None, map(str, standardise_smiles(near, self.standardiser).values)), *asked.smiles]
        return Proposals(texts, np.zeros(len(texts)))

    def rewarded(self, told: Sequence[Written]) -> list[Written]:
        """The texts with their rewards in the range of all scores so far."""
        rewards = self.unit(np.array([one.score for one in told], dtype=np.float64))
        return [one._replace(reward=reward) for one, reward in zip(told, rewards.tolist(), strict=True)]

    def dated(self, told: Sequence[Written]) -> list[Written]:
        """The texts with their log-probabilities under the agent, which has not changed since it drew them."""
        with torch.no_grad():
            log_p = self.agent.tokens([one.codes for one in told]).log_p.double().cpu().numpy()
        return [one._replace(log_mu=log_p[row, : len(one.codes) + 1]) for row, one in enumerate(told)]

    def write(self, n: int, step: int) -> list[str]:
        """``n`` texts of the agent, after the preset."""
        codes = self.agent.draw(n, derive(self.seed, "write", step))
        return self.remember(codes)

    def remember(self, codes: Sequence[list[int]]) -> list[str]:
        """The texts of codes after the preset, whose codes are kept until they are told."""
        raw = self.agent.texts(codes)
        texts = [new or old for old, new in zip(raw, standardise_smiles(raw, self.standardiser).values, strict=True)]
        self.drawn = dict(zip(map(str, texts), codes, strict=True))
        return [*map(str, texts)]

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Keep the texts that can be learned from until the next batch."""
        scores = np.asarray(score, dtype=np.float64)
        self.unit.widen(scores)
        other = [text for text in smiles if text not in self.drawn]
        encoded = dict(zip(other, self.agent.encode(other), strict=True))
        for text, value in zip(smiles, scores.tolist(), strict=True):
            codes = self.drawn.get(text) or encoded.get(text)
            if codes:
                self.told.append(Written(codes, 0.0, np.zeros(0), value))

    def notes(self, starts: Sequence[str]) -> list[str]:
        """Which starts the model cannot write."""
        strange = [text for text, codes in zip(starts, self.agent.encode(starts), strict=True) if codes is None]
        return [f"the start {text} has tokens that the model lacks: it is scored, not learned from" for text in strange]

    def forget(self) -> None:
        """Forget the range of the scores, and the texts that were not learned from; the agent stays as it is."""
        self.told, self.unit = [], Unit()

    def trained_generator(self) -> Generator:
        """The language model with the agent's weights."""
        generator: Any = copy(self.generator)
        generator.fitted = Fitted(deepcopy(self.agent.network).cpu().eval(), generator.ready().vocabulary)
        return generator

    def learn(self, told: Sequence[Written], step: int) -> None:
        """Train the agent on the texts of a batch."""
        raise NotImplementedError

    def condition(self, told: Sequence[Written]) -> Float[torch.Tensor, "n d"] | None:
        """What the agent wrote each text for, float [n, d_embedding]; None where it writes freely."""
        return None

    def episodes(self, told: Sequence[Written]) -> Episodes:
        """What estimators take, of the agent as it is."""
        codes = [one.codes for one in told]
        tokens = self.agent.tokens(codes, self.condition(told))
        prior = self.of_prior(codes)
        log_mu = tokens.log_p.detach().clone()
        for row, one in enumerate(told):
            if len(one.log_mu):
                log_mu[row, : len(one.log_mu)] = torch.from_numpy(one.log_mu).to(log_mu)
        reward = torch.tensor([one.reward for one in told], dtype=torch.float32, device=self.agent.device)
        return Episodes(tokens.log_p, log_mu, prior, tokens.mask, reward, tokens.states.detach())

    def of_prior(self, codes: Sequence[list[int]]) -> torch.Tensor:
        """float [n, t], the prior's log-probabilities of tokens, each text's computed once."""
        fresh = [row for row in dict.fromkeys(map(tuple, codes)) if row not in self.known]
        if fresh:
            with torch.no_grad():
                log_p = self.prior.tokens(fresh).log_p.cpu()
            self.known.update((row, log_p[i, : len(row) + 1].clone()) for i, row in enumerate(fresh))
        return pad_sequence([self.known[tuple(row)] for row in codes], batch_first=True).to(self.agent.device)


@register(
    "search",
    "policy",
    summary="policy gradients of a language model, with any estimator",
    paper="Williams 1992, Mach. Learn. 8:229; Jaques et al. 2019, arXiv:1907.00456",
    systems=(
        SystemCard(
            "way-off-policy-batch-rl",
            left_out="Q-learning of tokens from a fixed batch (search crr learns offline), and averages of models",
            off="policy(kl=0.0)",
            beside=("no distance from the prior",),
            command="molgraph optimise --search 'policy(kl=0.1)' --objective qed -o found.csv",
        ),
    ),
)
class PolicySearch(LanguageSearch):
    """One step of gradient descent, or the estimator's ``passes``, on each batch that the model writes.

    Args:
        estimator: a registered estimator with its settings.
        kl: weight of the distance from the prior in the reward: ``S(x) - kl (log p(x) - log p_prior(x))``, whose
            expectation is greatest at ``p_prior exp(S / kl) / Z`` (Jaques et al. 2019, section 4.2).
        learning_rate: step size of Adam.
    """

    name = "policy"
    small = MappingProxyType({"learning_rate": 1e-3})

    def __init__(
        self,
        *,
        estimator: str = "reinforce",
        kl: NotNegative = 0.0,
        learning_rate: Annotated[float, Range(0.0, 1.0, above=True)] = 5e-4,
    ) -> None:
        self.estimator, self.kl, self.learning_rate = estimator, kl, learning_rate
        self.loss: Estimator = make_estimator(estimator)

    def prepare(self) -> None:
        """The estimator's weights beside the model's."""
        self.loss = make_estimator(self.estimator)
        self.groups: list[list[list[int]]] = []
        self.text_of: dict[tuple[int, ...], str] = {}
        self.keeps_log_mu = self.loss.late
        self.loss.begin(self.agent.network.scores.in_features)
        self.loss.to(self.agent.device)
        self.optimizer = torch.optim.Adam(
            [
                {"params": [*self.agent.network.parameters()], "lr": self.learning_rate},
                {"params": [*self.loss.parameters()], "lr": self.learning_rate * self.loss.rate},
            ]
        )

    def write(self, n: int, step: int) -> list[str]:
        """``n`` texts of the agent or, where the estimator wants distinct ones, whole groups of them."""
        k = self.loss.distinct
        if not k:
            return super().write(n, step)
        groups = self.agent.draw_distinct(k, derive(self.seed, "write", step), groups=-(-n // k))
        self.groups = [item.codes for item in groups if len(item.codes) == len(groups[0].codes)]
        codes = [text for group in self.groups for text in group]
        texts = self.remember(codes)
        self.text_of = dict(zip(map(tuple, codes), texts, strict=True))
        return texts

    def whole_groups(self, told: Sequence[Written]) -> list[Written]:
        """The groups of which each text was told: two texts of one molecule have one reward, others are left out."""
        written = {tuple(one.codes): one for one in told}
        same = {row: tuple(self.drawn[text]) for row, text in self.text_of.items()}
        kept = [group for group in self.groups if all(same[tuple(row)] in written for row in group)]
        return [written[same[tuple(row)]]._replace(codes=row) for group in kept for row in group]

    def learn(self, told: Sequence[Written], step: int) -> None:
        """The estimator's passes over the batch."""
        if self.loss.distinct and not (told := self.whole_groups(told)):
            return
        with torch.no_grad():
            first = self.episodes(told)
        reward = first.reward
        if self.kl:
            reward = reward - self.kl * (first.log_mu - first.log_prior).sum(dim=1)
        for turn in range(self.loss.passes):
            now = self.episodes(told)._replace(log_mu=first.log_mu, reward=reward)
            if turn and self.loss.enough(now):
                break
            self.descend(self.loss(now))

    def descend(self, loss: torch.Tensor) -> None:
        """One step of the optimiser."""
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.agent.network.parameters(), 10.0)
        self.optimizer.step()

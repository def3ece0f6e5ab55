"""Choose which of two endpoints to predict from the other by which factorisation adapts faster to new scaffolds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.errors import EmptyError, LabelError
from molgraph.base.ranges import Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.scaffold import scaffolds
from molgraph.chem.sizes import weights_and_logp
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

FEWEST, GAMMA_RATE, STATES, DRAWS, EPISODES = 40, 0.1, 10, 20, 300  # rows; of gamma; of the controls


class Direction(NamedTuple):
    """What episodes say of A -> B against B -> A.

    Args:
        belief: ``sigmoid(gamma)`` after the last episode, the belief in A -> B.
        gains: float64 [episodes], ``log L_{A->B} - log L_{B->A}``.
    """

    belief: float
    gains: np.ndarray

    @property
    def interval(self) -> tuple[float, float]:
        """Of the mean gain, 95%, by its standard error."""
        half = 1.96 * self.gains.std(ddof=1) / math.sqrt(len(self.gains)) if len(self.gains) > 1 else math.inf
        return float(self.gains.mean() - half), float(self.gains.mean() + half)


def online_log_likelihood(joint: np.ndarray, cause: np.ndarray, effect: np.ndarray, rate: float) -> float:
    """``sum_t log p(cause_t; theta_t) + log p(effect_t | cause_t; theta_t)`` of a model that learns from each row.

    Bengio et al. 2020, section 2: both factors are tables of logits, which begin at those of the training joint and
    take a step of gradient ascent on ``log p`` of each row after it was scored.

    Args:
        joint: float [k, k], probabilities of cause and effect in training, all above 0.
        cause, effect: int [T].
        rate: of the steps.

    Example:
        >>> round(online_log_likelihood(np.full((2, 2), 0.25), np.array([0]), np.array([1]), 1.0), 4)
        -1.3863
    """
    first, then, total = np.log(joint.sum(axis=1)), np.log(joint / joint.sum(axis=1, keepdims=True)), 0.0
    for a, b in zip(cause.tolist(), effect.tolist(), strict=True):
        for logits, state in ((first, a), (then[a], b)):
            log_p = logits - np.logaddexp.reduce(logits)
            total += float(log_p[state])
            logits -= rate * np.exp(log_p)
            logits[state] += rate
    return total


def regret_slope(gamma: float, gain: float) -> float:
    """``dR / dgamma = s(gamma) - s(gamma + gain)`` of ``R = -log(s(gamma) L_{A->B} + (1 - s(gamma)) L_{B->A})``.

    Bengio et al. 2020, proposition 2.
    """
    return _sigmoid(gamma) - _sigmoid(gamma + gain)


def _sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x)) if x > -700 else 0.0


def learn_direction(episodes: Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]], rate: float) -> Direction:
    """The belief in A -> B after episodes of ``(joint [k, k] of training, a [T], b [T])``; it begins at a half."""
    gamma, gains = 0.0, list[float]()
    for joint, a, b in episodes:
        gain = online_log_likelihood(joint, a, b, rate) - online_log_likelihood(joint.T, b, a, rate)
        gains.append(gain)
        gamma -= GAMMA_RATE * regret_slope(gamma, gain)
    return Direction(_sigmoid(gamma), np.array(gains))


def simulated(
    seed: int, episodes: int, *, symmetric: bool = False
) -> Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Episodes of two variables of ten states: the cause's marginal, or the whole joint, is drawn anew in each.

    Args:
        seed: of the draws.
        episodes: how many.
        symmetric: whether the whole joint is redrawn, so that neither is the cause.
    """
    rng = generator(seed, "simulated direction")
    p, then = rng.dirichlet(np.ones(STATES)), rng.dirichlet(np.ones(STATES), STATES)
    joint = rng.dirichlet(np.ones(STATES**2)).reshape(STATES, STATES) if symmetric else p[:, None] * then
    joint = 0.999 * joint + 0.001 / STATES**2
    for _ in range(episodes):
        new = rng.dirichlet(np.ones(STATES))[:, None] * then
        if symmetric:
            new = rng.dirichlet(np.ones(STATES**2)).reshape(STATES, STATES)
        pairs = rng.choice(STATES**2, DRAWS, p=new.flatten())
        yield joint, pairs // STATES, pairs % STATES


def shifted(
    a: np.ndarray, b: np.ndarray, groups: np.ndarray, k: int, episodes: int, draws: int, seed: int
) -> Iterable[tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Episodes of the rows of one group, beside the joint of all others with one count for each cell.

    Args:
        a, b: int [n], states 0 to k - 1.
        groups: int [n].
        k: states.
        episodes: at most; groups come in turn, in an order by the seed.
        draws: rows of an episode, at most.
        seed: of the order.
    """
    rng, names = generator(seed, "shifts"), np.unique(groups)
    for turn in range(episodes):
        if turn % len(names) == 0:
            names = rng.permutation(names)
        here = groups == names[turn % len(names)]
        joint = np.bincount(a[~here] * k + b[~here], minlength=k * k).reshape(k, k) + 1.0 / k
        rows = rng.permutation(np.flatnonzero(here))[:draws]
        yield joint / joint.sum(), a[rows], b[rows]


def in_bins(y: np.ndarray, k: int) -> np.ndarray:
    """int [n]: the quantile bin of each value.

    Example:
        >>> in_bins(np.array([1.0, 5.0, 2.0, 9.0]), 2).tolist()
        [0, 1, 0, 1]
    """
    return np.searchsorted(np.unique(np.quantile(y, np.linspace(0, 1, k + 1)[1:-1])), y, side="right")


@register(
    "study",
    "direction",
    summary="which of two endpoints to predict from the other, by how fast either order adapts to new scaffolds",
    paper="Bengio et al. 2020, ICLR",
    systems=(
        SystemCard(
            "meta-transfer-causal-objective",
            left_out="continuous variables, learnt representations of causes, and more than two variables",
            off="direction(shift=random)",
            beside=("rows shifted at random",),
            command="molgraph study direction dataset:esol -o direction.csv",
        ),
    ),
)
class DirectionStudy(Study):
    """A row for each order of the first two endpoints: the belief that the second is best predicted from the first.

    Bengio et al. 2020, "A Meta-Transfer Objective for Learning to Disentangle Causal Mechanisms": ``P(A) P(B|A)`` and
    ``P(B) P(A|B)`` fit a joint alike; where a shift changes P(A) alone, the first needs to change in fewer parameters,
    and scores the rows of the shift better while it adapts. Endpoints are cut into bins of equal numbers, and a shift
    is a scaffold. What changes both endpoints with the structure makes no order causal: read the belief as "which
    conditional is the more stable one". Of one target the other endpoint is Crippen's logP.
    Controls: made variables with a cause, and a joint that changes as a whole.

    Args:
        bins: of an endpoint.
        shift: groups that episodes are rows of: ``scaffold``, or ``random`` ones as many and as large.
        episodes: of adaptation.
        draws: rows of an episode, at most.
        rate: of the steps of adaptation.

    Raises:
        LabelError: no target of whole rows.
        EmptyError: fewer than 40 rows with both, or fewer than three scaffolds of three rows.
    """

    small = MappingProxyType({"episodes": 30})

    def __init__(
        self,
        *,
        bins: Annotated[int, Range(2, 50)] = 5,
        shift: Literal["scaffold", "random"] = "scaffold",
        episodes: Count = 300,
        draws: Annotated[int, Range(2, 10_000)] = 20,
        rate: Positive = 0.5,
    ) -> None:
        self.bins, self.shift, self.episodes, self.draws, self.rate = bins, shift, episodes, draws, rate

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Cut, shift, adapt and compare."""
        table = subject.table()
        targets = table.row_targets
        if not targets or table.y is None:
            raise LabelError("the table has no target of its rows", hint="name both: -t A -t B")
        columns = [[t.name for t in table.targets].index(t.name) for t in targets[:2]]
        first, second = [*(t.name for t in targets[:2]), "logP"][:2]
        y = np.column_stack([table.y[:, columns], weights_and_logp(table.smiles)[:, 1]])[:, :2]
        rows = np.flatnonzero(np.isfinite(y).all(axis=1) & table.ok)
        if len(rows) < FEWEST:
            raise EmptyError(f"{len(rows)} rows have both values, of {FEWEST} that are needed", hint="give more rows")
        groups = self._groups([str(table.smiles[i]) for i in rows], seed)
        kept = groups >= 0
        a, b = (in_bins(y[rows, i], self.bins) for i in (0, 1))
        k = max(int(a.max()), int(b.max())) + 1
        shifts = shifted(a[kept], b[kept], groups[kept], k, self.episodes, self.draws, seed)
        direction = learn_direction(shifts, self.rate)
        (low, high), gain = direction.interval, float(direction.gains.mean())
        frame = pd.DataFrame(
            {"from": [first, second], "to": [second, first], "belief": [direction.belief, 1 - direction.belief],
             "nats_an_episode": [gain, -gain], "low": [low, -high],
             "high": [high, -low]}
        )  # fmt: skip
        way = f"{second} from {first}" if direction.belief >= 0.5 else f"{first} from {second}"
        clear = "" if low > 0 or high < 0 else "; its interval holds 0, so that neither order is the better one"
        words = (
            f"Predict {way}: the belief in that order is {max(direction.belief, 1 - direction.belief):.2f} after "
            f"{len(direction.gains)} episodes of {len(np.unique(groups[kept]))} groups ({abs(gain):.3f} nats "
            f"an episode{clear})."
        )
        cause = learn_direction(simulated(seed, EPISODES), 1.0)
        none = learn_direction(simulated(seed, EPISODES, symmetric=True), 1.0)
        z = none.gains.mean() / (none.gains.std(ddof=1) / math.sqrt(EPISODES))
        notes = [f"of {len(targets)} targets the first two"] * (len(targets) > 2)
        return Findings(
            f"Direction of {first} and {second}: {int(kept.sum()):,} rows", words, frame,
            Control("a made cause and its effect", "a belief above 0.9", f"{cause.belief:.2f}", cause.belief > 0.9),
            Control("a joint that changes as a whole", "a mean gain within 4 standard errors of 0", f"{z:+.1f}",
                    abs(z) < 4), notes=tuple(notes),
        )  # fmt: skip

    def _groups(self, texts: Sequence[str], seed: int) -> np.ndarray:
        """int [n], the scaffold of each row, -1 of those with fewer than three rows."""
        values = [str(scaffold) for scaffold in scaffolds(texts).values]
        _, codes, counts = np.unique(values, return_inverse=True, return_counts=True)
        groups = np.where(counts[codes] >= 3, codes, -1)
        if len(np.unique(groups[groups >= 0])) < 3:
            words = "fewer than three scaffolds have three rows or more"
            raise EmptyError(words, hint="give a table of several series")
        return generator(seed, "groups").permutation(groups) if self.shift == "random" else groups

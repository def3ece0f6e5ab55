"""Replace the messages of a graph network by those of other bonds of the same type, and measure what that changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from molgraph.base.seeds import generator
from molgraph.data.batch import GraphBatch
from molgraph.nn.deduplicate import AtomRounds, BondRounds
from molgraph.nn.relation import Relation

NONE = -1  # the number of no round


@runtime_checkable
class HasRounds(Protocol):
    """An encoder whose messages go round by round: those of atoms, or of directed bonds."""

    distinct: bool

    def rounds_of(self, batch: GraphBatch) -> Any:
        """``AtomRounds`` or ``BondRounds``."""


@contextmanager
def messages_replaced(encoder: HasRounds, layer: int | None, seed: int) -> Iterator[None]:
    """Within, the messages of a round are those of random bonds of the same type, of any molecule of the batch.

    Lowe et al. 2019, section 3.2, intervene on a message, ``do(m)``, and leave all else as it is: the receiving atom,
    its number of neighbours and the types of its bonds stay.

    Args:
        encoder: one of rounds.
        layer: the round, from 0; None for all rounds, -1 for none. The last of directed bonds is that to the atoms.
        seed: of the bonds.
    """
    module: Any = encoder
    plain, distinct = encoder.rounds_of, encoder.distinct

    def changed(batch: GraphBatch) -> AtomRounds | BondRounds:
        rounds = plain(batch)

        def swap(t: int, relation: Relation, kind: Tensor) -> Relation:
            if layer not in (None, t):
                return relation
            return _permuted(relation, kind, generator(seed, "messages", t))

        if isinstance(rounds, BondRounds):
            kind = rounds.bonds.code
            steps = [replace(s, relation=swap(t, s.relation, kind)) for t, s in enumerate(rounds.rounds)]
            return replace(rounds, rounds=tuple(steps), arriving=swap(len(steps), rounds.arriving, kind))
        new_steps = []
        for t, step in enumerate(rounds.rounds):
            kind = torch.repeat_interleave(torch.arange(len(step.sizes)), torch.tensor(step.sizes, dtype=torch.int64))
            new_steps.append(replace(step, relation=swap(t, step.relation, kind)))
        return replace(rounds, rounds=tuple(new_steps))

    encoder.distinct = False  # each bond has a message of its own
    module.rounds_of = changed
    try:
        yield
    finally:
        encoder.distinct = distinct
        del module.rounds_of


def _permuted(relation: Relation, kind: Tensor, rng: np.random.Generator) -> Relation:
    """The relation with sources exchanged among the pairs whose sources are of one kind."""
    source = relation.source.numpy(force=True)
    of_pair = kind.numpy(force=True)[source]
    ordered, random = np.argsort(of_pair, kind="stable"), np.lexsort((rng.random(len(source)), of_pair))
    new_source = np.empty_like(source)
    new_source[ordered] = source[random]
    return replace(relation, source=torch.as_tensor(new_source, device=relation.source.device), back=None)


def n_rounds(encoder: HasRounds, batch: GraphBatch) -> int:
    """Rounds of messages of an encoder; of directed bonds with the last, to the atoms."""
    rounds = encoder.rounds_of(batch)
    return len(rounds.rounds) + isinstance(rounds, BondRounds)


def causal_influence(p: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """float64 [n]: the mutual information of message and action in each game, in nats, messages being intervened on.

    ``sum_m p(m) KL(p(a | do(m), s) || sum_m p(m) p(a | do(m), s))``, Lowe et al. 2019, algorithm 1, with the state s
    of each game; their measure is the mean over games.

    Args:
        p: float [messages, n, actions], probabilities.
        weights: float [messages, n], of the messages; alike if not given.

    Example:
        >>> causal_influence(np.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])).round(4)
        array([0.6931, 0.    ])
    """
    weights = np.full(p.shape[:2], 1 / len(p)) if weights is None else weights
    mean = (weights[..., None] * p).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(p > 0, p * (np.log(p) - np.log(mean)), 0.0)
    return np.maximum((weights[..., None] * terms).sum(axis=(0, 2)), 0.0)


def influence_on_numbers(values: np.ndarray, deviation: float) -> np.ndarray:
    """float64 [n]: the same for answers that are numbers, as means of normal distributions of one deviation.

    ``var_m(value) / (2 deviation^2)``, the mean divergence from their mixture's normal distribution of that deviation.

    Args:
        values: float [messages, n].
        deviation: of the answers.
    """
    return np.asarray(values.var(axis=0) / (2 * deviation**2))

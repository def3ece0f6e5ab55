"""Message passing in waves, along a tree or a directed acyclic graph: ``sweep`` along the ``Waves`` of a relation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.packed import offsets_of, ranges
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Reduce


@dataclass(frozen=True)
class Wave:
    """Rows that are updated together."""

    rows: Int[Tensor, " w"]  # int64 [w], their numbers
    relation: Relation  # from the rows of the waves first to the one before, side by side, to these rows
    first: int  # the earliest wave from which a pair of this one comes
    pairs: Int[Tensor, " p"]  # int64 [p], the numbers of its pairs in the relation of all waves


@dataclass(frozen=True)
class Waves:
    """The waves of an acyclic relation, each row after all rows from which it hears."""

    waves: tuple[Wave, ...]  # in order; together they hold each row once
    place: Int[Tensor, " n"]  # int64 [n], where each row stands when the waves are put side by side


def waves_of(relation: Relation) -> Waves:
    """The waves of a relation between the rows of one set: of a tree, of all trees of a batch, of any acyclic graph.

    Children to parents give a way up, their ``transpose`` the way down. A row belongs to the wave after the last of
    those from which it hears.

    Args:
        relation: acyclic.

    Raises:
        ValueError: a relation with a cycle, or between two different sets.

    Example:
        >>> up = Relation.from_pairs(torch.tensor([1, 2, 3]), torch.tensor([0, 0, 2]), 4, 4)
        >>> [wave.rows.tolist() for wave in waves_of(up).waves]
        [[1, 3], [2], [0]]
    """
    if relation.n_source != relation.n_target:
        raise ValueError(f"waves need one set of rows, got {relation.n_source} sources, {relation.n_target} targets")
    source, target = relation.source.numpy(force=True), relation.target.numpy(force=True)
    offsets = relation.offsets.numpy(force=True)
    level = _levels(source, target, relation.n_target)
    order = np.argsort(level, kind="stable")
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    ends = offsets_of(np.bincount(level, minlength=1))
    waves = []
    for k, rows in enumerate(np.split(order, ends[1:-1])):
        pairs, spans = ranges(offsets[rows], offsets[rows + 1])
        first = int(level[source[pairs]].min()) if len(pairs) else k
        put = [torch.as_tensor(array, device=relation.source.device) for array in (rows, pairs, spans)]
        heard = torch.as_tensor(place[source[pairs]] - ends[first], device=relation.source.device)
        waves.append(Wave(put[0], Relation(heard, put[2], int(ends[k] - ends[first]), len(rows)), first, put[1]))
    return Waves(tuple(waves), torch.as_tensor(place, device=relation.source.device))


def sweep(
    rows: Float[Tensor, " n *d_x"],
    waves: Waves,
    *,
    d_state: int,
    update: Callable[[Tensor, Tensor], Tensor],
    edge_rows: Float[Tensor, " p *d_edge"] | None = None,
    message: Callable[..., Tensor] | None = None,
    d_message: int | None = None,
    reduce: Reduce = "sum",
) -> Float[Tensor, " n d_state"]:
    """Update rows wave after wave, each from the new states of the rows from which it hears.

    ``h_t = update(x_t, reduce over pairs (s, t) of message(h_s, x_t, e_st))``, as in ``propagate``, where ``h_s`` is
    the state that an earlier wave gave.

    Args:
        rows: float [n, *d_x], the inputs ``x`` of the rows.
        waves: their order.
        d_state: width of a state.
        update: ``(inputs [w, *d_x], heard [w, d_message]) -> states [w, d_state]``; rows that hear nothing get zeros.
        edge_rows: [p, *d_edge] in the order of the relation that the waves were made of, for ``message`` to read.
        message: ``(states [p, d_state], inputs [p, *d_x], edge rows) -> [p, d_message]``; the states without it.
        d_message: width of a message; ``d_state`` where it is not given.
        reduce: as in ``propagate``.

    Returns:
        float [n, d_state], in the order of ``rows``.

    Example:
        >>> up = Relation.from_pairs(torch.tensor([1, 2, 3]), torch.tensor([0, 0, 2]), 4, 4)
        >>> sweep(torch.ones(4, 1), waves_of(up), d_state=1, update=torch.add).flatten().tolist()  # sizes of subtrees
        [4.0, 1.0, 2.0, 1.0]
    """
    states: list = []
    for wave in waves.waves:
        targets = rows.index_select(0, wave.rows)
        heard = rows.new_zeros(len(targets), d_message or d_state)
        if wave.relation.n_pairs:
            heard = propagate(
                torch.cat(states[wave.first :]),
                wave.relation,
                target_rows=targets,
                edge_rows=None if edge_rows is None else edge_rows.index_select(0, wave.pairs),
                message=message,
                reduce=reduce,
            )
        states.append(update(targets, heard))
    return torch.cat(states).index_select(0, waves.place)


def _levels(source: np.ndarray, target: np.ndarray, n: int) -> np.ndarray:
    """int64 [n]: length of the longest way to each row."""
    level = np.zeros(n, np.int64)
    for _ in range(n + 1):
        before, level = level, np.zeros(n, np.int64)
        np.maximum.at(level, target, before[source] + 1)
        if (level == before).all():
            return level
    raise ValueError(
        f"row {int(level.argmax())} is on a cycle, or can be reached from one: waves need a graph without cycles"
    )

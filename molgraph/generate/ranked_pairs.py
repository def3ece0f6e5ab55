"""Train a SMILES VAE on pairs of molecules with a ranking label, such as "A is more soluble than B"."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from torch import Tensor

from molgraph.base.errors import (
    AmbiguousColumnError,
    ConflictError,
    EmptyError,
    LabelError,
    MissingColumnError,
    nearest,
)
from molgraph.data.graph_store import Level
from molgraph.data.reading.cells import is_missing
from molgraph.data.table import OK, UNREADABLE, Table, concatenate, row_name
from molgraph.generate.alphabets import Written
from molgraph.generate.vae_objective import SequenceELBO
from molgraph.train.samples import Sample, Samples

HINT = "write 1 where the first molecule ranks higher, 0 where the second does, and nothing where it is not known"


class Ranks(NamedTuple):
    """The ranks of pairs, and which pair each molecule is of.

    Args:
        pair: int64 [molecules], ascending: the row of the table of pairs.
        first_higher: float64 [pairs, n]: 1 where the first molecule ranks higher, 0 the second, NaN not known.
    """

    pair: np.ndarray
    first_higher: np.ndarray


class RankedELBO(SequenceELBO):
    """The loss of ``SequenceELBO`` over the molecules of all pairs, and the cross-entropy of the ranks of the pairs.

    Lee et al. 2020: ``-log sigmoid(s_k (z1_k - z2_k))`` where the first ranks higher by property k, else
    ``-log sigmoid(s_k (z2_k - z1_k))``, for the vectors that the decoder reads. Its share of the curves is ``ranks``.

    Args:
        how: as ``SequenceELBO`` has them.
        ranked_weight: of the cross-entropy.
    """

    def __init__(self, *how: float, ranked_weight: float) -> None:
        super().__init__(*how)
        self.ranked_weight = ranked_weight

    def costs(self, network: Any, z: Tensor, batch: Sample) -> dict[str, Tensor]:
        """The error of the properties, and the cross-entropy of the ranks."""
        begins = batch.parts[0].batch["text"].offsets
        whole = begins.diff() == 2
        first = begins[:-1][whole]
        assert batch.y is not None and batch.weights is not None
        known = (batch.weights[:, 1:] * batch.weights[:, :1])[whole]
        cost = network.ranks.cross_entropy(z[first], z[first + 1], batch.y[whole], known)
        return super().costs(network, z, batch) | {"ranks": self.ranked_weight * cost}


def check_ranked(names: Sequence[str], d_latent: int) -> None:
    """Raise ``ConflictError`` for more ranked properties than latent axes, or one that is named twice."""
    if len(names) > d_latent:
        words = f"{len(names)} ranked properties need as many latent axes, and d_latent is {d_latent}"
        raise ConflictError(words, hint=f"set d_latent to {len(names)} or more")
    if twice := [name for name in names if list(names).count(name) > 1]:
        raise ConflictError(f"the ranked property {twice[0]!r} is named twice", hint="name each once")


def fill_blanks(table: Table, ranked: Sequence[str]) -> Table:
    """The table with each row of one molecule as a pair of this molecule with itself, whose ranks are not known.

    The table layer marks such a row as missing, and no split would have it in a part.

    Args:
        table: two columns of molecules.
        ranked: names of its targets.

    Raises:
        AmbiguousColumnError: it has other columns than two of molecules. LabelError: a rank that is no number.
    """
    if [entity.kind for entity in table.entities] != ["molecule", "molecule"]:
        has = ", ".join(f"{entity.name} ({entity.kind})" for entity in table.entities)
        words = f"ranks are those of pairs in two columns of molecules, and the table has {has}"
        raise AmbiguousColumnError(words, hint="name both columns: --smiles FIRST --smiles SECOND")
    marks = tuple(f"column {name!r} " for name in ranked)  # of a cell that is no number, by which its row is marked
    odd = np.flatnonzero(table.status == UNREADABLE).tolist()
    for row in [i for i in odd if table.reason[i].startswith(marks)][:1]:
        raise LabelError(f"{row_name(row, table.ids[row])}: {table.reason[row]}", hint=HINT)
    values = [entity.values.copy() for entity in table.entities]
    blank = np.array([[is_blank(value) for value in column] for column in values], dtype=bool).reshape(2, -1)
    rows = np.flatnonzero((table.status != UNREADABLE) & (blank.sum(axis=0) == 1))
    for side, other, gone in ((0, 1, blank[0]), (1, 0, blank[1])):
        some = rows[gone[rows]]
        values[side][some] = values[other][some]
    status, reason, y = table.status.copy(), table.reason.copy(), None if table.y is None else table.y.copy()
    status[rows], reason[rows] = OK, ""
    if y is not None:
        y[rows[:, None], np.isin([target.name for target in table.row_targets], list(ranked)).nonzero()[0]] = np.nan
    entities = tuple(replace(entity, values=side) for entity, side in zip(table.entities, values, strict=True))
    return replace(table, entities=entities, status=status, reason=reason, y=y)


def is_blank(value: Any) -> bool:
    """Whether a cell of a column of molecules holds none."""
    return value is None or value != value or (isinstance(value, str) and is_missing(value))


def molecules_and_ranks(table: Table, ranked: Sequence[str]) -> tuple[Table, Ranks | None]:
    """A table of the molecules of both columns, those of a pair one after the other, and the ranks.

    A pair of a molecule with itself is one row. Where nothing is ranked the table is as it was, and ranks are None.

    Raises:
        AmbiguousColumnError: the table has other columns than two of molecules. MissingColumnError: a name that is no
        target. LabelError: a rank other than 1, 0 and blank.

    Example:
        >>> from molgraph.base.table import Entities, Target
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCC"], targets=(Target("soluble"),), y=[1, np.nan])
        >>> table = replace(table, entities=(*table.entities, Entities("b", "molecule", np.array(["CCN", None]))))
        >>> molecules, ranks = molecules_and_ranks(table, ["soluble"])
        >>> molecules.smiles.tolist(), ranks.pair.tolist(), ranks.first_higher.tolist()
        (['CCO', 'CCN', 'CCC'], [0, 0, 1], [[1.0], [nan]])
    """
    if not ranked:
        return table, None
    table = fill_blanks(table, ranked)
    first_higher = np.stack([_column(table, name) for name in ranked], axis=1)
    first, second = (replace(table, entities=(entity,), targets=(), y=None, packed={}) for entity in table.entities)
    n = len(table)
    order = np.arange(2 * n).reshape(2, n).T.ravel()
    kept = order[(order < n) | ~np.tile(first.smiles == second.smiles, 2)[order]]
    return concatenate(first, second).take(kept), Ranks(kept % n, first_higher)


def _column(table: Table, name: str) -> np.ndarray:
    """The ranks of a column."""
    known = [target.name for target in table.row_targets]
    if name not in known or table.y is None:
        raise MissingColumnError(f"the table has no column of ranks {name!r}", hint=nearest(name, known))
    values = table.y[:, known.index(name)]
    for row in np.flatnonzero(~np.isnan(values) & ~np.isin(values, (0.0, 1.0)))[:1].tolist():
        words = f"{row_name(row, table.ids[row])}: the rank {name!r} is {values[row]:g}, not 1, 0 or blank"
        raise LabelError(words, hint=HINT)
    return values


def pair_samples(samples: Samples, written: Written, ranks: Ranks | None) -> Samples:
    """Samples of molecules as samples of pairs: a graph has the one or two texts of a pair that can be learned from.

    Args:
        samples: of the molecules that have tokens.
        written: the tokens of all of them.
        ranks: those of ``molecules_and_ranks``; None leaves the samples as they are.
    """
    if ranks is None:
        return samples
    (store,), pair = samples.stores, ranks.pair[written.ok]
    begins = np.flatnonzero(np.diff(pair, prepend=-1, append=len(ranks.first_higher)))
    texts = np.array([text for text, ok in zip(written.canonical, written.ok, strict=True) if ok], dtype=object)
    y = ranks.first_higher[pair[begins[:-1]]].astype(np.float32)
    last = begins[1:] - 1
    y[texts[begins[:-1]] == texts[last]] = np.nan  # no pair, or one of a molecule with itself
    token, text = store.levels["token"], store.levels["text"]
    arrays = {**text.arrays, "length": np.diff(token.offsets)}
    if samples.y is not None and samples.weights is not None:
        arrays |= {"y": samples.y, "weight": samples.weights[:, 1:]}
    levels = {"token": replace(token, offsets=token.offsets[begins]), "text": Level(begins, arrays)}
    n = len(y)
    weights = np.hstack([np.ones((n, 1), np.float32), np.isfinite(y).astype(np.float32)])
    grouped = replace(store, levels=levels, status=store.status[:n], reason=store.reason[:n])
    return Samples((grouped,), np.arange(n)[:, None], y=np.nan_to_num(y), weights=weights)


def contents(written: Written, ranks: Ranks | None) -> list[str]:
    """The molecules that can be learned from as texts, each with its pair and the ranks of that: a checkpoint's own."""
    rows = np.flatnonzero(written.ok).tolist()
    texts = [written.canonical[row] for row in rows]
    if ranks is None:
        return texts
    pairs = ranks.pair[rows].tolist()
    return [f"{text} {pair} {ranks.first_higher[pair].tolist()}" for text, pair in zip(texts, pairs, strict=True)]


def rank_notes(samples: Samples, ranked: Sequence[str]) -> tuple[str, ...]:
    """Which latent axis ranks molecules by which property, and from how many pairs it was learned.

    Raises:
        EmptyError: no pair is ranked by a property.
    """
    notes = []
    for k, name in enumerate(ranked):
        n = 0 if samples.weights is None else int(samples.weights[:, 1 + k].sum())
        if not n:
            words = f"no pair of molecules that can be learned from is ranked by {name!r}"
            raise EmptyError(words, hint=HINT)
        notes.append(f"z{k} is the preference score of {name!r}, higher for what ranks higher; pairs: {n:,}")
    return tuple(notes)

"""Average the scores of a board over targets, for each fold and method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError
from molgraph.evaluate.benchmark.board_rows import RowsPredicted, rows_predicted

LEAST = 0.5  # share of a fold's tasks below which a method lacks the fold, in place of taking the tasks from everyone


@dataclass(frozen=True)
class FoldScores:
    """Scores by fold and method.

    Args:
        folds: a row a fold (``r0-f3``), a column a method: mean over seeds, then over the tasks counted.
        tasks: all tasks.
        counted: tasks counted in each fold.
        left_out: task -> in how many folds it was left out, and the first reason.
        why: method -> what befell it in the first fold that it lacks.
        hashes: fold -> hash of its split.
        notes: what else a reader should know.
    """

    folds: pd.DataFrame
    tasks: tuple[str, ...]
    counted: Mapping[str, int]
    left_out: Mapping[str, str]
    why: Mapping[str, str]
    hashes: Mapping[str, str]
    notes: tuple[str, ...] = ()

    def lacking(self, methods: Iterable[str]) -> dict[str, str]:
        """Why each of some methods has no rank: how many of all folds it has, and the first reason."""
        has, asked = self.folds.notna().sum(), f"{len(self.folds)} fold{'s' * (len(self.folds) != 1)}"
        return {
            name: f"{has[name]} of {asked}" + (f": {self.why[name]}" if self.why.get(name) else "") for name in methods
        }


def check_hashes(scores: pd.DataFrame) -> None:
    """Refuse rows that would stand in one table and are not of the same data and the same folds.

    Raises:
        DataError: with the fold and both hashes.
    """
    for keys, column, what in (
        (["dataset", "edition"], "data_hash", "datasets"),
        (["dataset", "edition", "split", "repeat", "fold"], "split_hash", "splits"),
    ):
        rows = scores[[*keys, column]].drop_duplicates()
        rows = rows[rows[column].fillna("").astype(str) != ""]
        twice = rows[rows.duplicated(keys, keep=False)]
        if len(twice):
            place = twice.iloc[0][keys]
            both = twice[(twice[keys] == place).all(axis=1)][column].tolist()
            words = " ".join(str(value) for value in place)
            raise DataError(
                f"rows of different {what} cannot stand in one table: {words} has {column} {' and '.join(both)}",
                hint="keep only the cells of one of them, or run the others anew in a folder of their own",
            )


def fold_scores(part: pd.DataFrame, expected: Mapping[str, str] | None = None) -> FoldScores:
    """Average one board's rows over seeds and tasks.

    Tasks are counted in a fold where every method that will be ranked has a score; a method that has none, or fewer
    than half of the fold's tasks, lacks the fold instead; so does one whose score of a task stands on fewer than 99%
    of the rows that another method predicted there. Folds with the same split hash are one fold.

    Args:
        part: rows of one dataset, edition, split and metric.
        expected: method -> what to say of it where it has no row.
    """
    said, fold_of = _fold_names(part)
    f, fold_names = pd.factorize(fold_of)
    m, methods = pd.factorize(part["method"].astype(str))
    t, tasks = pd.factorize(part["target"].astype(str))
    shape = (len(fold_names), len(methods), len(tasks))
    flat = np.ravel_multi_index((f, m, t), shape)
    value = part["value"].to_numpy(dtype=np.float64)
    good = np.isfinite(value) & (part["status"] == "ok").to_numpy()
    size = int(np.prod(shape))
    rows = np.bincount(flat, minlength=size)
    total = np.bincount(flat[good], value[good], minlength=size)
    whole = (rows > 0) & (np.bincount(flat[good], minlength=size) == rows)  # every seed has its score
    x: np.ndarray = np.where(whole, total / np.maximum(rows, 1), np.nan).reshape(shape)

    finite: np.ndarray = np.isfinite(x)
    any_method = np.asarray(finite.any(axis=1))  # [folds, tasks]
    share = finite.sum(axis=2) / np.maximum(any_method.sum(axis=1, keepdims=True), 1)
    has = np.asarray((share >= LEAST) & finite.any(axis=2))
    notes = _texts(part, "note")
    predicted = rows_predicted(part, f, t, (len(fold_names), len(tasks)), good, notes)
    has[f[predicted.short], m[predicted.short]] = False
    live = np.asarray(any_method.any(axis=1))
    ranked: np.ndarray = np.asarray(has[live].all(axis=0) & live.any())
    judges = ranked if ranked.any() else has.any(axis=0)
    common = np.asarray(finite[:, judges].all(axis=1) if judges.any() else any_method)
    with np.errstate(invalid="ignore"):
        macro: np.ndarray = np.where(common[:, None, :], x, 0.0).sum(axis=2) / common.sum(axis=1)[:, None]
    macro[~has] = np.nan

    order = np.argsort(_order(fold_names), kind="stable")
    out = pd.DataFrame(macro[order], index=pd.Index(fold_names[order], name="fold"), columns=pd.Index(methods))
    left_out, dropped = {}, live[:, None] & ~common
    for j in np.flatnonzero(dropped.any(axis=0)) if len(tasks) > 1 else ():
        reason = next((n for n in notes[(t == j) & ~good] if n), "a method has no score")
        left_out[str(tasks[j])] = f"left out in {int(dropped[:, j].sum())} of {int(live.sum())} folds: {reason}"
    rows_of = _Rows(part, methods, m, f, fold_names, tasks[t] if len(tasks) > 1 else None, notes, predicted)
    why = rows_of.why(has, live)
    for name, words in (expected or {}).items():
        if name not in out.columns:
            out[name], why[name] = np.nan, words
    return FoldScores(
        folds=out,
        tasks=tuple(map(str, tasks)),
        counted={str(fold_names[i]): int(common[i].sum()) for i in order},
        left_out=left_out,
        why=why,
        hashes={str(fold_names[i]): str(part["split_hash"].to_numpy()[np.argmax(f == i)]) for i in order},
        notes=(*said, *rows_of.dead(live), *rows_of.unpredicted(ranked)),
    )


def _fold_names(part: pd.DataFrame) -> tuple[tuple[str, ...], np.ndarray]:
    """Each row's fold; repeats that came to the same split are one fold, and a note says so."""
    named = ("r" + part["repeat"].astype(str) + "-f" + part["fold"].astype(str)).to_numpy(dtype=object)
    hashes = part["split_hash"].fillna("").astype(str).to_numpy()
    known = pd.DataFrame({"fold": named, "hash": hashes})
    known = known[known["hash"] != ""].drop_duplicates("fold")
    first = known.drop_duplicates("hash").set_index("hash")["fold"]
    if len(first) == len(known):
        return (), named
    to_one = dict(zip(known["fold"], known["hash"].map(first), strict=True))
    said = f"{len(known)} folds are {len(first)} different splits: those that are the same were averaged."
    return (said,), np.array([to_one.get(name, name) for name in named], dtype=object)


def _order(names: np.ndarray) -> np.ndarray:
    """Numbers that sort ``r10-f2`` after ``r2-f0``."""
    pairs = [name[1:].split("-f") for name in names]
    return np.array([int(repeat) * 10_000 + int(fold) for repeat, fold in pairs], dtype=np.int64)


def _texts(part: pd.DataFrame, column: str) -> np.ndarray:
    return part[column].fillna("").astype(str).to_numpy() if column in part else np.full(len(part), "")


class _Rows(NamedTuple):
    """The rows of a board's scores, and what can be said of them."""

    part: pd.DataFrame
    methods: pd.Index
    m: np.ndarray
    f: np.ndarray
    folds: np.ndarray
    task: np.ndarray | None
    notes: np.ndarray
    predicted: RowsPredicted

    def why(self, has: np.ndarray, live: np.ndarray) -> dict[str, str]:
        """What befell each method that lacks a fold, in the first such fold; where no fold is live, in any."""
        out = {}
        asked = live if live.any() else ~live
        bad = ~self.predicted.good | self.predicted.short
        for k in np.flatnonzero(~has[asked].all(axis=0)):
            lacking = np.flatnonzero(asked & ~has[:, k])
            rows = np.flatnonzero((self.m == k) & np.isin(self.f, lacking) & bad)
            out[str(self.methods[k])] = self._of(rows[0]) if len(rows) else f"not run in {self.folds[lacking[0]]}"
        return out

    def _of(self, i: int) -> str:
        """What befell the cell of a row."""
        fold = self.folds[self.f[i]]
        if self.predicted.short[i]:
            return f"predicts {self.predicted.words(i, self._task(i))} in {fold}"
        status = str(self.part["status"].iat[i])
        reason = (str(self.part["reason"].iat[i] or "") if "reason" in self.part else "") or self.notes[i]
        words = [status if status != "ok" else "", reason]
        return f"{': '.join(w for w in words if w) or 'no score'} ({fold})"

    def _task(self, i: int) -> str:
        return "" if self.task is None else str(self.task[i])

    def dead(self, live: np.ndarray) -> list[str]:
        """The folds that no method has, with the first reason; they count for nobody."""
        lost = np.flatnonzero(~live)
        if not len(lost):
            return []
        rows = np.flatnonzero((self.f == lost[0]) & ~self.predicted.good)
        named = ", ".join(str(self.folds[k]) for k in lost[:3]) + f" and {len(lost) - 3} more" * (len(lost) > 3)
        return [f"No method has a score in {named}" + (f": {self._of(rows[0])}" if len(rows) else "") + "."]

    def unpredicted(self, ranked: np.ndarray) -> list[str]:
        """What ranked methods left unpredicted, a sentence for those that left the same."""
        same: dict[str, list[str]] = {}
        for k, i in self.predicted.worst(self.m, ranked).items():
            words = f"{self.predicted.words(i, self._task(i))} in {self.folds[self.f[i]]}"
            same.setdefault(words, []).append(str(self.methods[k]))
        out = []
        for words, names in same.items():
            if len(names) == int(ranked.sum()) > 1:
                out.append(f"Every ranked method predicts {words}.")
            else:
                named = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
                out.append(f"{named} predict{'s' * (len(names) == 1)} {words}.")
        return out

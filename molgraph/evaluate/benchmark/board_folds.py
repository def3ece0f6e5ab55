"""The scores of one board come in; a macro mean for each fold and method goes out, with the tasks it stands on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError

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
    than half of the fold's tasks, lacks the fold instead. Folds with the same split hash are one fold.

    Args:
        part: rows of one dataset, edition, split and metric.
        expected: method -> what to say of it where it has no row.
    """
    names, fold_of = _fold_names(part)
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
    live = np.asarray(any_method.any(axis=1))
    ranked = has[live].all(axis=0) & live.any()
    judges = ranked if ranked.any() else has.any(axis=0)
    common = np.asarray(finite[:, judges].all(axis=1) if judges.any() else any_method)
    with np.errstate(invalid="ignore"):
        macro: np.ndarray = np.where(common[:, None, :], x, 0.0).sum(axis=2) / common.sum(axis=1)[:, None]
    macro[~has] = np.nan

    order = np.argsort(_order(fold_names), kind="stable")
    out = pd.DataFrame(macro[order], index=pd.Index(fold_names[order], name="fold"), columns=pd.Index(methods))
    notes = part["note"].fillna("").astype(str).to_numpy() if "note" in part else np.full(len(part), "")
    left_out, dropped = {}, live[:, None] & ~common
    for j in np.flatnonzero(dropped.any(axis=0)) if len(tasks) > 1 else ():
        said = next((n for n in notes[(t == j) & ~good] if n), "a method has no score")
        left_out[str(tasks[j])] = f"left out in {int(dropped[:, j].sum())} of {int(live.sum())} folds: {said}"
    why = _why(part, methods, m, f, fold_names, has, live, good, notes)
    for name, said in (expected or {}).items():
        if name not in out.columns:
            out[name], why[name] = np.nan, said
    return FoldScores(
        folds=out,
        tasks=tuple(map(str, tasks)),
        counted={str(fold_names[i]): int(common[i].sum()) for i in order},
        left_out=left_out,
        why=why,
        hashes={str(fold_names[i]): str(part["split_hash"].to_numpy()[np.argmax(f == i)]) for i in order},
        notes=names,
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
    said = f"{len(known)} folds are {len(first)} different splits: those that are the same were averaged"
    return (said,), np.array([to_one.get(name, name) for name in named], dtype=object)


def _order(names: np.ndarray) -> np.ndarray:
    """Numbers that sort ``r10-f2`` after ``r2-f0``."""
    pairs = [name[1:].split("-f") for name in names]
    return np.array([int(repeat) * 10_000 + int(fold) for repeat, fold in pairs], dtype=np.int64)


def _why(
    part: pd.DataFrame,
    methods: pd.Index,
    m: np.ndarray,
    f: np.ndarray,
    fold_names: np.ndarray,
    has: np.ndarray,
    live: np.ndarray,
    good: np.ndarray,
    notes: np.ndarray,
) -> dict[str, str]:
    """What befell each method that lacks a fold, in the first such fold."""
    out = {}
    status = part["status"].astype(str).to_numpy()
    reason = part["reason"].fillna("").astype(str).to_numpy() if "reason" in part else np.full(len(part), "")
    for k in np.flatnonzero(~has[live].all(axis=0)):
        lacking = np.flatnonzero(live & ~has[:, k])
        rows = np.flatnonzero((m == k) & np.isin(f, lacking) & ~good)
        if not len(rows):
            out[str(methods[k])] = f"not run in {fold_names[lacking[0]]}"
            continue
        i = rows[0]
        words = [status[i] if status[i] != "ok" else "", reason[i] or notes[i]]
        out[str(methods[k])] = f"{': '.join(w for w in words if w) or 'no score'} ({fold_names[f[i]]})"
    return out

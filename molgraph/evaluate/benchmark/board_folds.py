"""Average the scores of a board over targets, for each fold and method."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from molgraph.base.errors import MismatchError

LEAST_TASKS = 0.5  # share of a fold's tasks below which a method lacks the fold, in place of taking them from everyone
LEAST_ROWS = 0.99  # share of another method's rows below which, with two rows fewer at least, a method lacks the fold


@dataclass(frozen=True)
class FoldScores:
    """Scores by fold and method."""

    folds: pd.DataFrame  # a row a fold (``r0-f3``), a column a method: mean over seeds, then over the tasks counted
    tasks: tuple[str, ...]  # all tasks
    counted: Mapping[str, int]  # tasks counted in each fold
    left_out: Mapping[str, str]  # task -> in how many folds it was left out, and the first reason
    why: Mapping[str, str]  # method -> why it lacks the first fold that it lacks
    notes: tuple[str, ...] = ()  # what else a reader should know


def check_hashes(scores: pd.DataFrame) -> None:
    """Refuse rows that would stand in one table and are not of the same data and the same folds."""
    for keys, column, what in (
        (["dataset", "edition"], "data_hash", "datasets"),
        (["dataset", "edition", "split", "repeat", "fold"], "split_hash", "splits"),
    ):
        rows = scores[[*keys, column]].drop_duplicates()
        rows = rows[rows[column].fillna("").astype(str) != ""]
        for place, both in rows[rows.duplicated(keys, keep=False)].groupby(keys, sort=False)[column]:
            words = " ".join(map(str, place))
            raise MismatchError(
                f"rows of different {what} cannot stand in one table: {words} has {column} {' and '.join(both)}",
                hint="keep only the cells of one of them, or run the others anew in a folder of their own",
            )


def fold_scores(part: pd.DataFrame, expected: Collection[str]) -> FoldScores:
    """Average one board's rows over seeds and tasks.

    Tasks are counted in a fold where every method that will be ranked has a score; a method that has none, or fewer
    than half of the fold's tasks, lacks the fold instead; so does one whose score of a task stands on fewer than 99%
    of the rows that another method predicted there. Folds with the same split hash are one fold. A method that is
    ``expected`` and has no row was not run.
    """
    rows, notes = _rows(part)
    tasks, methods = rows["target"].unique(), rows["method"].unique()
    keys = rows.groupby(["fold", "target", "method"], observed=True)
    x = keys["value"].mean().where(keys["good"].all()).unstack("method")[methods]
    there = x.notna()
    any_method = there.any(axis=1)
    live = any_method.groupby("fold", observed=True).any()
    has = there[any_method].groupby("fold", observed=True).mean().reindex(live.index, fill_value=0.0) >= LEAST_TASKS
    for fold, method in rows.loc[rows["short"], ["fold", "method"]].itertuples(index=False):
        has.loc[fold, method] = False
    ranked = has[live].all() & live.any()
    judges = ranked if ranked.any() else has.any()
    common = there.loc[:, judges].all(axis=1) if judges.any() else any_method
    means = x[common].groupby("fold", observed=True).mean()
    means = means.where(there[common].groupby("fold", observed=True).all())
    folds = means.reindex(live.index).where(has).rename_axis(columns=None)
    bad = rows[~rows["good"] | rows["short"]]
    reasons = {}
    asked = live if live.any() else ~live
    for method in has.columns[~has[asked].all()]:
        lacking = has.index[asked & ~has[method]]
        failures = bad[(bad["method"] == method) & bad["fold"].isin(lacking)]
        reasons[method] = _reason(failures.iloc[0]) if len(failures) else f"not run in {lacking[0]}"
    for method in [name for name in expected if name not in folds]:
        folds[method], reasons[method] = np.nan, "not run"
    left_out = {}
    for task in tasks if len(tasks) > 1 else ():
        lost = live & ~common.xs(task, level="target").reindex(live.index, fill_value=True)
        if lost.any():
            messages = bad.loc[(bad["target"] == task) & (bad["note"] != ""), "note"]
            reason = messages.iloc[0] if len(messages) else "a method has no score"
            left_out[task] = f"left out in {lost.sum()} of {live.sum()} folds: {reason}"
    dead = list(live.index[~live])
    if dead:
        named = ", ".join(dead[:3]) + f" and {len(dead) - 3} more" * (len(dead) > 3)
        notes.append(f"No method has a score in {named}: {_reason(bad[bad['fold'] == dead[0]].iloc[0])}.")
    notes += _unpredicted(rows[rows["good"] & rows["method"].map(ranked)], int(ranked.sum()))
    counted = common.groupby("fold", observed=True).sum()
    return FoldScores(folds, tuple(tasks), counted.to_dict(), left_out, reasons, tuple(notes))


def _rows(part: pd.DataFrame) -> tuple[pd.DataFrame, list[str]]:
    """A board's rows with the label of their fold, and whether they have a score and enough predictions."""
    texts = ("method", "target", "split_hash", "status", "reason", "note")
    rows, notes = part.assign(**{name: part[name].fillna("").astype(str) for name in texts}), []
    rows["fold"] = "r" + part["repeat"].astype(str) + "-f" + part["fold"].astype(str)
    order = rows.assign(f=part["fold"].astype(int)).sort_values(["repeat", "f"], kind="stable")["fold"].unique()
    known = rows[rows["split_hash"] != ""].drop_duplicates("fold").set_index("fold")["split_hash"]
    if (many := known.nunique()) < len(known):
        notes = [f"{len(known)} folds are {many} different splits: those that are the same were averaged."]
        first = known.reset_index().groupby("split_hash")["fold"].first()
        rows["fold"] = rows["fold"].map(known.map(first)).fillna(rows["fold"])
    rows["fold"] = pd.Categorical(rows["fold"], order, ordered=True)
    rows["good"] = np.isfinite(rows["value"].astype(np.float64)) & (rows["status"] == "ok")
    rows["n"] = rows["n"].fillna(0).astype(int)
    most = rows["n"].where(rows["good"], 0).groupby([rows["fold"], rows["target"]], observed=True).transform("max")
    rows["measured"] = np.maximum(rows["measured"].fillna(0) if "measured" in rows else 0, most).astype(int)
    rows["short"] = rows["good"] & (rows["n"] < np.minimum(LEAST_ROWS * most, most - 1))
    few, task = rows[rows["n"] < rows["measured"]], " of {}" if rows["target"].nunique() > 1 else ""
    remarks = (f"{r.n:,} of {r.measured:,} measured rows{task.format(r.target)} in {r.fold}" for r in few.itertuples())
    rows["said"] = pd.Series(remarks, few.index, dtype=object).reindex(rows.index, fill_value="")
    return rows, notes


def _reason(row: pd.Series) -> str:
    """Why a cell's row counts for nothing."""
    if row["short"]:
        return f"predicts {row['said']}"
    words = [row["status"] if row["status"] != "ok" else "", row["reason"] or row["note"]]
    return f"{': '.join(filter(None, words)) or 'no score'} ({row['fold']})"


def _unpredicted(rows: pd.DataFrame, ranked: int) -> list[str]:
    """How many rows ranked methods left unpredicted where they left most, a sentence for those that left the same."""
    lacking = rows[rows["n"] < rows["measured"]]
    worst = lacking.assign(share=lacking["n"] / lacking["measured"]).sort_values("share", kind="stable")
    remarks = worst.drop_duplicates("method").set_index("method")["said"].reindex(rows["method"].unique()).dropna()
    out = []
    for words, names in remarks.groupby(remarks, sort=False).groups.items():
        if len(names) == ranked > 1:
            out.append(f"Every ranked method predicts {words}.")
        else:
            named = " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
            out.append(f"{named} {'predicts' if len(names) == 1 else 'predict'} {words}.")
    return out

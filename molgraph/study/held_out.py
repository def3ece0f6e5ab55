"""Predict the rows of a table by models that did not learn from them: a file, or a method refitted fold by fold."""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import EmptyError, LabelError
from molgraph.base.seeds import derive, generator
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, has_value
from molgraph.study.labelled_rows import labelled_rows
from molgraph.study.study import Subject
from molgraph.study.subject_model import PRESET, fresh, is_name
from molgraph.train.class_codes import coded
from molgraph.train.training_molecules import molecule_hashes

FEWEST = 40  # rows


class HeldOut(NamedTuple):
    """Rows with labels and predictions of models that did not learn from them.

    Args:
        table: the n rows.
        y: float64 [n], values, or numbers of classes.
        p: float64 [n], values or probabilities of class 1; [n, classes] of a multiclass target.
        target: the one that is predicted.
        notes: what was left out.
    """

    table: Table
    y: np.ndarray
    p: np.ndarray
    target: Target
    notes: tuple[str, ...]


def held_out(
    subject: Subject, *, folds: int = 5, rows: int = 2000, epochs: int = 20, seed: int = 0, seconds: float = 60.0
) -> HeldOut:
    """The rows of the data that have a label of the first target, predicted.

    A name is fitted to all folds but one, which it predicts, in turn. A file predicts the molecules that it did not
    learn from.

    Args:
        subject: data and a model.
        folds: of a name, divided at random.
        rows: that are used, at most, drawn at random.
        epochs: of a network, at most.
        seed: of the draws and of the fits.
        seconds: of CPU time; folds that do not fit are left out, and their rows.

    Raises:
        LabelError: no target of rows that the model predicts, or fewer than 40 labelled rows, or labels all equal.
        EmptyError: a file that learnt from nearly all the rows.
    """
    model = None if is_name(subject.model) else subject.fitted()
    table = (
        subject.table() if model is None else model.read(subject.data, **{"targets": model.targets, **subject.columns})
    )
    targets = [t for t in table.row_targets if model is None or t.name in {output.name for output in model.targets}]
    if not targets or table.y is None:
        raise LabelError("the table has no target of its rows that is predicted", hint="name its column: -t COLUMN")
    target, notes = targets[0], [f"of {len(targets)} targets the first, {targets[0].name}"] * (len(targets) > 1)
    table = table.with_targets([target.name])
    table, drawn = labelled_rows(table, rows, FEWEST, seed)
    notes += drawn
    if model is not None:
        output = next(t for t in model.targets if t.name == target.name)
        table = coded(table, (output,))
        if model.trained_on is None:
            notes.append("the file does not tell which molecules it learnt from: all rows count as new")
        else:
            seen = np.isin(molecule_hashes(standardise(table, model.standardiser)), model.trained_on)
            notes += [f"{seen.sum():,} rows that the model learnt from are left out"] * bool(seen.any())
            table = table.take(np.flatnonzero(~seen))
        if len(table) < FEWEST:
            words = f"the model did not learn from {len(table)} rows of the table, of {FEWEST} that are needed"
            raise EmptyError(words, hint="name a table of new molecules, or a model's name, which is fitted here")
        p, target = columns_of(model.predict_table(table), output), output
    else:
        table = standardise(table, PRESET)
        table = table.take(np.flatnonzero(table.ok))
        p, done = _fold_by_fold(subject, table, target, min(folds, len(table) // 10), epochs, seed, seconds)
        notes += [f"{done} of {folds} folds, for want of time"] * (done < folds)
    known = np.flatnonzero(has_value(p))
    table, p = table.take(known), p[known]
    if len(table) < FEWEST:
        raise EmptyError(f"{len(table)} rows have a prediction, of {FEWEST} that are needed", hint="give more rows")
    return HeldOut(table, np.asarray(table.y)[:, 0].astype(np.float64), p, target, tuple(notes))


def _fold_by_fold(
    subject: Subject, table: Table, target: Target, folds: int, epochs: int, seed: int, seconds: float
) -> tuple[np.ndarray, int]:
    """Predictions, NaN in folds that were not reached, and how many were."""
    parts, end = np.array_split(generator(seed, "folds").permutation(len(table)), folds), time.process_time() + seconds
    p, done, longest = np.full((len(table), len(target.columns)), np.nan), 0, 0.0
    for part in parts:
        started = time.process_time()
        if done and started + longest > end:
            break
        method = fresh(subject, derive(seed, "fold", done), epochs)
        method.fit(table.take(np.setdiff1d(np.arange(len(table)), part)))
        values = columns_of(method.predict(table.take(part)), target)
        p[part] = values.reshape(len(part), -1)
        done, longest = done + 1, max(longest, time.process_time() - started)
    return (p if target.kind == "multiclass" else p[:, 0]), done

"""Get the model that a study is about: a file as it is, or a method by its name, fitted to a part of the data."""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.contracts import Method, Target
from molgraph.base.errors import EmptyError, LabelError
from molgraph.base.seeds import derive, generator
from molgraph.data.levels import labelled
from molgraph.data.splits import split_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.study.study import Subject
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.training_molecules import molecule_hashes

SHARES, PRESET = (0.7, 0.1, 0.2), "standard"


class Judged(NamedTuple):
    """A fitted model, and the rows that it is judged on.

    Args:
        model: fitted.
        train: rows that it learnt from, as far as they are known; standardised as the model does it.
        test: rows that it did not learn from, as they were read.
        target: the one that is judged.
        notes: what was left out.
    """

    model: Model
    train: Table
    test: Table
    target: Target
    notes: tuple[str, ...]


def is_name(model: str | Path | Model | None) -> bool:
    """Whether a model is named, of which there is a fresh one, and no file.

    Example:
        >>> is_name("gin(depth=2)"), is_name("assay.mgm")
        (True, False)
    """
    return isinstance(model, str) and not model.endswith(".mgm") and not Path(model).is_file()


def fresh(subject: Subject, seed: int, epochs: int = 0, **params: Any) -> Method:
    """The method that the subject names, not fitted.

    Args:
        subject: its model is a name.
        seed: of the fit, where the method has one.
        epochs: of a network, at most; its own if 0.
        params: laid over those of the name.
    """
    method = subject.make(**params)
    if "seed" in method.param_names():
        method.set_params(seed=seed % 2**31)
    for part in method.innermost:
        if epochs and isinstance(part, GraphMethod):
            part.set_params(epochs=min(epochs, part.epochs or epochs))
    return method


def judged(subject: Subject, *, split: str = "", rows: int = 2000, epochs: int = 20, seed: int = 0) -> Judged:
    """The model of a study with the rows that it learnt from and those that it did not.

    A name is fitted to 70% of the rows, 10% choose its epoch. Of a file, the rows that it knows by their hashes count
    as those that it learnt from.

    Args:
        subject: data and a model.
        split: how to divide the rows of a name; the table's own split column if empty, or at random where it has none.
        rows: rows that are used, at most, drawn at random.
        epochs: passes of a network over its rows, at most.
        seed: of the draws and the fit.

    Raises:
        LabelError: no target of whole rows, or none that the file predicts.
        EmptyError: fewer than ten rows, or none that the file did not learn from.
    """
    model = None if is_name(subject.model) else subject.fitted()
    if model is None:
        table = subject.table()
    else:
        model.check_predicts()
        table = model.read(subject.data, **{"targets": model.targets, **subject.columns})
    named = {t.name for t in model.targets} if model is not None else {t.name for t in table.row_targets}
    known = [t for t in table.row_targets if t.name in named]
    if not known:
        words = "the table has no target of whole rows" + (f" among {sorted(named)}" if model is not None else "")
        raise LabelError(words, hint="name its column: -t COLUMN")
    notes = [f"of {len(known)} targets the first, {known[0].name}"] * (len(known) > 1)
    table = table.with_targets([known[0].name])
    usable = np.flatnonzero(labelled(table) & table.ok)
    if len(usable) > rows:
        notes.append(f"{rows:,} of {len(usable):,} rows, drawn at random")
        usable = np.sort(generator(seed, "rows").permutation(usable)[:rows])
    if len(usable) < 10:
        words = f"{len(usable)} rows have a molecule and a value of {known[0].name}"
        raise EmptyError(words, hint="a study of a model needs ten or more")
    table = table.take(usable)
    if model is not None:
        clean = standardise(table, model.standardiser)
        seen = np.zeros(len(table), dtype=bool)
        if model.trained_on is not None:
            seen = np.isin(molecule_hashes(clean), model.trained_on)
        else:
            notes.append("the file does not tell which molecules it learnt from: all rows count as new ones")
        if seen.all():
            raise EmptyError("the model learnt from every row of the table", hint="name a table with new rows")
        return Judged(model, clean.take(seen), table.take(~seen), known[0], tuple(notes))
    splitter = split or ("random" if table.split is None else "column")
    parts = split_table(table, splitter, fractions=SHARES, seed=seed, quiet=True)
    train, valid = (standardise(table.take(part), PRESET) for part in (parts.train, parts.valid))
    method = fresh(subject, derive(seed, "fit"), epochs)
    method.fit(train, valid if len(valid) else None)
    fitted = Model(method, targets=train.targets, standardiser=PRESET, feature_names=table.feature_names)
    return Judged(fitted, train, table.take(parts.test), known[0], tuple(notes))

"""Train one network with several settings on the same rows, and compare its training, validation and test errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError, MolgraphError, UnsupportedError, UsageError
from molgraph.base.seeds import derive
from molgraph.data.splits import split_table
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of
from molgraph.study.labelled_rows import first_target
from molgraph.study.study import Subject
from molgraph.study.subject_model import SHARES, fresh, is_name
from molgraph.train.method import GraphMethod


class Divided(NamedTuple):
    """Rows to learn from, to choose settings by and to test on, drawn at random, with the labels' variance."""

    train: Table
    valid: Table
    test: Table
    target: Target
    variance: float
    notes: tuple[str, ...]

    def error(self, method: GraphMethod, table: Table) -> float:
        """The squared error of values or probabilities, divided by the training labels' variance."""
        p = columns_of(method.predict(table), self.target)
        return float(np.nanmean((p - np.asarray(table.y)[:, 0]) ** 2)) / self.variance


def random_parts(subject: Subject, rows: int, fewest: int, seed: int) -> Divided:
    """The rows of the first target, 70% to learn from, 10% to choose by, 20% to test on.

    Raises:
        LabelError: no target, or too few rows.
        UnsupportedError: several classes, or a model that is not the name of a graph network.
    """
    if not is_name(subject.model) or not isinstance(fresh(subject, 0), GraphMethod):
        words = f"{subject.model} is no graph network that could be trained anew"
        raise UnsupportedError(words, hint="name one, such as -m dmpnn")
    table, target, notes = first_target(subject.table(), rows, fewest, seed)
    if target.kind not in ("regression", "binary"):
        raise UnsupportedError("the target has several classes", hint="name one of numbers or two classes: -t")
    split = split_table(table, "random", fractions=SHARES, seed=derive(seed, "split"), quiet=True)
    train, valid, test = (table.take(part) for part in (split.train, split.valid, split.test))
    return Divided(train, valid, test, target, float(np.asarray(train.y)[:, 0].var()) or 1.0, tuple(notes))


def fitted_with(subject: Subject, parts: Divided, seed: int, **params: Any) -> GraphMethod | None:
    """The named network after a training with these settings and no early stopping; None where its loss is no number.

    It keeps the weights of the epoch of the lowest validation loss.
    """
    method = fresh(subject, seed)
    assert isinstance(method, GraphMethod)
    method.set_params(**{"min_steps": 0, "patience": None, "warmup_epochs": 0.0, **params})
    try:
        return method.fit(parts.train, parts.valid)
    except (DataError, UsageError):
        raise
    except MolgraphError:  # the loss is no number any more
        return None

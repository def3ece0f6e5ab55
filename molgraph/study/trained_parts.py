"""Divide the rows of a study for one training, make the network that it names, and measure the error on test rows."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.parts import make_part, read_part
from molgraph.base.registry import get, names
from molgraph.base.seeds import generator
from molgraph.data.splits import split_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric, has_value
from molgraph.study.labelled_rows import first_target
from molgraph.study.study import Subject
from molgraph.study.subject_model import PRESET, SHARES, fresh, is_name
from molgraph.train.method import GraphMethod

FEWEST = 40  # rows


class Divided(NamedTuple):
    """Rows to learn from, for the choice of the epoch and to test on.

    Args:
        train, valid, test: standardised rows.
        target: that is predicted; None of a language model.
        notes: what was left out.
    """

    train: Table
    valid: Table
    test: Table
    target: Target | None
    notes: tuple[str, ...]

    @property
    def metric(self) -> str:
        """The name of the error."""
        if self.target is None:
            return "nats a molecule"
        metric = default_metric(self.target.kind)
        return f"1-{metric.name}" if metric.higher_is_better else metric.name


def is_language(name: Any) -> bool:
    """Whether a model's name is that of a generator that is trained by gradients and has log-probabilities of texts.

    Example:
        >>> is_language("language(d_hidden=16)"), is_language("gin"), is_language("ngram")
        (True, False, False)
    """
    if not is_name(name) or read_part(name).name not in names("generator"):
        return False
    return all(hasattr(get("generator", read_part(name).name), each) for each in ("log_prob", "extra_callbacks"))


def divided(subject: Subject, *, rows: int, seed: int) -> Divided:
    """70%, 10% and 20% of the labelled rows at random; of a language model, of the molecules.

    Raises:
        LabelError: no target, or fewer than 40 labelled rows.
        EmptyError: fewer than 40 molecules.
    """
    if is_language(subject.model):
        table, target, notes = standardise(subject.table(), PRESET), None, list[str]()
        usable = np.flatnonzero(table.ok)
        if len(usable) < FEWEST:
            raise EmptyError(f"{len(usable)} molecules can be read", hint=f"give {FEWEST} or more")
        notes += [f"{rows:,} of {len(usable):,} molecules, drawn at random"] * (len(usable) > rows)
        table = table.take(np.sort(generator(seed, "rows").permutation(usable)[:rows]))
    else:
        table, target, notes = first_target(subject.table(), rows, FEWEST, seed)
    split = split_table(table, "random", fractions=SHARES, seed=seed, quiet=True)
    train, valid, test = (table.take(each) for each in (split.train, split.valid, split.test))
    return Divided(train, valid, test, target, tuple(notes))


def make_network(subject: Subject, seed: int, epochs: int) -> Any:
    """A graph method or language model of the subject's name, or one that starts from the file of an encoder.

    Args:
        subject: with a model.
        seed: of the weights, the order of the rows and dropout.
        epochs: of training.

    Raises:
        UnsupportedError: a model that is no such network.
    """
    if is_language(subject.model):
        made: Any = make_part("generator", str(subject.model), seed=seed % 2**31)
    elif is_name(subject.model):
        made = fresh(subject, seed)
    else:
        theirs = subject.fitted().method
        if isinstance(theirs, GraphMethod) and not isinstance(subject.model, str):
            raise UnsupportedError("this study trains from a model's file", hint="save the model, and name the file")
        made = theirs
        if isinstance(theirs, GraphMethod):
            made = GraphMethod(theirs.encoder, init=str(subject.model), threads=1, seed=seed % 2**31)
    if not isinstance(made, GraphMethod) and not is_language(subject.model):
        words = f"{subject.model} is no graph network or language model that could be trained"
        raise UnsupportedError(words, hint="name one, such as -m gin or -m language, or the file of an encoder")
    made.set_params(epochs=epochs, min_steps=0, patience=None)
    return made


def error_on(method: Any, test: Table, target: Target | None) -> float:
    """The target's main metric of a fitted method on some rows, or 1 minus it where more of it is better.

    Of a language model: nats that it needs for a molecule, ``-mean log p(x)``. Infinity where it is no number.
    """
    if target is None:
        values = method.log_prob([str(text) for text in test.smiles])
        value = -float(np.nanmean(values)) if np.isfinite(values).any() else math.inf
        return value if math.isfinite(value) else math.inf
    p = columns_of(method.predict(test), target)
    metric, known = default_metric(target.kind), has_value(p)
    value = evaluate_metric(metric, np.asarray(test.y)[known, 0], p[known])[0]
    value = 1 - value if metric.higher_is_better else value
    return value if math.isfinite(value) else math.inf

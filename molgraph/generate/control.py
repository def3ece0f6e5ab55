"""Train or load a second property model on other molecules, to check the scores of an optimisation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Method
from molgraph.base.errors import DataError, UnsupportedError
from molgraph.base.registry import get
from molgraph.base.seeds import generator as random_numbers
from molgraph.data.levels import labelled
from molgraph.data.read import read_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.generate.guard import Guard, watch
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.model import ModelOracle
from molgraph.train.model import Model
from molgraph.train.training_molecules import molecule_hashes

FEWEST = 20  # rows from which a control may learn
SHARED = 0.1  # of its molecules, which a control may have in common with the oracle's model


@dataclass(frozen=True)
class Control:
    """A control model, and whether it is independent of the oracle.

    Args:
        oracle: the model.
        note: from which molecules it learnt.
        independent: whether it is known to have learnt from others than the oracle's models, but for a tenth.
    """

    oracle: ModelOracle
    note: str
    independent: bool


def make_control(control: Any, oracle: Combined, seed: int = 0, method: str = "random_forest") -> Control:
    """A model or its file as it is; of a table, a method fitted to the rows that the oracle's models did not learn.

    Where a model does not know what it learnt from, the method learns from a random half of the table.

    Args:
        control: a model, a ``.mgm`` file with or without ``#TARGET``, or a table with the target of the oracle's model.
        oracle: whose property models must not have learnt from the same molecules.
        seed: of the fit and of the half.
        method: a registered one, fitted to a table.

    Raises:
        UsageError: a table for an oracle without a property model. DataError: too few rows are left.
    """
    asked, learnt, whole = _learnt(oracle)
    if isinstance(control, Model) or str(control).partition("#")[0].endswith(".mgm"):
        second = ModelOracle(control if isinstance(control, Model) else str(control))
        hashes = second.model.trained_on
        if not whole or hashes is None:
            which = "the control" if hashes is None else "the oracle's model"
            words = f"{which} does not know what it learnt from, so nobody can tell whether the control is independent"
            return Control(second, words, not asked)
        both = int(np.isin(hashes, learnt).sum())
        words = f"{both:,} of the {len(hashes):,} molecules that the control learnt from are the oracle's too"
        if both > SHARED * len(hashes):
            words += ": it may share the oracle's errors"
        return Control(second, words if asked else "", both <= SHARED * len(hashes))
    table, words = rows_for_control(control, oracle, seed)
    learner: Method = get("method", method)()
    learner.set_params(**({"seed": seed} if "seed" in learner.param_names() else {}))
    fitted = learner.fit(standardise(table, "standard"))
    return Control(ModelOracle(Model(fitted, targets=table.row_targets[:1])), words, whole)


def rows_for_control(control: Any, oracle: Combined, seed: int = 0) -> tuple[Table, str]:
    """The labelled rows of a table from which a control may learn, and a sentence about them.

    Raises:
        UsageError: an oracle without a property model, or a table without a target. DataError: fewer than 20 rows.
    """
    asked, learnt, whole = _learnt(oracle)
    if not asked:
        raise UnsupportedError(
            f"the oracle {oracle.words} asks no property model, whose errors a control trained on a table shows",
            hint="leave the control out: what is computed exactly needs no second opinion",
        )
    table = control if isinstance(control, Table) else read_table(control, targets=[asked[0].target])
    if not table.row_targets:
        raise UnsupportedError("the control's table has no target", hint="name a table with the values, or a .mgm file")
    rows = np.flatnonzero(labelled(table) & table.ok)
    if whole:
        left = rows[~np.isin(molecule_hashes(table.take(rows)), learnt)]
        words = f"the control learnt from {len(left):,} molecules of its table"
        if len(left) < len(rows):
            words += f"; {len(rows) - len(left):,} that the oracle's model learnt from were left out"
    else:
        left = np.sort(random_numbers(seed, "control").permutation(rows)[: len(rows) // 2])
        words = "the oracle's model does not know what it learnt from, and the control may have learnt from the same"
        words += f" molecules: {len(left):,} of its table, at random"
    if len(left) < FEWEST:
        raise DataError(
            f"a control can learn from {len(left):,} of the {len(rows):,} molecules with a value in its table"
            + (": the oracle's model learnt from the others" if whole else ""),
            hint=f"give a table with {FEWEST} others or more, or train the oracle's model on a part of this one",
        )
    return table.take(left), words


def _learnt(oracle: Combined) -> tuple[list[ModelOracle], np.ndarray, bool]:
    """The property models of an oracle, hashes of what they learnt from, and whether all of them know."""
    asked = [term.oracle for term in oracle.terms if isinstance(term.oracle, ModelOracle)]
    known = [scorer.model.trained_on for scorer in asked if scorer.model.trained_on is not None]
    return asked, np.unique(np.concatenate([*known, np.zeros(0, dtype=np.uint64)])), len(known) == len(asked)


@dataclass(frozen=True)
class Judged:
    """A control's opinion of the molecules that a search scored.

    Args:
        scores: float64 [n], by molecule.
        guard: how they rise with the oracle; None where there is nothing to compare.
        notes: what a person should know beside it.
    """

    scores: np.ndarray
    guard: Guard | None = None
    notes: tuple[str, ...] = ()


def judge(control: Control, frame: pd.DataFrame, oracle: Combined) -> Judged:
    """Compare the control's scores with those of the model that it controls.

    A model with a weight is compared by its own column over the calls, whatever else the oracle has; of one that
    only has bounds, the molecules within them are counted by both. Without a model the oracle itself is compared.

    Args:
        control: of ``make_control``.
        frame: of ``rows_of``.
        oracle: that was searched for.
    """
    scores = control.oracle.score(frame["smiles"].tolist()).value
    models = [
        (term.oracle.target == control.oracle.target, bool(term.weight), term, label)
        for term, label in zip(oracle.terms, oracle.labels, strict=True)
        if isinstance(term.oracle, ModelOracle)
    ]
    *_, term, label = max(models, key=lambda each: each[:2], default=(None, "objective"))
    values = frame[label if label in frame else "objective"].to_numpy(np.float64)
    if term is not None and not term.weight:
        kept = frame["within_bounds"].to_numpy(bool) & np.isfinite(scores)
        both = int((kept & ~term.outside(np.nan_to_num(scores))[0]).sum())
        words = f"of the {int(kept.sum()):,} molecules within the bounds, {both:,} are within those of {label} by the"
        return Judged(scores, notes=(f"{words} control too",))
    sign = 1.0 if term is None else float(np.sign(term.weight))
    second = scores if term is None else term.value(scores)
    values = values if term is None else term.value(values)
    order = np.argsort(frame["call"].to_numpy(), kind="stable")
    return Judged(scores, watch(sign * values[order], sign * second[order], independent=control.independent))

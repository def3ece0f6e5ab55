"""Choose the control of a search: of several models that predict about as well, the one least aligned to the oracle."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from molgraph.base.errors import MissingOptionError, UnsupportedError
from molgraph.base.registry import get
from molgraph.base.seeds import generator
from molgraph.data.sources import builtin
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.generate.control import Control, make_control, rows_for_control
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.model import ModelOracle
from molgraph.train.alignment import by_edits, edits_of
from molgraph.train.model import Model

METHODS = ("random_forest", "linear", "svm", "knn")  # that learn from a table, in seconds
MOLECULES, EDITS = 60, 8  # on which the alignment is measured, and edits of each
WORSE = 1.15  # error of a method, as a share of the least, up to which it may be chosen
HELD = 0.2  # share of the rows on which methods are compared


def is_auto(control: Any) -> bool:
    """Whether a control is to be chosen.

    Example:
        >>> is_auto("auto"), is_auto("auto(a.mgm, b.mgm)"), is_auto("a.mgm")
        (True, True, False)
    """
    return isinstance(control, str) and (control == "auto" or (control.startswith("auto(") and control.endswith(")")))


def choose_control(control: str, oracle: Combined, table: Any = None, seed: int = 0) -> Control:
    """The candidate whose answers change least like those of the oracle's model with single edits of molecules.

    Demontis et al. 2019: what raises a model's answer raises an aligned one's too, so that a control shows an exploit
    the better the less it is aligned. A useless model is not aligned either: methods that learn from a table have to be
    within 15% of the least error on a fifth of its rows.

    Args:
        control: ``auto``, which fits methods to the table; or ``auto(a.mgm, b.mgm)``, files and tables.
        oracle: with a property model.
        table: with the target of the oracle's model, for ``auto``.
        seed: of fits and edits.

    Raises:
        UsageError: no property model in the oracle, or nothing to choose from.
    """
    asked = [term.oracle for term in oracle.terms if isinstance(term.oracle, ModelOracle)]
    if not asked:
        words = f"the oracle {oracle.words} asks no property model to whose errors a control could be aligned"
        raise UnsupportedError(words, hint="leave the control out: what is computed exactly needs no second opinion")
    files = [name.strip() for name in control.removeprefix("auto").strip("()").split(",") if name.strip()]
    texts: Sequence[str] = ()
    if files:
        controls = {name: make_control(name, oracle, seed) for name in files}
    elif table is None:
        hint = "name one that has the target: --reference TABLE; or several models: --control 'auto(a.mgm, b.mgm)'"
        raise MissingOptionError("the control auto fits methods to a table, and none is named", hint=hint)
    else:
        rows, _ = rows_for_control(table, oracle, seed)
        controls = {name: make_control(table, oracle, seed, method=name) for name in good_methods(rows, seed)}
        texts = [str(text) for text in rows.smiles]
    if not texts:
        texts = [str(text) for text in builtin.nci().smiles[:1000]]
    order = generator(seed, "alignment").permutation(len(texts))[:MOLECULES]
    edits = edits_of([texts[i] for i in order], EDITS, seed)
    deltas = edits.changes(_scorer(asked[0]))
    aligned = {
        name: float(np.nanmean(by_edits(deltas, edits.changes(_scorer(each.oracle))).cosine))
        for name, each in controls.items()
    }
    chosen = min(aligned, key=lambda name: (np.nan_to_num(aligned[name], nan=np.inf), name))
    words = ", ".join(f"{name} {value:.2f}" for name, value in sorted(aligned.items(), key=lambda each: each[1]))
    note = f"the control is {chosen}, whose answers are least aligned with the oracle's model ({words})"
    return replace(controls[chosen], note="; ".join(filter(None, [note, controls[chosen].note])))


def _scorer(oracle: ModelOracle) -> Callable[[Sequence[str]], np.ndarray]:
    return lambda smiles: oracle.score(smiles).value


def good_methods(table: Table, seed: int) -> list[str]:
    """Names of the methods whose error on a fifth of the rows is within 15% of the least."""
    order = generator(seed, "held out").permutation(len(table))
    test, train = np.split(order, [max(round(HELD * len(table)), 1)])
    clean = standardise(table, "standard")
    y, errors = np.asarray(table.y)[test, 0], dict[str, float]()
    for name in METHODS:
        method = get("method", name)()
        method.set_params(**({"seed": seed} if "seed" in method.param_names() else {}))
        model = Model(method.fit(clean.take(train)), targets=table.row_targets[:1])
        p = ModelOracle(model).score([str(text) for text in table.smiles[test]]).value
        errors[name] = float(np.sqrt(np.nanmean((p - y) ** 2)))
    return [name for name, error in errors.items() if error <= WORSE * min(errors.values())]

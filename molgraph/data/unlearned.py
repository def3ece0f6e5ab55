"""Targets that a table's labels could not teach, each with why; the same said in notes, files and predictions out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from molgraph.base.contracts import Prediction, Target
from molgraph.data.table import OK

Unlearned = Mapping[str, str]  # target's name -> why
SHOWN = 3


def notes_of(unlearned: Unlearned) -> tuple[str, ...]:
    """A sentence for each target.

    Example:
        >>> notes_of({"toxic": "only class 0 among 31 training labels"})
        ("target 'toxic' is not learned: only class 0 among 31 training labels; its predictions are empty",)
    """
    return tuple(f"target {name!r} is not learned: {why}; its predictions are empty" for name, why in unlearned.items())


def leave_empty(prediction: Prediction, unlearned: Unlearned) -> Prediction:
    """The prediction with NaN for those targets, and the reason in every row that has none yet.

    A constant share would look like a value that was learned; so no method gives one, not even the mean.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["C", "C(C"])
        >>> made = Prediction(table.ids, (Target("y"),), np.ones((2, 1)), table.status, table.reason)
        >>> found = leave_empty(made, {"y": "no training label"})
        >>> float(found.value[0, 0]), found.reason[0]
        (nan, 'not learned: y (no training label)')
    """
    if not unlearned:
        return prediction
    empty = [target.name in unlearned for target in prediction.targets for _ in target.columns]
    value, reason = prediction.value.copy(), prediction.reason.copy()
    value[:, empty] = np.nan
    reason[(prediction.status == OK) & (reason == "")] = _reason(unlearned)
    return replace(prediction, value=value, reason=reason, unlearned=dict(unlearned))


def restore_unlearned(meta: Mapping[str, Any], targets: tuple[Target, ...]) -> dict[str, str]:
    """What a model file says of its targets; a file of a version that refused such targets says nothing.

    Raises:
        ValueError: it names other targets than the model's, or all of them.
    """
    said = meta.get("unlearned", {})
    if not isinstance(said, Mapping):
        raise ValueError("what was not learned is no mapping")
    if not all(isinstance(why, str) and why for why in said.values()) or not set(said) <= {t.name for t in targets}:
        raise ValueError("the targets that were not learned are not the model's own")
    if len(said) == len(targets):
        raise ValueError("none of the targets was learned")
    return dict(said)


def _reason(unlearned: Unlearned) -> str:
    words = [f"{name} ({why})" for name, why in unlearned.items()]
    more = len(words) - SHOWN
    return "not learned: " + "; ".join(words[:SHOWN] + [f"and {more} more"] * (more > 0))

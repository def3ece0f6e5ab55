"""Find numbers that are not finite in weights and predictions, and say where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from molgraph.base.errors import MolgraphError

#: the largest number that a file of predictions holds: they are written as float32
LARGEST = float(np.finfo(np.float32).max)
NO_VALUE = "failed"  # the status of a row whose molecule was read, and which the model gives no finite number
_SHOWN = 3


def check_finite(arrays: Mapping[str, np.ndarray]) -> None:
    """Refuse weights that are not finite.

    Raises:
        MolgraphError: an array holds NaN or infinity; it is named.

    Example:
        >>> check_finite({"bias": np.array([0.0, np.inf])})
        Traceback (most recent call last):
        ...
        molgraph.base.errors.MolgraphError: the model's 'bias' holds numbers that are not finite
          train again: with a lower learning rate, or without extreme values in targets and features
    """
    for name, array in arrays.items():
        if np.asarray(array).dtype.kind == "f" and not np.isfinite(array).all():
            raise MolgraphError(
                f"the model's {name!r} holds numbers that are not finite",
                hint="train again: with a lower learning rate, or without extreme values in targets and features",
            )


def fail_rows(
    columns: Sequence[str], value: np.ndarray, learned: np.ndarray, status: np.ndarray, reason: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Values, status and reasons in which every row that is ``ok`` has a finite number in every learned column.

    The three given, or copies in which a number that is not finite is NaN and its row has a reason.

    Example:
        >>> status, reason = np.array(["ok"], dtype=object), np.array([""], dtype=object)
        >>> value, status, reason = fail_rows(("logS",), np.array([[np.inf]]), np.array([True]), status, reason)
        >>> float(value[0, 0]), status[0], reason[0]
        (nan, 'failed', 'the model gives no finite number for logS')
    """
    wrong = ~(np.abs(value) <= LARGEST) & learned
    ok = status == "ok"
    rows = np.flatnonzero(ok & wrong.any(axis=1))
    if not len(rows) and not np.isinf(value).any():
        return value, status, reason
    value, status, reason = np.where(wrong, np.nan, value), status.copy(), reason.copy()
    for row in rows:
        names = [columns[j] for j in np.flatnonzero(wrong[row]).tolist()]
        more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
        status[row], reason[row] = NO_VALUE, f"the model gives no finite number for {', '.join(names[:_SHOWN])}{more}"
    return value, status, reason

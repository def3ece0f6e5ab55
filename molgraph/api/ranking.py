"""Rank candidate molecules by a model's predictions and intervals: which to make, and which to measure first."""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
import pandas as pd

from molgraph.api.prediction import load
from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import BadValueError, MissingOptionError, UnsupportedError, did_you_mean
from molgraph.data.log import PREFIX
from molgraph.data.standardise import standardise
from molgraph.evaluate.coverage import GRADES
from molgraph.train.confidence.intervals import NUMBERS
from molgraph.train.model import Model
from molgraph.train.training_molecules import molecule_hashes

MAKE, MEASURE = "make", "measure"  # the advice on the first molecules; on others it is empty
OUTSIDE = GRADES[-1]


def rank(
    model: Model | str | os.PathLike[str],
    data: Any,
    *,
    want: str | float = "high",
    target: str | None = None,
    n: int = 10,
    coverage: float | None = None,
    **columns: Any,
) -> pd.DataFrame:
    """Rank molecules by the end of their interval that speaks against them, the best first.

    The first ``n`` within the domain have the advice ``make``: even at the bad end of their intervals they are ahead.
    ``measure`` have the ``n`` others whose good end is best: the model cannot tell them from the best, and their values
    teach it most (an upper confidence bound). Molecules that were measured already, that stand twice, or that have no
    prediction get neither, and a reason.

    Args:
        model: a model of molecules, or the path of its file.
        data: molecules in any form that ``Model.predict`` takes.
        want: ``high``, ``low``, or a value to be near to.
        target: which of the model's targets; it can be left out where there is one.
        n: molecules to make, and molecules to measure.
        coverage: of the intervals; None for the model's own. A smaller one takes more risk.
        columns: which columns are which, as for ``Model.predict``.

    Returns:
        A row for each row of ``data``: rank, id, input, advice, why, the value with its interval (of a logarithm in the
        unit of the value too), the domain, and the nearest training molecule with its id and value.

    Raises:
        UsageError: no such target, one that is no number or probability, or a value that is wanted of a class.

    Example:
        >>> import molgraph
        >>> model = molgraph.train("builtin:chembl2321810", model="linear").model
        >>> molgraph.rank(model, ["CCO", "c1ccccc1O", "C("], n=1)["rank"].tolist()
        [1, 2, 3]
    """
    loaded = model if isinstance(model, Model) else load(model)
    loaded = loaded if coverage is None else loaded.with_coverage(coverage)
    chosen = _target(loaded, target)
    aim = _aim(want, chosen)
    table = loaded.read(data, **columns)
    prediction = loaded.predict_table(table)
    value, low, high = _ends(prediction, chosen)
    bad, good = _scores(low, high, aim)
    hashes = molecule_hashes(standardise(table, loaded.standardiser))
    order = np.lexsort((np.arange(len(bad)), -np.where(np.isnan(bad), -np.inf, bad)))
    known = np.isin(hashes, [] if loaded.trained_on is None else loaded.trained_on) & (hashes != 0)
    same = _repeats(order, hashes, prediction.ids)
    domain = prediction.extra.get("domain", np.full(len(bad), "", dtype=object))
    advice = _advice(order, np.isfinite(bad) & ~known & (same == ""), domain, good, n)
    frame = _of_target(prediction, chosen)
    if chosen.name.startswith(PREFIX):
        names = dict(zip(_names(chosen), (value, low, high), strict=True))
        for place, name in enumerate(name for name in names if name in frame):
            frame.insert(2 + place, name.removeprefix(PREFIX), 10.0 ** names[name])
    frame.insert(2, "advice", advice)
    frame.insert(3, "why", _reasons(prediction, advice, domain, known, same))
    frame = frame.iloc[order].reset_index(drop=True)
    frame.insert(0, "rank", np.arange(1, len(frame) + 1))
    return frame


def _target(model: Model, name: str | None) -> Target:
    """The target to rank by."""
    targets = {target.name: target for target in model.targets if target.level == "row" and target.kind != "multiclass"}
    if not targets:
        raise UnsupportedError("the model predicts no number and no probability of a row", hint="rank by another model")
    if name is None:
        if len(targets) > 1:
            raise MissingOptionError(f"the model has {len(targets)} targets", hint=f"name one: {', '.join(targets)}")
        return next(iter(targets.values()))
    if name not in targets and PREFIX + name in targets:
        name = PREFIX + name
    if name not in targets:
        raise BadValueError(f"the model has no target {name!r}", hint=did_you_mean([*targets]))
    return targets[name]


def _aim(want: str | float, target: Target) -> float:
    """Infinity for high, minus infinity for low, else a value on the target's scale."""
    if want in ("high", "low"):
        return math.inf if want == "high" else -math.inf
    try:
        aim = float(want)
    except ValueError:
        raise BadValueError(f"want is {want!r}", hint="high, low, or a value to be near to") from None
    if target.kind not in NUMBERS:
        raise BadValueError(f"{target.name} is a class, and not a value to be near to", hint="high or low")
    if target.name.startswith(PREFIX):
        if aim <= 0:
            raise BadValueError(f"{aim:g} has no logarithm", hint=f"a value of {target.name.removeprefix(PREFIX)}")
        return math.log10(aim)
    return aim


def _ends(prediction: Prediction, target: Target) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """float64 [n] each: the value of a target, and the ends of its interval, which are the value where it has none."""
    place = sum(len(item.columns) for item in prediction.targets[: prediction.targets.index(target)])
    value = prediction.value[:, place]
    low, high = (value, value) if prediction.interval is None else (item[:, place] for item in prediction.interval)
    return value, np.where(np.isfinite(low), low, value), np.where(np.isfinite(high), high, value)


def _scores(low: np.ndarray, high: np.ndarray, aim: float) -> tuple[np.ndarray, np.ndarray]:
    """float64 [n] each, more is better: how good the bad end and the good end of each interval are."""
    if math.isinf(aim):
        return (low, high) if aim > 0 else (-high, -low)
    far = np.maximum(np.abs(low - aim), np.abs(high - aim))
    near = np.where((low <= aim) & (aim <= high), 0.0, np.minimum(np.abs(low - aim), np.abs(high - aim)))
    return -far, -near


def _advice(order: np.ndarray, free: np.ndarray, domain: np.ndarray, good: np.ndarray, n: int) -> np.ndarray:
    """object [n]: ``make`` for the first within the domain, ``measure`` for the others of the best good end."""
    advice = np.full(len(order), "", dtype=object)
    advice[[row for row in order if free[row] and domain[row] != OUTSIDE][:n]] = MAKE
    hopeful = np.lexsort((np.arange(len(good)), -np.where(np.isnan(good), -np.inf, good)))
    advice[[row for row in hopeful if free[row] and advice[row] != MAKE][:n]] = MEASURE
    return advice


def _names(target: Target) -> tuple[str, str, str]:
    return target.name, f"{target.name}_low", f"{target.name}_high"


def _of_target(prediction: Prediction, target: Target) -> pd.DataFrame:
    """A prediction's frame without the columns of other targets."""
    others = {name for other in prediction.targets if other != target for name in other.columns}
    ends = ("_low", "_high", "_set", "_calibrated")
    drop = others | {f"{name}{end}" for name in others for end in ends}
    drop |= {f"nearest_{name}{end}" for name in others for end in ("", "_qualifier")}
    frame: pd.DataFrame = prediction.to_frame()
    return frame.drop(columns=[name for name in frame if name in drop])


def _repeats(order: np.ndarray, hashes: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """object [n]: the id of the same molecule before a row, in the order; empty where there is none."""
    first, same = dict[int, str](), np.full(len(ids), "", dtype=object)
    for row in order:
        if key := int(hashes[row]):
            same[row] = first.get(key, "")
            first.setdefault(key, str(ids[row]))
    return same


def _reasons(
    prediction: Prediction, advice: np.ndarray, domain: np.ndarray, known: np.ndarray, same: np.ndarray
) -> np.ndarray:
    """object [n]: the reason of each advice, or why there is none."""
    reasons = prediction.reason.astype(object).copy()
    words = {MAKE: "ahead at the bad end of its interval", MEASURE: "could be the best, by its good end"}
    for row in np.flatnonzero(prediction.ok):
        if known[row]:
            reasons[row] = "a molecule that the model learnt from"
        elif same[row]:
            reasons[row] = f"the molecule of {same[row]}"
        else:
            grade = {"edge": "at the edge of the domain", OUTSIDE: "outside the domain"}.get(str(domain[row]), "")
            reasons[row] = "; ".join(filter(None, [words.get(advice[row], ""), grade]))
    return reasons

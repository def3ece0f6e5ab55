"""Read rows of molecule, concentration and response as a table with one dose-response curve a molecule."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import ConflictError, LabelError, MissingColumnError, UnsupportedError
from molgraph.base.packed import Packed, offsets_of
from molgraph.base.printable import count
from molgraph.base.table import Target
from molgraph.chem.identity import molecule_keys
from molgraph.data.curve_fit import fit_hill
from molgraph.data.log import log10
from molgraph.data.reading.names import plain
from molgraph.data.table import MISSING, OK, UNREADABLE, Table

LEVEL = ":curve"
TARGETS = tuple(map(Target, ("log10_EC50", "log10_slope", "top", "bottom")))
NAMES = ("concentration", "conc", "dose")  # of columns, maybe with a unit behind
DOSE, LOW, HIGH, WEIGHT = range(4)  # of a point: decimal logarithm of the concentration, ends of the response
SHOWN = 3


def curve_of(targets: Any) -> str | None:
    """The column of responses where a curve is asked for, as in ``response:curve``; None elsewhere.

    Raises:
        ConflictError: other targets beside it.

    Example:
        >>> curve_of(["inhibition:curve"]), curve_of("y")
        ('inhibition', None)
    """
    items = [targets] if isinstance(targets, str | Target) else list(targets) if isinstance(targets, Iterable) else []
    asked = [one for one in items if isinstance(one, str) and one.strip().endswith(LEVEL)]
    if asked and len(items) > 1:
        raise ConflictError(f"{asked[0]} is learnt alone: its rows are points of curves", hint="leave the others out")
    return asked[0].strip().removesuffix(LEVEL) if asked else None


def curve_columns(said: Mapping[str, Any]) -> dict[str, Any]:
    """The keywords by which a table is read as curves, where a recipe's section of data asks for them; else none.

    Example:
        >>> curve_columns({"targets": ["response:curve"]}), curve_columns({"targets": ["y"]})
        ({'targets': ['response:curve'], 'concentration': None}, {})
    """
    asked = said.get("targets")
    return {"targets": asked, "concentration": said.get("concentration")} if curve_of(asked) is not None else {}


def find_concentration(names: Sequence[str]) -> str:
    """The one column of concentrations, by its name.

    Example:
        >>> find_concentration(["smiles", "conc_uM", "response"])
        'conc_uM'
    """
    for words in NAMES:
        matches = [name for name in names if plain(name).startswith(words)]
        if len(matches) == 1:
            return matches[0]
    words = f"no column is named as concentrations are ({', '.join(NAMES)}), or several are"
    raise MissingColumnError(words, hint="name it: --concentration COLUMN (in Python concentration='COLUMN')")


def group_curves(points: Table, concentration: str) -> Table:
    """A row for each molecule, with its points, and with the parameters of its Hill curve where they determine it.

    Rows of one molecule (largest fragment, neutral, stereo kept) are one curve. A row without a concentration above 0,
    or without a response, stays a row with a reason.

    Args:
        points: a row for each point, whose one target is the response; ``concentration`` is a column of its features.
        concentration: its name.

    Returns:
        The table, in the order of the first rows; its targets are ``TARGETS``, its ``points`` [n, 4] the decimal
        logarithm of each concentration, the lowest and the highest response (equal, unless it is a limit such as >80)
        and the weight.

    Raises:
        LabelError: no curve determines its EC50.
        UnsupportedError: more entity columns than one of molecules.
    """
    assert points.y is not None and points.features is not None
    if [entity.kind for entity in points.entities] != ["molecule"]:
        words = "curves of one column of molecules are read, and the table has others"
        raise UnsupportedError(words, hint="name the column of molecules: --smiles COLUMN")
    place = points.feature_names.index(concentration)
    dose, response = points.features[:, place], points.y[:, 0]
    ends = np.column_stack([response, response])
    if points.limits is not None:
        ends = np.where(points.limited, points.limits[:, 0], ends)
    points = _mark(points, np.flatnonzero(points.ok & ~(dose > 0)), UNREADABLE, lambda row: (
        f"the {concentration} is {dose[row]:g}, which has no logarithm"))  # fmt: skip
    points = _mark(points, np.flatnonzero(points.ok & np.isnan(ends).any(axis=1)), MISSING, lambda row: (
        f"no value in the column {points.row_targets[0].name!r}"))  # fmt: skip
    good = np.flatnonzero(points.ok)
    keys = molecule_keys(points.smiles[good], stereo=True, label="molecules").values
    group = pd.factorize(np.where(keys == "", points.smiles[good], keys))[0]
    order = np.argsort(group, kind="stable")
    sizes = np.bincount(group, minlength=0)
    firsts = good[order[offsets_of(sizes)[:-1]]] if len(sizes) else good
    rows = np.sort(np.concatenate([firsts, np.flatnonzero(~points.ok)]))
    weights = np.ones(len(points)) if points.weights is None else points.weights
    known = dose > 0
    x = np.full(len(points), np.nan)
    x[known] = log10(dose[known])
    values = np.column_stack([x, ends, weights])[good[order]]
    counts = np.zeros(len(points), dtype=np.int64)
    counts[firsts] = sizes
    packed = Packed(offsets_of(counts[rows]), values)
    y, notes = _fitted(packed, rows)
    others = [j for j in range(len(points.feature_names)) if j != place]
    curves = replace(points, targets=(), y=None, limits=None, weights=None, units={}).take(rows)
    return replace(
        curves,
        targets=TARGETS,
        y=y,
        points=packed,
        features=curves.features[:, others] if curves.features is not None and others else None,
        feature_names=tuple(points.feature_names[j] for j in others),
        notes=(*points.notes, *_bad_rows(points), *notes),
    )


def _mark(points: Table, rows: np.ndarray, status: str, why: Any) -> Table:
    return points.with_status(rows, status, np.array([why(row) for row in rows], dtype=object))


def _bad_rows(points: Table) -> list[str]:
    rows = np.flatnonzero(points.status != OK)
    more = [f"{count(len(rows) - SHOWN, 'more row')} without a point of a curve"] * (len(rows) > SHOWN)
    return [f"row {row + 1} is no point of a curve: {points.reason[row]}" for row in rows[:SHOWN]] + more


def _fitted(points: Packed, rows: np.ndarray) -> tuple[np.ndarray, list[str]]:
    """float64 [n, 4]: parameters of the curves that determine them; and notes on the others."""
    y, failures = np.full((len(points), len(TARGETS)), np.nan), dict[str, list[int]]()
    for i, curve in enumerate(points.lists()):
        if not len(curve):
            continue
        exact = curve[curve[:, LOW] == curve[:, HIGH]]
        fit = fit_hill(exact[:, DOSE], exact[:, LOW], exact[:, WEIGHT])
        if fit.reason:
            failures.setdefault(fit.reason, []).append(int(rows[i]) + 1)
        else:
            y[i] = fit.parameters
    n, known = int((points.sizes > 0).sum()), int(np.isfinite(y[:, 0]).sum())
    if n and not known:
        reason, of = max(failures.items(), key=lambda item: len(item[1]))
        words = f"no EC50 is determined by its points in {count(n, 'curve')} (row {of[0]}: {reason})"
        raise LabelError(words, hint="one at least needs 5 points or more that reach both plateaus")
    has = f"{count(n, 'molecule')} with {count(len(points.values), 'point')} of dose-response curves"
    notes = [f"{has}; {count(known, 'curve')} of them determine the EC50 by themselves, and those alone are scored"]
    way = "the objective dose_response learns from their points all the same, other ones do not"
    for reason, of in failures.items():
        rows_of = ", ".join(map(str, of[:SHOWN])) + ", ..." * (len(of) > SHOWN)
        notes.append(f"{count(len(of), 'curve')} without a fitted EC50 (row {rows_of}): {reason}; {way}")
    return y, notes

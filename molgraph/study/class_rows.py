"""Take the molecules of a table that are of one class each, of classes that have enough of them."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import LabelError
from molgraph.base.seeds import generator
from molgraph.base.table import Target
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.study.subject_model import PRESET

LEAST = 3  # rows of a class


class Classes(NamedTuple):
    """Molecules of one class each.

    Args:
        table: without targets.
        code: int [n], the class of each row.
        names: of the classes.
        about: what the classes are, in words.
    """

    table: Table
    code: np.ndarray
    names: tuple[str, ...]
    about: str

    def known(self, rows: np.ndarray, classes: np.ndarray) -> Table:
        """Some rows, all of these classes, with the class as their target."""
        target = Target("class", "multiclass", classes=tuple(self.names[i] for i in classes))
        y = np.searchsorted(classes, self.code[rows]).astype(np.float64)[:, None]
        return replace(self.table.take(rows), targets=(target,), y=y)


def classes_of(table: Table, rows: int, seed: int) -> tuple[Classes, list[str]]:
    """The rows of the first target with classes; or, of three targets or more of two classes, those active in one.

    Args:
        table: with labels.
        rows: taken at most, drawn by the seed, with a note.
        seed: of the draw.

    Raises:
        LabelError: fewer than three classes of three molecules.
    """
    y = np.zeros((len(table), 0)) if table.y is None else table.y
    several = [(j, target) for j, target in enumerate(table.row_targets) if target.kind == "multiclass"]
    if several:
        j, target = several[0]
        code, names, about = np.where(np.isfinite(y[:, j]), y[:, j], -1).astype(int), target.classes, target.name
    else:
        yes_no = [j for j, target in enumerate(table.row_targets) if target.kind == "binary"]
        active = y[:, yes_no] == 1
        code = np.where(active.sum(axis=1) == 1, active.argmax(axis=1) if yes_no else -1, -1)
        names, about = tuple(table.row_targets[j].name for j in yes_no), "the only target in which a molecule is active"
    notes, kept = list[str](), np.flatnonzero(table.ok & (code >= 0))
    if len(kept) > rows:
        notes.append(f"{rows:,} of {len(kept):,} molecules, drawn at random")
        kept = np.sort(generator(seed, "rows").permutation(kept)[:rows])
    plain = replace(table.take(kept), targets=(), y=None, packed={}, units={}, split=None)
    plain, code = standardise(plain, PRESET), code[kept]
    enough = np.flatnonzero(np.bincount(code[plain.ok], minlength=len(names)) >= LEAST)
    fine = np.flatnonzero(plain.ok & np.isin(code, enough))
    if len(enough) < 3:
        words = f"{len(enough)} classes have {LEAST} molecules or more, and a study of unknown classes needs three"
        raise LabelError(words, hint="name a column of classes, -t COLUMN:multiclass, or three of yes and no")
    classes = Classes(plain.take(fine), np.searchsorted(enough, code[fine]), tuple(names[i] for i in enough), about)
    return classes, notes


def open_set_rate(far: np.ndarray, right: np.ndarray, unknown: np.ndarray) -> float:
    """The area under correctly classified known rows against unknown ones that are taken for known (OSCR).

    Dhamija et al. 2018, NeurIPS.

    Args:
        far: float64 [n], scores of known rows, greater for those that look unknown.
        right: bool [n], whether each is given its class.
        unknown: float64 [m], scores of rows of unknown classes.

    Example:
        >>> open_set_rate(np.array([0.1, 0.2]), np.array([True, False]), np.array([0.5]))
        0.5
    """
    order = np.sort(unknown)
    above = len(order) - (np.searchsorted(order, far, "left") + np.searchsorted(order, far, "right")) / 2
    return float((above / len(order) * right).mean())

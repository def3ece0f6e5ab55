"""Hold the molecules that a search scored, with everything a person asks about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.csv_text import csv_text
from molgraph.base.paths import write_whole
from molgraph.base.printable import count
from molgraph.chem.alerts import alerts_of
from molgraph.chem.quality import measure
from molgraph.data.table import make_table
from molgraph.generate.guard import Guard
from molgraph.generate.oracles.calls import OracleCalls, Scored
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.model import ModelOracle
from molgraph.generate.oracles.similarity import Molecules
from molgraph.train.model import Model
from molgraph.train.training_molecules import molecule_hashes

RESERVED = ("smiles", "objective", "start", "stage", "call", "reason")  # columns that no part of an oracle has


class Shape(NamedTuple):
    """The transform of a part: its label, its words, values, their desirabilities, and the scores of molecules."""

    label: str
    words: str
    x: np.ndarray
    y: np.ndarray
    scores: np.ndarray


@dataclass(frozen=True)
class Optimised:
    """The molecules that a search scored, the best first, and how it went.

    Args:
        frame: a row for each oracle call: rank, smiles, objective (the oracle's score; the column's name is
            older than the word), within_bounds, the oracle's parts, start (whether
            it is a molecule that the search began at), sa, alerts,
            known and known_similarity (the nearest molecule of the reference), novel, learnt_from (whether a property
            model of the oracle learnt from it), control, call, reason. Columns of things not asked for are left out.
        oracle: in words.
        search: its name.
        budget: oracle calls that were allowed.
        best_so_far: name of a search -> float64, the best score within the bounds after each call; sampling's too.
        guard: the comparison with the control model, if there is one.
        notes: what a person should know.
        shapes: the transforms of the oracle's parts.
        interrupted: whether it was stopped; the rows are those scored by then.
    """

    frame: pd.DataFrame
    oracle: str
    search: str
    budget: int
    best_so_far: dict[str, np.ndarray]
    guard: Guard | None = None
    notes: tuple[str, ...] = ()
    shapes: tuple[Shape, ...] = ()
    interrupted: bool = False

    def __len__(self) -> int:
        return len(self.frame)

    def __repr__(self) -> str:
        return f"Optimised({self.sentence})"

    def _repr_html_(self) -> str:
        """The sentence, and the best molecules."""
        best = self.frame.head(10).to_html(float_format="{:.3f}".format, na_rep="-", border=0, index=False)
        return f"<p>{escape(self.sentence)}</p>{best}"

    def to_frame(self) -> pd.DataFrame:
        """The rows, the best first; molecules without a score are last, each with its reason."""
        return self.frame.copy()

    @property
    def sentence(self) -> str:
        """The outcome in words."""
        within, value = self.frame["within_bounds"].to_numpy(bool), self.frame["objective"].to_numpy(float)
        begun = self.frame["start"].to_numpy(bool) if "start" in self.frame else np.zeros(len(self), dtype=bool)
        failed = int((self.frame["reason"] != "").sum())
        words = f"{count(len(self), 'molecule')} scored by {self.oracle}: {within.sum():,} within the bounds"
        if within.any():
            best, start = value[within].max(), np.nanmax(value[begun], initial=-np.inf)
            words += f", the best at {best:.3f}"
            if np.isfinite(start):
                better = best > start or not (begun & within).any()
                words += (
                    f", from {start:.3f} of the start" if better else ", which is the start: nothing better was found"
                )
            control = self.best_so_far.get("sampling")
            if control is not None and self.search != "sampling" and np.isfinite(control[-1]):
                words += f" (plain sampling with as many calls: {control[-1]:.3f})"
        return words + (f"; {failed:,} have no score" if failed else "")

    def save(self, path: str | Path) -> Path:
        """Write the rows as csv, under a temporary name first."""
        return write_whole(path, csv_text(self.frame))


def ranked(calls: OracleCalls) -> list[Scored]:
    """What was scored, those within the bounds first, each group by its score; what has no score last."""

    def place(one: Scored) -> tuple[bool, bool, float, int]:
        scored = np.isfinite(one.total)
        return not scored, not one.within, -(one.total if one.within else one.guide) if scored else 0.0, one.call

    return [*sorted(calls.scored.values(), key=place), *calls.history]


def rows_of(scored: Sequence[Scored], oracle: Combined, starts: Sequence[str] = ()) -> pd.DataFrame:
    """The columns that need nothing further: rank, smiles, objective, within_bounds, parts, start, call, reason."""
    parts = {label: [one.parts[j] if one.parts else np.nan for one in scored] for j, label in enumerate(oracle.labels)}
    columns: dict[str, Any] = {
        "rank": np.arange(1, len(scored) + 1),
        "smiles": [one.smiles for one in scored],
        "objective": [one.total for one in scored],
        "within_bounds": [one.within for one in scored],
        **{label: values for label, values in parts.items() if label not in RESERVED},
        **({"start": [one.smiles in starts for one in scored]} if starts else {}),
        **({"stage": [one.stage for one in scored]} if any(one.stage for one in scored) else {}),
        "call": [one.call for one in scored],
        "reason": [one.reason for one in scored],
    }
    return pd.DataFrame(columns)


def annotated(
    frame: pd.DataFrame,
    oracle: Combined,
    *,
    generator: Model | None = None,
    reference: Molecules | None = None,
    control: np.ndarray | None = None,
) -> pd.DataFrame:
    """The rows with synthetic accessibility, alerts, the nearest known molecule, novelty and the control's scores.

    Args:
        frame: of ``rows_of``.
        oracle: whose property models are asked what they learnt from.
        generator: whose training molecules are not novel.
        reference: known molecules.
        control: float [n], the control model's scores, in the frame's order.
    """
    smiles: list[str] = frame["smiles"].tolist()
    more: dict[str, Any] = {}
    if "sa" not in frame:
        more["sa"] = measure("sa", smiles).value
    more["alerts"] = ["; ".join(matches) for matches in alerts_of(smiles)]
    novel, hashes = np.ones(len(smiles), dtype=bool), molecule_hashes(make_table(smiles))
    learned = None if generator is None else generator.trained_on
    if learned is not None:
        novel &= ~np.isin(hashes, learned)
    if "start" in frame:
        novel &= ~np.isin(hashes, hashes[frame["start"].to_numpy(bool)])
    if reference is not None:
        matches = reference.nearest(smiles)
        more["known"], more["known_similarity"] = matches.smiles, matches.similarity
        novel &= ~reference.holds(smiles, matches)
    if learned is not None or reference is not None or "start" in frame:
        more["novel"] = novel
    for term, label in zip(oracle.terms, oracle.labels, strict=True):
        seen = term.oracle.trained_on(smiles) if isinstance(term.oracle, ModelOracle) else None
        if seen is not None:
            more[f"{label}_learnt_from"] = seen
    if control is not None:
        more["control"] = control
    tail = frame.columns.get_loc("call")
    out = frame.copy()
    for i, (name, values) in enumerate(more.items()):
        out.insert(tail + i, name if name not in out else f"{name}_found", values)
    return out


def shapes_of(oracle: Combined, frame: pd.DataFrame) -> list[Shape]:
    """The transforms of the parts of an oracle over their own range and that of the scores, for the page."""
    out = []
    for term, label in zip(oracle.terms, oracle.labels, strict=True):
        if term.transform is None:
            continue
        scores = frame[label].to_numpy(np.float64) if label in frame else np.zeros(0)
        scores = scores[np.isfinite(scores)]
        middle = np.percentile(scores, [1, 99]) if len(scores) else np.zeros(0)  # what is far out would hide the rest
        low, high = (f([*term.transform.span, *middle]) for f in (min, max))
        pad = 0.1 * (high - low or abs(low) or 1.0)
        x = np.linspace(low - pad, high + pad, 401)
        out.append(Shape(label, term.transform.text, x, term.transform(x), scores))
    return out


def best_so_far(calls: OracleCalls) -> np.ndarray:
    """float64 [calls]: the best score within the bounds after each call; NaN before the first."""
    values = [one.total if one.within else -np.inf for one in calls.scored.values()]
    best = np.maximum.accumulate(np.array(values, dtype=np.float64)) if values else np.zeros(0)
    return np.append(np.full(calls.before, np.nan), np.where(np.isfinite(best), best, np.nan))


def constant_note(scores: Sequence[float]) -> str:
    """A sentence where several molecules were scored and all have one score; else empty.

    Example:
        >>> constant_note([3.0, 3.0, float("nan")])
        'all 2 scored molecules have the same score, 3: the search had nothing to learn from'
    """
    known = [score for score in scores if np.isfinite(score)]
    if len(known) < 2 or min(known) != max(known):
        return ""
    words = f"all {len(known):,} scored molecules have the same score, {known[0]:g}"
    return f"{words}: the search had nothing to learn from"

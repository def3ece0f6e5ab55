"""Write one self-contained HTML page on a search for better molecules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup
from matplotlib.figure import Figure

from molgraph.base.paths import write_whole
from molgraph.chem.draw import draw_molecule
from molgraph.evaluate.report_style import COLOURS, SOFT, drawn, number, render
from molgraph.evaluate.report_transforms import Curve, transforms

GRID, ROWS = 24, 60
PLAIN = ("rank", "smiles", "within_bounds", "reason", "call")


@drawn
def rising(curves: Mapping[str, np.ndarray]) -> Figure | None:
    """The best score so far over the oracle calls, a line a search; plain sampling in grey."""
    shown = {name: best for name, best in curves.items() if np.isfinite(best).any()}
    if not shown:
        return None
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.grid()
    for i, (name, best) in enumerate(shown.items()):
        plain = name == "sampling" and len(shown) > 1
        colour = SOFT if plain else COLOURS[i]
        label = "sampling (control)" if plain else name
        axis.step(np.arange(1, len(best) + 1), best, where="post", color=colour, label=label, linewidth=1.6)
    axis.set(xlabel="oracle calls", ylabel="best score so far", xlim=(1, max(2, *(len(b) for b in shown.values()))))
    axis.legend(loc="lower right")
    return figure


@drawn
def parting(watched: pd.DataFrame) -> Figure | None:
    """Oracle and control of the ten best molecules so far, an axis each since their units may differ."""
    figure = Figure(figsize=(7.2, 3.4), layout="constrained")
    axis = figure.subplots()
    axis.grid()
    other = axis.twinx()
    other.spines["right"].set_visible(True)
    axis.plot(watched["call"], watched["oracle"], color=COLOURS[0], linewidth=1.6, label="oracle (left)")
    other.plot(watched["call"], watched["control"], color=COLOURS[1], linewidth=1.6, label="control (right)")
    axis.set(xlabel="oracle calls", ylabel="oracle, ten best so far")
    other.set_ylabel("control of the same ten")
    lines = [*axis.get_lines(), *other.get_lines()]
    axis.legend(lines, [str(line.get_label()) for line in lines], loc="lower right")
    return figure


def write_search_report(
    path: str | Path,
    *,
    frame: pd.DataFrame,
    oracle: str,
    search: str,
    curves: Mapping[str, np.ndarray],
    lead: str,
    watched: pd.DataFrame | None = None,
    verdict: str = "",
    tag: str = "",
    notes: Sequence[str] = (),
    starts: Sequence[str] = (),
    shapes: Sequence[Curve] = (),
) -> Path:
    """Write the page, under a temporary name first.

    Args:
        path: the HTML file.
        frame: a row a molecule, the best first.
        oracle, search: in words.
        curves: name of a search -> the best score after each call.
        lead: the outcome in words.
        watched: columns call, oracle, control, of the ten best molecules so far; None without a control model.
        verdict: what the control says, in words.
        tag: the same in a few words: "Take care", "No sign of exploitation", or something between.
        notes: smaller print.
        starts: molecules that it began at, drawn first.
        shapes: the transforms of the oracle's parts.
    """
    scored = frame[frame["reason"] == ""]
    lost = frame[frame["reason"] != ""]
    columns = [name for name in frame.columns if name not in PLAIN and not _doubled(frame, name)]
    html = render(
        "search.html.jinja",
        title=f"Molecules that are better by {oracle}",
        lead=lead,
        search=search,
        notes=notes,
        curve=rising(curves, key="rising"),
        parting="" if watched is None else parting(watched, key="parting"),
        shapes=transforms(shapes, key="shapes"),
        verdict=verdict,
        tag=tag,
        starts=[{"picture": _picture(text), "id": "start", "lines": []} for text in starts],
        cards=[_card(row, columns) for row in scored.head(GRID).to_dict("records")],
        columns=columns,
        rows=[
            {
                "rank": row["rank"],
                "smiles": row["smiles"],
                "within": row["within_bounds"],
                "cells": [row[name] if name == "known" else _cell(row[name]) for name in columns],
            }
            for row in scored.head(ROWS).to_dict("records")
        ],
        n_scored=len(scored),
        lost=lost[["smiles", "reason"]].head(ROWS).to_dict("records"),
        n_lost=len(lost),
    )
    return write_whole(path, html)


def _doubled(frame: pd.DataFrame, name: str) -> bool:
    """Whether a column holds what an earlier one holds, as that of an oracle of one part does."""
    before = [other for other in frame.columns[: frame.columns.get_loc(name)] if other not in PLAIN]
    return any(frame[name].equals(frame[other]) for other in before)


def _picture(smiles: str) -> Markup:
    return Markup(draw_molecule(smiles, width=220, height=150))  # draw_molecule escapes what it was given


def _cell(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return "yes" if value else "no"
    if isinstance(value, float | int | np.number):
        return number(float(value))
    return str(value).replace("_", " ") or "none"


def _card(row: Mapping[str, Any], columns: Sequence[str]) -> dict[str, Any]:
    """A molecule's picture and lines; the nearest known molecule is drawn."""
    lines = [(name.replace("_", " "), _cell(row[name])) for name in columns if name != "known"]
    if row.get("known"):
        lines.append(("nearest known", Markup(draw_molecule(row["known"], width=150, height=90))))
    mark = "" if row["within_bounds"] else " (outside the bounds)"
    return {"picture": _picture(row["smiles"]), "id": f"{row['rank']}{mark}", "lines": lines}

"""Prepare the values that the page's template shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from molgraph.chem.draw import draw_molecule
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.board_overall import LEAST_DATASETS, Overall
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_figures import gallery
from molgraph.evaluate.benchmark.report_rows import board_rows, how_tested, metric_label, resolution, sentences
from molgraph.evaluate.benchmark.report_slices import Slices
from molgraph.evaluate.report_style import NONE, number

NO_MOLECULES = "Distances to training molecules, pictures and replicates need one molecule a row: none are shown here."
MOST_FAILURES = 50


def anchor(board: Board) -> str:
    """Where a dataset's section stands on the page.

    Example:
        >>> from types import SimpleNamespace
        >>> anchor(SimpleNamespace(name="bbbp@c1", split="random-5x5", alone=True))
        'bbbp-c1--random-5x5'
    """
    key = f"{board.name}--{board.split}" + ("" if board.alone else f"--{board.metric}")
    return "".join(c if c.isalnum() or c == "-" else "-" for c in key)


def breakable(name: str) -> Markup:
    """A name that a narrow heading may break after an underscore, a hyphen or a slash, and inside no word.

    Example:
        >>> str(breakable("random_forest <b>"))
        'random_<wbr>forest &lt;b&gt;'
    """
    text = str(escape(name))
    for mark in "_-/":
        text = text.replace(mark, f"{mark}<wbr>")
    return Markup(text)


def overview(overall: Overall) -> dict[str, Any]:
    """A split's table of ranks by dataset and method, beside its summary over datasets."""
    heat = []
    for board in overall.boards.values():
        shown = {row["method"]: row for row in board_rows(board)[1]}
        cells = [_heat(board, shown.get(str(method))) for method in overall.table.index]
        at = {"name": breakable(board.name), "anchor": anchor(board), "metric": metric_label(board.metric)}
        heat.append(at | {"cells": cells})
    return {
        "of": overall,
        "heat": heat,
        "places": overall.datasets >= LEAST_DATASETS,
        "forest": any(b.reference for b in overall.boards.values()),
        "missing": [str(m) for m in overall.table.index if m not in overall.compared],
    }


def _heat(board: Board, row: Mapping[str, Any] | None) -> dict[str, Any]:
    if row is None:
        return {"text": NONE, "tone": "none", "says": "not on this board", "mean": ""}
    if row["note"]:
        lost = board.failures.loc[board.failures["method"] == row["method"], "status"]
        tone = "none lost" if len(lost) else "none"
        return {"text": next(iter(lost), NONE), "tone": tone, "says": row["note"], "mean": ""}
    if not board.tested:
        return {"text": NONE, "tone": "untested", "says": how_tested(board), "mean": row["score"]}
    rank, k = int(row["rank"]), len(board.ranking.ranked)
    tone = "first" if rank == 1 else ("high", "middle", "low")[min(3 * (rank - 1) // k, 2)]
    says = f"{row['method']}: {metric_label(board.metric)} {row['score']}"
    return {"text": row["rank"], "tone": tone, "says": says, "mean": row["score"]}


def section(report: BenchReport, boards: Sequence[Board], colour: Mapping[str, str]) -> dict[str, Any]:
    """A dataset's section: the leading board in full, the other metrics in short."""
    main, *others = boards
    known, slices = report.cards.get(main.dataset), report.slices.get((main.dataset, main.split))
    slices = slices.of(main.scores.tasks) if slices is not None and not main.alone else slices
    rows, higher = str(main.rows), "higher" if main.ranking.higher_is_better else "lower"
    about = [rows] if rows and known is None else []
    if known is not None:
        about = [known.title, rows or f"{known.rows:,} rows", known.task, f"grade {known.grade}"]
    about += [f"split {main.split}", f"{metric_label(main.metric)}, {higher} is better"]
    facts = sentences(main)
    if slices is not None and len(slices.ids) > len(slices.smiles):
        facts.append(NO_MOLECULES)
    leader, worst = _worst(main, slices)
    return _table(main) | {
        "anchor": anchor(main),
        "about": about,
        "facts": facts,
        "metric": metric_label(main.metric),
        "figures": gallery(main, slices, colour, anchor(main)),
        "wilcoxon": main.ranking.pairs["wilcoxon_p"].notna().any(),
        "others": [_table(board) for board in others],
        "failures": main.failures.head(MOST_FAILURES).to_dict("records"),
        "leader": leader,
        "worst": worst,
    }


def _table(board: Board) -> dict[str, Any]:
    arrow, (unit, rows) = "↑" if board.ranking.higher_is_better else "↓", board_rows(board)
    label = f"{metric_label(board.metric)} {arrow}"
    return {"board": board, "metric": label, "rows": rows, "unit": unit, "resolution": resolution(board)}


def _worst(board: Board, slices: Slices | None) -> tuple[str, list[dict[str, Any]]]:
    """The leading method, and the molecules that it got most wrong, with the predictions of the next two."""
    names = [m for m in board.methods if slices is not None and m in slices.tested][:3]
    if slices is None or not names or not len(slices.smiles) or not board.ranking.ranked:
        return "", []
    found = []
    for row, j, _ in slices.worst(names[0]):
        target, places = slices.targets[j], {m: np.flatnonzero(slices.tested[m].rows == row) for m in names}
        y = float(slices.tested[names[0]].y[places[names[0]][0], j])
        plain = f"{y:g}" if target.kind == "binary" else number(y)
        lines = [("measured", target.classes[int(y)] if target.kind == "multiclass" else plain)]
        said = {"binary": "P(1), {}", "multiclass": "P(that), {}"}.get(target.kind, "{}")
        lines += [(said.format(m), number(slices.tested[m].p[i[0], j])) for m, i in places.items() if len(i)]
        if np.isfinite(slices.distance[row]):
            lines.append(("distance to train", number(slices.distance[row])))
        picture = Markup(draw_molecule(str(slices.smiles[row]), width=200, height=140))
        label = f"id {slices.ids[row]}" + (f", {target.name}" if len(slices.targets) > 1 else "")
        found.append({"picture": picture, "id": label, "lines": lines})
    return names[0], found

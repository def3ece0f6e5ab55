"""Prepare the values that the page's template shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from markupsafe import Markup, escape

from molgraph.chem.draw import draw_molecule
from molgraph.evaluate.benchmark import report_words as words
from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.board_overall import Overall
from molgraph.evaluate.benchmark.ranking_groups import group_members, letter_groups
from molgraph.evaluate.benchmark.report_critical import critical
from molgraph.evaluate.benchmark.report_data import BenchReport
from molgraph.evaluate.benchmark.report_gallery import gallery
from molgraph.evaluate.benchmark.report_slices import Slices
from molgraph.evaluate.benchmark.report_style import placed
from molgraph.evaluate.report_parts import NONE, number

NO_MOLECULES = "Distances to training molecules, pictures and replicates need one molecule a row: none are shown here."


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


def board_rows(board: Board) -> list[dict[str, Any]]:
    """A row a method, the quoted numbers last; texts with the numbers that they sort by."""
    frame, places = board.to_frame(), words.decimals(board)
    _, cost = words.cost_column(frame["cpu_minutes"])
    rows = []
    for row, cpu in zip(frame.itertuples(), cost, strict=True):
        name = str(row.Index)
        ranked = np.isfinite(row.rank)
        step = NONE if not np.isfinite(row.to_best) else f"{words.signed(row.to_best)}"
        span = "" if not np.isfinite(row.to_best) else f"{number(row.to_best_low)} to {number(row.to_best_high)}"
        rows.append(
            {
                "method": name,
                "kind": "ranked" if ranked else "unranked",
                "rank": f"{row.rank:.0f}" if ranked and board.tested else NONE,
                "groups": row.groups,
                "score": words.plus_minus(row.mean, row.low, row.high, places),
                "value": row.mean,
                "step": step,
                "step_value": row.to_best,
                "span": span,
                "d": number(row.d) if np.isfinite(row.d) else NONE,
                "folds": f"{row.folds}",
                "cpu": cpu,
                "cpu_value": row.cpu_minutes,
                "failures": row.failures,
                "forest": words.against_forest(board, name),
                "loses": board.against_reference(name) == "worse",
                "beats": board.against_reference(name) == "better",
                "note": row.note,
            }
        )
    return rows


def overview(report: BenchReport) -> list[dict[str, Any]]:
    """For each split: the summary's rows, its figure, and the table of ranks by dataset and method."""
    return [_overview(report, each) for each in report.overall]


def _overview(report: BenchReport, overall: Overall) -> dict[str, Any]:
    boards = overall.boards
    rows = [
        {
            "method": str(r.Index),
            "place": number(r.mean_place) if np.isfinite(r.mean_place) else NONE,
            "place_value": r.mean_place,
            "first": r.first,
            "alone": r.alone,
            "ranked": r.ranked,
            "beats": r.beats,
            "loses": r.loses,
        }
        for r in overall.table.itertuples()
    ]
    figure, compared = "", [m for m in overall.table.index if m in overall.compared]
    if overall.datasets > 1 and len(compared) > 1:
        places = overall.table.loc[compared, "mean_place"]
        apart = np.abs(places.to_numpy()[:, None] - places.to_numpy()) >= overall.critical
        groups = group_members(dict(zip(compared, letter_groups(apart), strict=True)))
        label = f"mean place over {overall.over} (left is best)"
        figure = critical(places, groups, label, overall.critical)
    heat = [
        {
            "name": breakable(board.name),
            "anchor": anchor(board),
            "metric": words.metric_label(board.metric),
            "cells": [_heat(board, str(method)) for method in overall.table.index],
        }
        for board in boards.values()
    ]
    refused = [(breakable(name), why) for (name, split), why in report.refused_splits.items() if split == overall.split]
    said = "" if overall.omnibus is None else f"Friedman over datasets p = {overall.omnibus.p:.2g}"
    forest = any(b.reference for b in boards.values())
    return {
        "split": overall.split,
        "rows": rows,
        "figure": Markup(placed(figure, f"over-{overall.split}")),
        "methods": [breakable(str(name)) for name in overall.table.index],
        "heat": heat,
        "refused": refused,
        "said": said,
        "critical": number(overall.critical) if np.isfinite(overall.critical) else "",
        "datasets": overall.datasets,
        "over": overall.over,
        "forest": forest,
        "missing": [str(m) for m in overall.table.index if m not in overall.compared],
    }


def _heat(board: Board, method: str) -> dict[str, Any]:
    table = board.ranking.table
    if method not in table.index:
        return {"text": NONE, "tone": "none", "says": "not on this board", "mean": ""}
    row = table.loc[method]
    mean = words.plus_minus(row["mean"], row["low"], row["high"], words.decimals(board))
    if not np.isfinite(row["rank"]):
        lost = board.failures.loc[board.failures["method"] == method, "status"]
        text = str(lost.iloc[0]) if len(lost) else NONE
        return {
            "text": text,
            "tone": "none lost" if len(lost) else "none",
            "says": board.ranking.left_out.get(method, ""),
            "mean": "",
        }
    if not board.tested:
        return {"text": NONE, "tone": "untested", "says": words.how_tested(board), "mean": mean}
    k = len(board.ranking.ranked)
    tone = "first" if row["rank"] == 1 else ("high", "middle", "low")[min(int(3 * (row["rank"] - 1) / max(k, 1)), 2)]
    says = f"{method}: {words.metric_label(board.metric)} {mean}"
    return {"text": f"{row['rank']:.0f}", "tone": tone, "says": says, "mean": mean}


def section(report: BenchReport, boards: Sequence[Board], colour: Mapping[str, str]) -> dict[str, Any]:
    """A dataset's section: the leading board in full, the other metrics in short."""
    main = boards[0]
    known = report.cards.get(main.dataset)
    slices = report.slices.get((main.dataset, main.split))
    if slices is not None and not main.alone:
        slices = slices.of(main.scores.tasks)
    rows = str(main.rows)
    about = [
        *([rows] if rows and known is None else []),
        f"split {main.split}",
        f"{words.metric_label(main.metric)}, {'higher' if main.ranking.higher_is_better else 'lower'} is better",
    ]
    if known is not None:
        about = [known.title, rows or f"{known.rows:,} rows", known.task, f"grade {known.grade}", *about]
    return {
        "name": main.title,
        "split": main.split,
        "anchor": anchor(main),
        "about": about,
        "sentence": main.sentence + ".",
        "facts": [
            t
            for t in (
                words.resolution(main),
                words.ceiling(main),
                words.tasks(main),
                words.how_tested(main),
                words.best_mean(main),
                NO_MOLECULES if slices is not None and len(slices.ids) > len(slices.smiles) else "",
                *main.notes,
            )
            if t
        ],
        "metric": words.metric_label(main.metric),
        "forest": bool(main.reference),
        "order": words.order(main),
        "unit": words.cost_column(main.to_frame()["cpu_minutes"])[0],
        "rows": board_rows(main),
        "quoted": main.quoted,
        "figures": gallery(main, slices, colour, anchor(main)),
        "pairs": _pairs(main),
        "checks": [(c.name, "holds" if c.holds else "fails", c.words) for c in main.ranking.checks],
        "others": [_short(board) for board in boards[1:]],
        "failures": main.failures.to_dict("records")[:50],
        "n_failures": len(main.failures),
        "worst": _worst(main, slices),
        "hashes": main.data_hash,
    }


def _pairs(board: Board) -> list[dict[str, Any]]:
    out = []
    for r in board.ranking.pairs.itertuples():
        wide = f"{number(r.wide_low)} to {number(r.wide_high)}" if np.isfinite(r.wide_low) else NONE
        d = f"{number(r.d)} ({number(r.d_low)} to {number(r.d_high)})" if np.isfinite(r.d) else NONE
        row = {"a": r.a, "b": r.b, "difference": words.signed(r.difference), "value": r.difference, "p_value": r.p}
        row |= {"span": f"{number(r.low)} to {number(r.high)}", "d": d, "d_value": r.d, "wide": wide, "p": f"{r.p:.2g}"}
        said = ("yes" if r.survives else "yes, not after correction") if r.different else "no"
        out.append(row | {"different": bool(r.different), "said": said if wide != NONE else said.split(",")[0]})
    return out


def _short(board: Board) -> dict[str, Any]:
    arrow = "↑" if board.ranking.higher_is_better else "↓"
    return {
        "metric": f"{words.metric_label(board.metric)} {arrow}",
        "rows": board_rows(board),
        "quoted": board.quoted,
        "unit": words.cost_column(board.to_frame()["cpu_minutes"])[0],
        "words": " ".join(text for text in (words.resolution(board), words.order(board)) if text),
    }


def _worst(board: Board, slices: Slices | None) -> dict[str, Any] | None:
    """The molecules that the leading method got most wrong, with what others said of them."""
    if slices is None or not len(slices.smiles):
        return None
    names = [m for m in board.methods if m in slices.tested]
    if not names or not board.ranking.ranked:
        return None
    leader = next(m for m in names)
    place = {m: {int(row): i for i, row in enumerate(slices.tested[m].rows)} for m in names[:3]}
    found = []
    for row, j, _ in slices.worst(leader):
        target = slices.targets[j]
        tested = slices.tested[leader]
        y = tested.y[place[leader][row], j]
        measured = f"{y:g}" if target.kind == "binary" else number(float(y))
        measured = target.classes[int(y)] if target.kind == "multiclass" else measured
        said = {"binary": "P(1), {}", "multiclass": "P(that), {}"}.get(target.kind, "{}")
        lines = [("measured", measured)]
        for m in names[:3]:
            if row in place[m]:
                lines.append((said.format(m), number(float(slices.tested[m].p[place[m][row], j]))))
        if np.isfinite(slices.distance[row]):
            lines.append(("distance to train", number(float(slices.distance[row]))))
        picture = Markup(draw_molecule(str(slices.smiles[row]), width=200, height=140))
        label = f"id {slices.ids[row]}" + (f", {target.name}" if len(slices.targets) > 1 else "")
        found.append({"picture": picture, "id": label, "lines": lines})
    return {"method": leader, "molecules": found} if found else None

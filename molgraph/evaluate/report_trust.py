"""Plot what studies of trust measure: changes that a model ignores, shortcuts, and what a benchmark is worth."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from molgraph.evaluate.report_style import COLOURS, DASHED, save


def invariance_bars(frame: pd.DataFrame, form: str) -> bytes:
    """Firing of each change as bars, those that should stay in one colour, those that should change in another."""
    known = frame[frame["it_is"] != "too few"]
    figure = Figure(figsize=(6, 0.6 + 0.32 * max(len(known), 1)), layout="constrained")
    axes = figure.subplots()
    for colour, should in zip(COLOURS, ("stay", "change"), strict=False):
        rows = known[known["should"] == should]
        axes.barh(rows["change"], rows["firing"], color=colour, label=f"should {should}")
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="firings that remain (mean of all units)")
    figure.legend(loc="outside right upper")
    return save(figure, form)


def shortcut_points(frame: pd.DataFrame, label: str, chance: float, form: str) -> bytes:
    """The score of each block as it is, changed alike and randomised, as three points on a line."""
    rows = frame.iloc[1:]
    figure = Figure(figsize=(6, 1 + 0.4 * max(len(rows), 1)), layout="constrained")
    axes = figure.subplots()
    axes.axvline(chance, **DASHED)
    at = np.arange(len(rows))
    names: Mapping[str, str] = {"intact": "as it is", "alike": "changed alike", "randomised": "randomised"}
    for colour, marker, (name, words) in zip((COLOURS[0], COLOURS[4], COLOURS[1]), "os^", names.items(), strict=True):
        axes.plot(rows[name], at, marker, color=colour, label=words)
    axes.set(yticks=at, yticklabels=rows["block"], xlabel=label, ylim=(len(rows) - 0.5, -0.5))
    figure.legend(loc="outside upper center", ncols=3)
    return save(figure, form)


def benchmark_bars(frame: pd.DataFrame, guess: float, form: str) -> bytes:
    """Right answers as bars, with the guessers' as a line; beside shortcuts the model's where the shortcut is wrong."""
    rows = frame[~frame["row"].str.startswith("best of")]
    figure = Figure(figsize=(6, 0.9 + 0.34 * len(rows)), layout="constrained")
    axes = figure.subplots()
    axes.barh(rows["row"], rows["right"], color=COLOURS[0], label="right")
    axes.plot(rows["model_on_rest"], rows["row"], "^", color=COLOURS[1], label="model where the shortcut is wrong")
    axes.axvline(guess, **DASHED, label="best guesser")
    axes.invert_yaxis()
    axes.set(xlim=(0, 1), xlabel="share of the items")
    figure.legend(loc="outside upper center", ncols=3)
    return save(figure, form)


def paired_bars(
    names: Sequence[str], series: Mapping[str, Sequence[float]], label: str, form: str, line: float | None = None
) -> bytes:
    """A bar for each name and series, side by side, the first name on top; with a dashed line at a value."""
    figure = Figure(figsize=(6.5, 0.9 + (0.14 + 0.14 * len(series)) * max(len(names), 1)), layout="constrained")
    axes, at, height = figure.subplots(), np.arange(len(names)), 0.8 / len(series)
    for i, (colour, (words, values)) in enumerate(zip(COLOURS, series.items(), strict=False)):
        axes.barh(at + (i - (len(series) - 1) / 2) * height, values, height, color=colour, label=words)
    if line is not None:
        axes.axvline(line, **DASHED)
    axes.set(yticks=at, yticklabels=names, xlabel=label)
    axes.invert_yaxis()
    figure.legend(loc="outside upper center", ncols=3)
    return save(figure, form)


def rise_points(expected: Sequence[float], measured: Sequence[float], names: tuple[str, str], form: str) -> bytes:
    """A point for each molecule: how far a step for one model raises another, to first order and measured."""
    figure = Figure(figsize=(4.6, 4.2), layout="constrained")
    axes = figure.subplots()
    axes.axline((0, 0), slope=1, **DASHED)
    axes.plot(expected, measured, "o", color=COLOURS[0], alpha=0.6, markersize=4)
    axes.set(xlabel=f"rise of {names[1]} expected of a step for {names[0]}", ylabel="measured")
    return save(figure, form)


def round_lines(curves: Mapping[str, Sequence[float]], label: str, line: float, form: str) -> bytes:
    """A line for each model, its score after every round; with a dashed line at a score."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for colour, (words, values) in zip(COLOURS, curves.items(), strict=False):
        axes.plot(np.arange(1, len(values) + 1), values, color=colour, label=words)
    axes.axhline(line, **DASHED)
    axes.set(xlabel="rounds", ylabel=label)
    figure.legend(loc="outside upper center", ncols=4)
    return save(figure, form)


def rate_lines(curves: Mapping[str, np.ndarray], rates: np.ndarray, label: str, form: str) -> bytes:
    """A line for each optimiser, its error at every learning rate."""
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for colour, (words, values) in zip(COLOURS, curves.items(), strict=False):
        axes.plot(rates, np.where(np.isfinite(values), values, np.nan), color=colour, marker="o", label=words)
    axes.set(xlabel="learning rate", ylabel=label, xscale="log")
    figure.legend(loc="outside upper center", ncols=4)
    return save(figure, form)

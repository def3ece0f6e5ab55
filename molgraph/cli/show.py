"""Print messages: coloured on a terminal, plain in a pipe, harmless in both."""

from __future__ import annotations

import logging
import shlex
import shutil
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from molgraph.base.printable import printable

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console


def console(*, err: bool = False) -> Console:
    """Standard output (or error) as a rich console, as wide as a terminal or ``COLUMNS`` says, and 200 in a pipe."""
    from rich.console import Console

    stream = sys.stderr if err else sys.stdout
    width = None if stream.isatty() else shutil.get_terminal_size((200, 24)).columns
    return Console(file=stream, highlight=False, soft_wrap=True, width=width)


def say(text: str, style: str = "", *, err: bool = False) -> None:
    """Print one line as it is, without markup."""
    from rich.text import Text

    console(err=err).print(Text(printable(text), style=style))


def command(words: Sequence[Any], note: str = "", *, err: bool = False) -> None:
    """Print a command that a person could type next."""
    from rich.text import Text

    text = Text("  ").append(printable(" ".join(shlex.quote(str(w)) for w in words)), style="cyan")
    console(err=err).print(text.append(f"   # {note}", style="dim") if note else text)


def table(frame: pd.DataFrame, *, title: str = "", marks: Collection[tuple[int, int]] = (), err: bool = False) -> None:
    """Print a frame: numbers right, with three decimals; marked cells bold and starred."""
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, padding=(0, 2, 0, 0), title=title or None, title_justify="left", header_style="bold")
    shown.add_column(str(frame.index.name or ""), overflow="fold")
    room = "  " * bool(marks)
    for name in frame.columns:
        shown.add_column(Text(printable(f"{name}{room}")), justify="right")
    for i, (label, *values) in enumerate(frame.itertuples()):
        cells = [Text(printable(str(label)))]
        for j, value in enumerate(values):
            star = (i, j) in marks
            cells.append(Text(printable(number(value)) + (" *" if star else room), "bold green" if star else ""))
        shown.add_row(*cells)
    console(err=err).print(shown)


def grid(title: str = "", *columns: str, **options: Any) -> Any:
    """An empty table of rich, as wide as its words: the first column coloured and whole, a line under the heads."""
    from rich import box
    from rich.table import Table

    shown = Table(title=title or None, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, **options)
    shown.show_edge = shown.pad_edge = False
    shown.padding = (0, 1, 0, 0)
    for i, column in enumerate(columns):
        shown.add_column(column, style="cyan" if not i else None, no_wrap=not i, header_style="dim", overflow="fold")
    return shown


def number(value: Any) -> str:
    """A number as people read it; a dash for none.

    Example:
        >>> number(0.12345), number(1234), number(float("nan")), number("a")
        ('0.123', '1,234', '-', 'a')
    """
    if isinstance(value, float):
        return "-" if value != value else f"{value:.3f}" if abs(value) < 1e4 else f"{value:.4g}"
    return f"{value:,}" if isinstance(value, int) else str(value)


@contextmanager
def steps() -> Iterator[None]:
    """While it lasts, molgraph's own messages of what it does now are printed on standard error."""

    class Say(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            say(record.getMessage(), "dim", err=True)

    logger, handler = logging.getLogger("molgraph"), Say(logging.INFO)
    before = logger.level, logger.propagate
    logger.setLevel(logging.INFO)
    logger.propagate = False
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


def show_result(result: Any, keep: str = "all") -> None:
    """Print the scores of all methods on the test part, and which did best.

    One target: a row a method, a column a metric. Several: a row a target and metric, a column a method, so that
    a table of many targets grows downwards.
    """
    import numpy as np

    from molgraph.evaluate.class_counts import few_lines
    from molgraph.evaluate.metrics import get_metric

    scores = result.scores
    if len(result.test) and len(scores):
        several = scores.columns.nlevels > 1
        shown = result.shown if several else scores.T
        metrics = [str(name).rsplit(" ", 1)[-1] for name in shown.index]
        signs = [1 if get_metric(metric).higher_is_better else -1 for metric in metrics]
        values = shown.to_numpy(np.float64) * np.array(signs)[:, None]
        marks = {(i, int(np.nanargmax(row))) for i, row in enumerate(values) if not np.isnan(row).all()}
        scores, marks = (shown, marks) if several else (scores, {(j, i) for i, j in marks})
        say("")
        table(scores, marks=marks)
        for note in (*few_lines(result.classes), *result.notes):
            say(note, "dim")
        say("")
    for verdict in result.verdicts:
        say(f"{verdict.sentence}.", {"clear": "bold green", "tie": "bold", "warning": "bold yellow"}[verdict.tone])
        say(verdict.detail)
    for sentence in result.reliability:
        say(f"{sentence}.")
    if not result.verdicts:
        say(result.verdict)
    elif result.cv is not None:
        for sentence in result.cv.sentences(result.model.name):
            say(f"{sentence}.", "bold")
    for gap in result.gaps:
        say(f"{gap.sentence}.", "bold green" if gap.used else "bold yellow")
    clear = all(verdict.tone == "clear" for verdict in result.verdicts)
    if (
        keep in ("all", "model")
        and result.baseline is not None
        and clear
        and set(result.best.values()) == {result.baseline.name}
    ):
        say(f"The forest did better than {result.model.kind} here; --keep best chooses by the validation part.")

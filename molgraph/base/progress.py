"""Show progress on the terminal: a bar with its rate and the time left."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sized
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from rich.progress import Progress

T = TypeVar("T")
_shown: list[Progress] = []  # the display on the terminal, where there is one: bars inside bars share it


class Bar:
    """One line of progress, or none; ``advance`` takes a microsecond, so loops may call it for every item."""

    def __init__(self, progress: Progress | None = None, task: Any = None) -> None:
        self._progress, self._task = progress, task

    def advance(self, n: int = 1) -> None:
        """Count ``n`` more steps as done."""
        if self._progress is not None:
            self._progress.advance(self._task, n)

    def describe(self, text: str) -> None:
        """Show another text before the bar."""
        if self._progress is not None:
            self._progress.update(self._task, description=text)


def visible(quiet: bool | None = None) -> bool:
    """Whether bars are drawn: standard error is a terminal, and nobody asked for quiet."""
    if quiet or os.environ.get("MOLGRAPH_QUIET"):
        return False
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def bar(label: str = "", total: int | None = None, quiet: bool | None = None) -> Iterator[Bar]:
    """A bar for loops that count for themselves.

    Args:
        label: what is being done, such as ``"training"``.
        total: number of steps, where it is known: then the time left is shown.
        quiet: True hides it; by default it shows on a terminal unless ``MOLGRAPH_QUIET`` is set.

    Example:
        >>> with bar("training", total=3) as progress:
        ...     for epoch in range(3):
        ...         progress.describe(f"epoch {epoch}")
        ...         progress.advance()
    """
    if not visible(quiet) or total == 0:
        yield Bar()
        return
    outermost = not _shown
    if outermost:
        _shown.append(_display())
        _shown[-1].start()
    display = _shown[-1]
    task = display.add_task(label, total=total)
    try:
        yield Bar(display, task)
    finally:
        display.remove_task(task)
        if outermost:
            _shown.pop().stop()


def track(iterable: Iterable[T], total: int | None = None, label: str = "", quiet: bool | None = None) -> Iterator[T]:
    """The items of ``iterable``, with a bar while they are used.

    Example:
        >>> list(track([3, 4], label="reading"))
        [3, 4]
    """
    if total is None and isinstance(iterable, Sized):
        total = len(iterable)
    with bar(label, total, quiet) as line:
        for item in iterable:
            yield item
            line.advance()


def _display() -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
    from rich.table import Column
    from rich.text import Text

    class Count(ProgressColumn):
        """Steps done of all steps, and steps a second, or seconds a step where they are slow."""

        def render(self, task: Task) -> Text:
            done, speed = f"{int(task.completed):,}", task.finished_speed or task.speed or 0.0
            rate = f"{speed:,.0f}/s" if speed >= 10 else f"{speed:.1f}/s" if speed >= 1 else ""
            rate = rate or (f"{1 / speed:.1f} s each" if speed else "")
            return Text(
                f"{done if task.total is None else f'{done} of {int(task.total):,}'} {rate}", "progress.download"
            )

    whole = Column(no_wrap=True)  # a number cut short is worse than a label cut short
    label = TextColumn("{task.description}", table_column=Column(no_wrap=True, overflow="ellipsis"))
    console = Console(file=sys.stderr)
    columns = (Count(whole), TimeRemainingColumn(compact=True, table_column=whole.copy()))
    bar_width = 40 if console.width >= 120 else 20
    left = TextColumn("left", table_column=whole.copy())
    return Progress(label, BarColumn(bar_width), *columns, left, console=console, transient=True)

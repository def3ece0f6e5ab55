"""Define ``Study``, the base class of analyses that return a table, a figure, a conclusion and two controls."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

import pandas as pd

from molgraph.base.contracts import Method
from molgraph.base.csv_text import csv_text
from molgraph.base.errors import MissingOptionError, UnsupportedError
from molgraph.base.parts import make_part, read_part
from molgraph.base.paths import check_ending, write_whole
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model

SECONDS = 120.0  # of a study, if not said otherwise
NARROW, SHORT = 24, 40  # characters of a cell, and rows, that a terminal shows


@dataclass(frozen=True)
class Control:
    """A case whose answer is known: a study that gets it wrong says nothing.

    Args:
        name: of the case.
        expected, measured: the answer that is known, and that of the study, in words.
        holds: whether they agree.
    """

    name: str
    expected: str
    measured: str
    holds: bool

    def __str__(self) -> str:
        return f"{self.name}: {self.measured} (expected: {self.expected}{'' if self.holds else '; IT DOES NOT HOLD'})"


@dataclass(frozen=True)
class Findings:
    """What a study measured.

    Args:
        title: of the study and its subject.
        sentence: the answer.
        frame: the figures behind it.
        positive: a case with an effect, which the study has to see.
        negative: a case without one, where it has to see none.
        draw: makes the picture, as ``png`` or ``svg``.
        notes: what was left out, such as repeats for which there was no time.
    """

    title: str
    sentence: str
    frame: pd.DataFrame
    positive: Control
    negative: Control
    draw: Callable[[str], bytes] | None = None
    notes: tuple[str, ...] = ()

    @property
    def sound(self) -> bool:
        """Whether both controls hold."""
        return bool(self.positive.holds and self.negative.holds)

    def save(self, path: str | Path) -> Path:
        """Write a page (.html), the picture (.png, .svg) or the table (.csv)."""
        check_ending(path, ".html", ".png", ".svg", ".csv")
        form = Path(path).suffix[1:].lower()
        if form == "csv":
            return write_whole(path, csv_text(self.frame))
        if form == "html":
            return write_whole(path, f'<!doctype html><meta charset="utf-8">{self._repr_html_()}')
        if self.draw is None:
            raise UnsupportedError(f"{self.title} has no picture", hint="write an .html page or a .csv table")
        return write_whole(path, self.draw(form))

    @property
    def narrow(self) -> str:
        """The table as text, without columns of sentences and empty ones."""
        wide = [name for name in self.frame if self.frame[name].map(lambda cell: len(str(cell))).max() > NARROW]
        frame = self.frame.drop(columns=wide).replace("", None).dropna(axis=1, how="all")
        how = {"index": False, "na_rep": "", "float_format": lambda x: f"{x:.3f}".rstrip("0").rstrip(".")}
        text = frame.head(SHORT).to_string(**how)
        return text if len(frame) <= SHORT else f"{text}\n{len(frame) - SHORT:,} more rows: -o table.csv has all"

    def __repr__(self) -> str:
        controls = map(str, (self.positive, self.negative))
        return "\n".join([self.title, self.narrow, self.sentence, *controls, *self.notes])

    def _repr_html_(self) -> str:
        picture = "" if self.draw is None else self.draw("svg").decode()
        lines = [self.sentence, *map(str, (self.positive, self.negative)), *self.notes]
        words = "".join(f"<p>{escape(line)}</p>" for line in lines)
        table = self.frame.to_html(index=False, border=0, float_format="{:.3f}".format)
        style = "font:14px system-ui,sans-serif;color:#1d2733;max-width:1100px;overflow-x:auto"
        return f'<div style="{style}"><h1 style="font-size:20px">{escape(self.title)}</h1>{words}{picture}{table}</div>'


@dataclass(frozen=True)
class Subject:
    """What a study is about; a study takes what it ``needs``.

    Args:
        data: anything that ``read_table`` reads.
        model: a method's name with its settings, a fitted model or its file.
        columns: which columns of ``data`` are which: ``smiles``, ``targets``, ...
    """

    data: Any = None
    model: str | Path | Model | None = None
    columns: Mapping[str, Any] = field(default_factory=dict)

    def table(self) -> Table:
        """The rows of ``data``."""
        if self.data is None:
            raise MissingOptionError("this study needs data", hint="name a table, such as dataset:esol")
        return read_table(self.data, **self.columns)

    def make(self, **params: Any) -> Method:
        """A fresh method of the name in ``model``, with parameters laid over its own."""
        if not isinstance(self.model, str):
            raise MissingOptionError("this study needs the name of a model", hint="such as -m dmpnn")
        return make_method(self.model, **params)

    def fitted(self) -> Model:
        """The fitted model."""
        if self.model is None:
            raise MissingOptionError("this study needs a model's file", hint="name it: -m model.mgm")
        return self.model if isinstance(self.model, Model) else load_model(self.model)


class Study(ABC):
    """The base class of studies, registered with ``@register("study", name)``; settings are keyword arguments.

    ``needs``: ``data``, ``model`` (a name, of which fresh methods are made), ``graph_model`` (one of an encoder) or
    ``fitted`` (a model's file).
    ``reads``: rows of trials: ``molecules``, molecules of ``classes``, ``pairs`` of a molecule and a protein, frames of
    a ``trajectory``, ``vectors`` with their molecules (or molecules with the file of their encoder), ``texts`` of a
    language model.
    """

    reads: Literal["molecules", "classes", "pairs", "trajectory", "vectors", "texts"] = "molecules"
    needs: tuple[Literal["data", "model", "graph_model", "fitted"], ...] = ("data",)
    small: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Do the experiment.

        Args:
            subject: the data or the model.
            seed: the same seed gives the same findings.
            seconds: of CPU time; a study with more repeats than fit does fewer and says so.
        """


def study(
    name: str,
    data: Any = None,
    *,
    model: str | Path | Model | None = None,
    seed: int = 0,
    seconds: float = SECONDS,
    **columns: Any,
) -> Findings:
    """Analyse data or a model.

    Args:
        name: a registered study with its settings, such as ``temperature-sweep(n=200)``; ``molgraph.names("study")``.
        data: what it is about, as ``read_table`` reads it.
        model: a method's name with its settings, a fitted model or its file, as the study needs.
        seed: the same seed gives the same findings.
        seconds: of CPU time.
        columns: which columns of ``data`` are which (``smiles="..."``, ``targets=[...]``).

    Returns:
        The findings: ``print`` them, ``save("page.html")``.

    Raises:
        UsageError: no such study or setting, or no data or model that it needs.

    Example:
        >>> import molgraph
        >>> found = molgraph.study("xray(splits=random)", "builtin:chembl2321810")
        >>> found.sound, found.frame["split"].tolist()
        (True, ['random'])
    """
    instance: Study = make_part("study", name)
    for need, value in (("data", data), ("model", model), ("graph_model", model), ("fitted", model)):
        if need in instance.needs and value is None:
            kinds = {"data": "a table", "model": "a model's name", "graph_model": "a graph model's name"}
            kind = kinds.get(need, "a model's file")
            hint = f"molgraph study {read_part(name).name} " + ("DATA" if need == "data" else "-m MODEL")
            raise MissingOptionError(f"{name} is about {kind}, and none is named", hint=hint)
    return instance.run(Subject(data, model, columns), seed=seed, seconds=seconds)

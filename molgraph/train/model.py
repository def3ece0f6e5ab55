"""Define ``Model``: a fitted method that predicts molecules in any form, in the targets' units."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Generator, Method, Prediction, PredictsGraphs, Target, Trainable
from molgraph.base.errors import BadValueError, MissingOptionError, UnsupportedError
from molgraph.base.positions import geometry_of
from molgraph.data.levels import labelled
from molgraph.data.read import read_table
from molgraph.data.reading.formats import names_file
from molgraph.data.standardise import as_given, mark_no_molecules, standardise
from molgraph.data.table import Table, make_table
from molgraph.evaluate import metrics
from molgraph.evaluate.class_counts import few_lines
from molgraph.train.analogues import Analogues
from molgraph.train.card import ModelCard, scores_html
from molgraph.train.confidence.confidence import Confidence
from molgraph.train.inputs import named_columns
from molgraph.train.modelwriter import write_model
from molgraph.train.parents import read_measured, with_parents
from molgraph.train.training_molecules import molecule_hashes

logger = logging.getLogger("molgraph")


class Model:
    """A fitted method or generator with the step that its molecules go through first, and its card.

    Args:
        method: fitted.
        targets: what it predicts; none for a pretrained encoder or a generator.
        standardiser: the preset that its training molecules went through, applied again here.
        feature_names: descriptor columns that it needs beside the molecules.
        card: what it is.
        trained_on: hashes of the molecules that it learnt from (``molgraph.train.training_molecules``), or None. They
            name no molecule, but who has a molecule can find out whether it is among them.
        confidence: gives predictions their intervals, grades and nearest training molecules, or None.
    """

    def __init__(
        self,
        method: Trainable,
        *,
        targets: Sequence[Target],
        standardiser: str = "standard",
        feature_names: Sequence[str] = (),
        card: ModelCard | None = None,
        trained_on: np.ndarray | None = None,
        confidence: Confidence | None = None,
    ) -> None:
        self.method, self.targets, self.standardiser = method, tuple(targets), standardiser
        self.feature_names, self.card = tuple(feature_names), card or ModelCard()
        self.trained_on, self.confidence = trained_on, confidence
        self.analogues: Analogues | None = None

    @property
    def name(self) -> str:
        """The model's short name: its encoder's, or its method's."""
        return self.card.name or self.method.model_name

    @property
    def coverage(self) -> float | None:
        """Share of measured values that its intervals are made to hold; None without intervals."""
        coverage = getattr(self.method, "coverage", None)
        return self.confidence.coverage if coverage is None and self.confidence is not None else coverage

    @property
    def n_kept(self) -> int:
        """Training molecules that its file holds, to name the nearest one of a molecule."""
        return 0 if self.confidence is None or self.confidence.references is None else len(self.confidence.references.y)

    def with_coverage(self, coverage: float | None) -> Model:
        """The same model whose intervals hold this share of the values; None for values alone, without a domain.

        Raises:
            UsageError: no share between 0 and 1, or a model without such intervals.

        Example:
            >>> import molgraph
            >>> model = molgraph.train("builtin:chembl2321810", model="linear").model
            >>> wide, narrow = (model.with_coverage(share).predict(["CCO"]).interval[1] for share in (0.9, 0.5))
            >>> bool(wide > narrow)
            True
        """
        model = copy(self)
        if coverage is None:
            model.confidence = None
            return model
        if self.confidence is None:
            hint = "train it again with a validation part; conformal(...) has that of its training"
            raise UnsupportedError("this model has no intervals whose coverage could be chosen", hint=hint)
        model.confidence = self.confidence.at(coverage)
        return model

    @property
    def kind(self) -> str:
        """What it is in words: its name, or ``ensemble of 5 dmpnn``."""
        return self.method.title if self.method.members else self.name

    def predict(
        self, data: Any, *, parent: Any = None, parent_share: float | None = None, **columns: Any
    ) -> Prediction:
        """Predict molecules.

        Args:
            data: a list, Series or array of SMILES or RDKit molecules, a frame, a path, or a table.
            parent: measured molecules with the model's targets, by whose errors the numbers of their analogues are
                corrected (``molgraph.train.parents``); None for none.
            parent_share: the weight of one of them, 0 to 1; None to estimate it.
            columns: which columns are which (``smiles="..."``, ``id="..."``), where data has columns; ``decimal`` is
                ``","`` where descriptors have decimal commas, as in the training if not given.

        Returns:
            One row for each row of data, in order; NaN and a reason where a molecule could not be read.
            Its ``to_frame()`` keeps the index of a frame or Series, so that a column of it can be put beside.
        """
        model = self if parent is None else with_parents(self, parent, parent_share)
        return model.predict_table(self.read(data, **columns))

    def predict_table(self, table: Table) -> Prediction:
        """Predict the rows of a table as it was read; the standardiser is applied here.

        A row that RDKit reads and that is no molecule has no value, but a status and a reason (decision 0025).
        """
        return self._predict(table)

    def _predict(self, table: Table, *, all_rows: bool = False) -> Prediction:
        method, clean = self.check_predicts(), standardise(table, self.standardiser)
        clean = clean if all_rows else mark_no_molecules(clean, self.standardiser)
        prediction = method.predict(clean)
        if self.confidence is not None:
            prediction = self.confidence.extend(prediction, clean, refuse=not all_rows)
        if self.analogues is not None:
            prediction = self.analogues.correct(prediction, clean)
        prediction = as_given(prediction, table, clean, self.standardiser)
        return replace(prediction, index=table.index)

    def check_predicts(self) -> Method:
        """The method that predicts; raise ``UnsupportedError`` where the model has no targets."""
        if isinstance(self.method, Method) and self.targets:
            return self.method
        hint = "start from it (molgraph train DATA --init FILE), or write its vectors (molgraph embed FILE DATA)"
        if isinstance(self.method, Generator):
            hint = "it proposes molecules: molgraph generate FILE -n 1000"
        raise UnsupportedError(f"this is {self.card.what or f'a {self.name}'}, which predicts no target", hint=hint)

    def evaluate(self, data: Any, *, report: str | Path | None = None, **columns: Any) -> pd.DataFrame:
        """Scores on labelled molecules: a row for each target and metric.

        Rows whose molecule the model learnt from are counted in a warning; files of older versions cannot tell.

        Args:
            data: a path, a frame or a table that has the model's target columns.
            report: an HTML page to write: scores with their 95% intervals, plots, worst errors.
            columns: which columns are which (``smiles="..."``, ``weight="..."``), and how values are read
                (``decimal``, ``qualifiers``, ``unit``, ``log``), where it is otherwise than in the training.
        """
        self.check_predicts()
        table = read_measured(self, data, **columns)
        prediction = self._predict(table, all_rows=True)  # what was measured is scored, as in the training
        for note in (notes := list(filter(None, [self._seen_words(table)]))):
            logger.warning(note)
        scores = metrics.score(table, prediction)
        if report is not None:
            from molgraph.evaluate.report import write_report  # with matplotlib and jinja2

            title = f"{self.kind} evaluated on {', '.join(t.name for t in self.targets)}"
            tables = {"predictions": {self.kind: prediction}, "scores": metrics.scores_frame({self.kind: scores})}
            write_report(report, title=title, table=table, notes=notes, manifest=self.summary(), **tables)
        return metrics.scores_frame(scores)

    def _seen_words(self, table: Table) -> str:
        """How many measured rows hold an entity that the model learnt from; empty where none is known to."""
        if self.trained_on is None or not table.targets:
            return ""
        measured = np.flatnonzero(labelled(table) & table.ok)
        hashes = molecule_hashes(standardise(table.take(measured), self.standardiser))
        n = int(np.isin(hashes, self.trained_on).sum())
        rows = f"{n:,} of {len(measured):,} rows {'holds' if n == 1 else 'hold'}"
        kind = table.entities[0].kind if len(table.entities) == 1 else "pair"
        what = "molecule" if kind == "geometry" else kind
        return f"{rows} a {what} that the model learnt from: these scores flatter it" if n else ""

    def read(self, data: Any, **columns: Any) -> Table:
        """The table that ``data`` is, with the descriptor columns that this model needs, read as in the training."""
        if isinstance(data, Table):
            return data
        columns = self.how_read(columns)
        if isinstance(data, str) and not names_file(data):
            raise BadValueError(f"{data!r} is no file", hint=f"for one molecule write a list: predict([{data!r}])")
        if isinstance(data, (list, tuple, pd.Series)) or type(data).__module__ == "numpy":
            if self.feature_names:
                raise MissingOptionError(
                    f"this model needs the columns {list(self.feature_names)} beside the molecules",
                    hint="give a frame or a file that has them",
                )
            kind, name = self.columns_read[0]
            if kind == "graph":  # which may have the labels of an evaluation in them
                return read_table(data, **columns | {"on_error": "keep"})
            if kind != "molecule":
                return read_table({name: list(data)}, **columns | {"on_error": "keep"})
            return make_table(list(data), index=data.index if isinstance(data, pd.Series) else None)
        if isinstance(data, pd.DataFrame):
            table = read_table(data, **columns | {"on_error": "keep"})
            # a row that is dropped takes its label along, so that the others keep theirs
            return read_table(replace(table, index=data.index), on_error=columns.get("on_error", "keep"))
        return read_table(data, **columns)

    def how_read(self, given: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The columns that this model needs, and how the training was told to read its descriptors.

        Raises:
            BadValueError: ``given`` names more or fewer columns than the model reads, or its own in another order.
        """
        columns: dict[str, Any] = {"features": self.feature_names}
        if self.feature_names:
            columns |= {
                name: self.table_settings()[name] for name in ("decimal", "gaps") if self.table_settings().get(name)
            }
        return {**columns, **(given or {}), **named_columns(self.columns_read, given or {})}

    @property
    def columns_read(self) -> list[tuple[str, str]]:
        """Kind and name of each entity column that the model reads."""
        inputs = self.method.graph_inputs() if isinstance(self.method, PredictsGraphs) else ()
        return [(input_.kind, input_.column) for input_ in inputs] or [("molecule", "smiles")]

    def table_settings(self) -> Mapping[str, Any]:
        """What the training's recipe says of its table."""
        settings = self.card.recipe.get("data", {})
        return settings if isinstance(settings, Mapping) else {}

    def with_note(self, note: str) -> Model:
        """The same model, with one more note on its card."""
        model = copy(self)
        model.card = replace(self.card, notes=(*self.card.notes, note))
        return model

    def save(self, path: str | Path) -> Path:
        """Write the model as one file, which ``molgraph.load`` reads; the path is returned."""
        return write_model(path, self)

    def summary(self) -> dict[str, str]:
        """What the model is, in a few named lines."""
        card = self.card
        lines = {"model": self.kind}
        if self.targets:
            lines["predicts"] = ", ".join(_target(t, card.units) for t in self.targets)
        if card.what:
            lines["what"] = card.what
        if card.n_train:
            lines["rows"] = f"{card.n_train:,} trained on, {card.n_valid:,} validation, {card.n_test:,} test"
        lines |= card.limits_line
        if card.classes:
            lines["classes"] = "; ".join(few_lines(pd.DataFrame(list(card.classes))))
        if card.split:
            lines["split"] = f"{card.split} ({card.split_hash[:12]})"
        words = {"estimate": card.estimate, "geometry": geometry_of(self.method)}
        lines |= {name: text for name, text in words.items() if text}
        lines["standardiser"] = self.standardiser
        if self.feature_names:
            lines["features"] = ", ".join(self.feature_names)
        lines["made"] = f"{card.created} by molgraph {card.versions.get('molgraph', '?')}"
        return lines

    def __repr__(self) -> str:
        words = ", ".join(f"{key}={value!r}" for key, value in list(self.summary().items())[:3])
        return f"Model({words})"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><th style='text-align:left'>{escape(key)}</th><td style='text-align:left'>{escape(value)}</td></tr>"
            for key, value in self.summary().items()
        )
        notes = "".join(f"<p>{escape(note)}</p>" for note in self.card.notes)
        return f"<table>{rows}</table>{scores_html(self.card.scores)}{notes}"


def _target(target: Target, units: Any) -> str:
    unit = units.get(target.name, "")
    level = f" of each {target.level}" if target.level != "row" else ""
    return f"{target.name} ({target.kind}{level}{', ' + unit if unit else ''})"

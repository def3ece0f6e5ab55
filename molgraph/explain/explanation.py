"""Explain molecules by a registered explainer, and hold the drawings for a notebook, a page or a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch

from molgraph.base.csv_text import csv_text
from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import make_part, read_part
from molgraph.base.paths import check_ending, write_whole
from molgraph.base.printable import count, printable
from molgraph.base.registry import get, names
from molgraph.chem.draw import draw_molecule
from molgraph.chem.smiles import parse_smiles
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.standardise import standardise
from molgraph.explain.deletion import MEASURES, deletion_curves, summary
from molgraph.explain.explainer import Explainer
from molgraph.train.inputs import graph_of_rows, input_graphs
from molgraph.train.large_graphs import too_large
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model

WIDTH, HEIGHT = 300, 240  # of one molecule, pixels
SHOWN = 10  # molecules that are written out in a terminal


@dataclass(frozen=True, repr=False)
class Explanation:
    """What an explainer says of some molecules; a notebook shows the drawings.

    Args:
        by: the explainer's name.
        smiles: each molecule as the model reads it, after its standardiser; or as it was given, if it cannot be read.
        reasons: why the model has nothing to say of it; empty where it has.
        level: what has a value: ``atom``, ``bond`` or ``fragment``.
        values: a row for each of those: ``molecule``, ``atom``, ``value``, and the explainer's own columns.
        svgs: a drawing each, an ``<svg>`` element.
        captions: the text under each.
        notes: what the values are, and are not.
        faithfulness: a row a molecule whose atoms have values that explain its prediction: ``molecule``, and
            ``deletion_area``, ``random_area`` and ``beats_random``, the fields of ``explain.deletion.Deletion``, which
            ``values`` has too; else of no rows.
        counterfactuals: molecules near these on the other side of the prediction, as ``molgraph.counterfactuals`` has
            them, where they were asked for; their drawings follow the others.
    """

    by: str
    smiles: tuple[str, ...]
    reasons: tuple[str, ...]
    level: str
    values: pd.DataFrame
    svgs: tuple[str, ...]
    captions: tuple[str, ...]
    notes: tuple[str, ...] = ()
    faithfulness: pd.DataFrame = field(default_factory=lambda: pd.DataFrame(columns=MEASURES))
    counterfactuals: pd.DataFrame = field(default_factory=pd.DataFrame)

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawings as an HTML page, that of a single molecule as ``.svg``, or the values as ``.csv``.

        Raises:
            UsageError: an ``.svg`` file for several molecules, or another ending.
        """
        check_ending(path, ".html", ".svg", ".csv")
        ending = Path(path).suffix.lower()
        if ending == ".csv":
            return write_whole(path, csv_text(self.values))
        if ending == ".svg" and len(self.svgs) != 1:
            words = f"an .svg file holds one molecule, these are {len(self.svgs)}"
            raise UnsupportedError(words, hint="write an .html page")
        return write_whole(path, self._repr_html_() if ending == ".html" else self.svgs[0])

    def _repr_html_(self) -> str:
        figures = "".join(
            f'<figure style="margin:0;width:{WIDTH}px">{svg}<figcaption style="font:12px system-ui,sans-serif;'
            f'overflow-wrap:anywhere;text-align:center">{escape(text)}</figcaption></figure>'
            for text, svg in zip(self.captions, self.svgs, strict=True)
        )
        notes = "".join(f'<p style="font:12px system-ui,sans-serif;width:100%">{escape(n)}</p>' for n in self.notes)
        style = "display:flex;flex-wrap:wrap;gap:16px;background:#fff;color:#1d2733"
        return f'<!doctype html><meta charset="utf-8"><div style="{style}">{figures}{notes}</div>'

    def __repr__(self) -> str:
        head = f"{self.by} of {count(len(self.smiles), 'molecule')}"
        lines = [head, *(f"  {text}" for text in self.captions[:SHOWN]), *["  ..."] * (len(self.captions) > SHOWN)]
        return printable("\n".join([*lines, *self.notes]))


def explain(
    model: Model | str | os.PathLike[str], smiles: str | Sequence[str], by: str = "", *, faithfulness: bool = True
) -> Explanation:
    """Explain molecules by what a fitted model holds: atoms, bonds or fragments get values, and are drawn.

    Without a name the explainer is chosen by the model: exact contributions of sums over atoms, Shapley values of trees
    and linear models on fingerprints, gradients of other networks, replaced fragments of anything else that predicts.

    Args:
        model: a model of molecules, or the path of its file.
        smiles: one molecule, or several.
        by: a registered explainer with its settings, such as ``salience(block=core)``; ``molgraph.names("explainer")``.
        faithfulness: whether deletion curves are measured, where the values explain predictions.

    Raises:
        UsageError: a model that the explainer does not read, an unknown explainer or setting.

    Example:
        >>> import molgraph
        >>> options = {"model": "rfm", "params": {"d_hidden": 8}, "epochs": 1, "baseline": False}
        >>> model = molgraph.train("builtin:chembl2321810", **options).model
        >>> found = molgraph.explain(model, ["CCO", "not a molecule"], by="salience")
        >>> found.values[["molecule", "atom", "other"]].values.tolist(), found.reasons
        ([[0, 0, 1], [0, 1, 2]], ('', 'cannot be read'))
        >>> molgraph.explain(model, "CCO").by
        'gradients'
    """
    loaded = model if isinstance(model, Model) else load_model(model)
    for text in [by] if by else suited(loaded):
        explainer: Explainer = make_part("explainer", text)
        read = _read_by(loaded, explainer)
        if not explainer.can_read(read):
            hint = f"train one that has: molgraph train -m {explainer.model}"
            raise UnsupportedError(f"a {loaded.kind} has no {explainer.reads}", hint=hint)
        texts, batch, reasons = read_molecules(loaded, smiles)
        try:
            with torch.no_grad():
                result = explainer.explain(read, batch, texts)
            break
        except UnsupportedError:  # such as a target of several classes, which a sum over atoms is none of
            if by or text == suited(loaded)[-1]:
                raise
    if result.columns:
        known = {*result.values["molecule"]}
        reasons = tuple(reason or "it has no prediction" * (i not in known) for i, reason in enumerate(reasons))
    curves = deletion_curves(loaded, texts, result) if result.columns and faithfulness else {}
    svgs = tuple(draw_molecule(texts[i], width=WIDTH, height=HEIGHT, **how) for i, how in result.drawings)
    captions = tuple(
        (text or ": ".join(filter(None, (texts[i], reasons[i])))) + (f"; {curves[i]}" if i in curves else "")
        for (i, _), text in zip(result.drawings, result.captions, strict=True)
    )
    frame = pd.DataFrame([(i, *curve) for i, curve in curves.items()], columns=MEASURES)
    values = result.values.merge(frame, on="molecule", how="left") if curves else result.values
    notes = (*result.notes, *filter(None, [summary(curves)]))
    return Explanation(
        read_part(text, "explainer").name, texts, reasons, result.level, values, svgs, captions, notes, frame
    )


def suited(model: Model) -> list[str]:
    """The explainers of predictions that read a model, the one to prefer first.

    Raises:
        UnsupportedError: none does, as the model predicts nothing.
    """
    ranked = sorted((get("explainer", name).rank, name) for name in names("explainer"))
    explainers = [
        name for rank, name in ranked if rank and (part := make_part("explainer", name)).can_read(_read_by(model, part))
    ]
    if not explainers:
        hint = "name one that reads what it holds: --by NAME; molgraph models --kind explainer lists them"
        raise UnsupportedError(f"a {model.kind} predicts nothing that could be explained", hint=hint)
    return explainers


def _read_by(model: Model, explainer: Explainer) -> Any:
    """The model, or its encoder, as the explainer asks."""
    if explainer.whole_model:
        return model
    return model.method.ready().network.encoder if isinstance(model.method, GraphMethod) else None


def read_molecules(model: Model, smiles: str | Sequence[str]) -> tuple[tuple[str, ...], GraphBatch, tuple[str, ...]]:
    """Molecules as a model reads them.

    Returns:
        Each molecule after the model's standardiser, or as it was given if it cannot be read; a graph for each, of no
        atoms for one that cannot be read or is too large (no graphs, for a model that reads none); which of both it is,
        empty for the others.

    Raises:
        UnsupportedError: a model that reads more than one molecule a row.
    """
    method = model.method
    if model.columns_read != [("molecule", model.columns_read[0][1])]:
        raise UnsupportedError("this model does not read one molecule a row, which drawing asks for")
    raw = [str(value or "") for value in ([smiles] if isinstance(smiles, str) else smiles)]
    # a row without a molecule has no graph; one that cannot be read has an empty one, as the last row here
    table = standardise(model.read([text.strip() or "none" for text in (*raw, "")]), model.standardiser)
    graphs = input_graphs(table, method.graph_inputs()) if isinstance(method, GraphMethod) else ()
    if not isinstance(method, GraphMethod) or "atom" not in graphs[0].store.levels:
        ok = [
            bool(fine) and parse_smiles(str(text)).mol is not None
            for text, fine in zip(table.smiles, table.ok, strict=True)
        ]
        reasons = tuple("" if fine else "cannot be read" for fine in ok[:-1])
        texts = tuple(standard if fine else text for standard, text, fine in zip(table.smiles, raw, ok, strict=False))
        return texts, GraphBatch(0, {}), reasons
    *rows, empty = graph_of_rows(graphs)[:, 0].tolist()
    encoder = method.ready().network.encoder
    large = {graph: f"cannot be drawn: {error.message}" for graph, error in too_large(encoder, graphs[0].store).items()}
    drawn = [empty if graph < 0 or graph in large else graph for graph in rows]  # below 0: the standardiser refused it
    batch = collate(graphs[0].store, np.array(drawn, dtype=np.int64))
    sizes = batch["atom"].offsets.diff().tolist()
    texts = tuple(standard if n else text for standard, text, n in zip(table.smiles, raw, sizes, strict=False))
    reasons = tuple("" if n else large.get(g, "cannot be read") for g, n in zip(rows, sizes, strict=True))
    return texts, batch, reasons

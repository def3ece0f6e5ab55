"""Explain molecules by a registered explainer, and hold the drawings for a notebook, a page or a picture."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

import numpy as np
import pandas as pd
import torch

from molgraph.base.csv_text import csv_text
from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import make_part, read_part
from molgraph.base.paths import check_ending, write_whole
from molgraph.base.printable import count, printable
from molgraph.chem.draw import draw_molecule
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.standardise import standardise
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
    """

    by: str
    smiles: tuple[str, ...]
    reasons: tuple[str, ...]
    level: str
    values: pd.DataFrame
    svgs: tuple[str, ...]
    captions: tuple[str, ...]
    notes: tuple[str, ...] = ()

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
        head = f"{self.by} of {count(len(self.smiles), 'molecule')}; save('explained.html') draws them"
        lines = [head, *(f"  {text}" for text in self.captions[:SHOWN]), *["  ..."] * (len(self.captions) > SHOWN)]
        return printable("\n".join([*lines, *self.notes]))


def explain(model: Model | str | os.PathLike[str], smiles: str | Sequence[str], by: str) -> Explanation:
    """Explain molecules by what a fitted model holds: atoms, bonds or fragments get values, and are drawn.

    Args:
        model: a graph model of molecules, or the path of its file.
        smiles: one molecule, or several.
        by: a registered explainer with its settings, such as ``salience(block=core)``; ``molgraph.names("explainer")``.

    Raises:
        UsageError: a model that the explainer does not read, an unknown explainer or setting.

    Example:
        >>> import molgraph
        >>> options = {"model": "rfm", "params": {"d_hidden": 8}, "epochs": 1, "baseline": False}
        >>> model = molgraph.train("builtin:chembl2321810", **options).model
        >>> found = molgraph.explain(model, ["CCO", "not a molecule"], by="salience")
        >>> found.values[["molecule", "atom", "other"]].values.tolist(), found.reasons
        ([[0, 0, 1], [0, 1, 2]], ('', 'cannot be read'))
    """
    explainer: Explainer = make_part("explainer", by)
    loaded = model if isinstance(model, Model) else load_model(model)
    encoder = loaded.method.ready().network.encoder if isinstance(loaded.method, GraphMethod) else None
    read = loaded if explainer.whole_model else encoder
    if not explainer.can_read(read):
        hint = f"train one that has: molgraph train -m {explainer.model}"
        raise UnsupportedError(f"a {loaded.kind} has no {explainer.reads}", hint=hint)
    texts, batch, reasons = read_molecules(loaded, smiles)
    with torch.no_grad():
        made = explainer.explain(read, batch, texts)
    svgs = tuple(draw_molecule(texts[i], width=WIDTH, height=HEIGHT, **how) for i, how in made.drawings)
    captions = tuple(
        text or ": ".join(filter(None, (texts[i], reasons[i])))
        for (i, _), text in zip(made.drawings, made.captions, strict=True)
    )
    name = read_part(by, "explainer").name
    return Explanation(name, texts, reasons, made.level, made.values, svgs, captions, made.notes)


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
    given = [str(each or "") for each in ([smiles] if isinstance(smiles, str) else smiles)]
    # a row without a molecule has no graph; one that cannot be read has an empty one, as the last row here
    table = standardise(model.read([text.strip() or "none" for text in (*given, "")]), model.standardiser)
    if not isinstance(method, GraphMethod):
        reasons = tuple("" if fine else "cannot be read" for fine in table.ok[:-1])
        texts = tuple(own if fine else text for own, text, fine in zip(table.smiles, given, table.ok, strict=False))
        return texts, GraphBatch(0, {}), reasons
    graphs = input_graphs(table, method.graph_inputs())
    *rows, empty = graph_of_rows(graphs)[:, 0].tolist()
    encoder = method.ready().network.encoder
    large = {graph: f"cannot be drawn: {error.message}" for graph, error in too_large(encoder, graphs[0].store).items()}
    drawn = [empty if graph < 0 or graph in large else graph for graph in rows]  # below 0: the standardiser refused it
    batch = collate(graphs[0].store, np.array(drawn, dtype=np.int64))
    sizes = batch["atom"].offsets.diff().tolist()
    texts = tuple(own if n else text for own, text, n in zip(table.smiles, given, sizes, strict=False))
    reasons = tuple("" if n else large.get(g, "cannot be read") for g, n in zip(rows, sizes, strict=True))
    return texts, batch, reasons

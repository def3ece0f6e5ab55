"""Read molecules as a trained model does, and hold their drawings for a notebook, a page or a picture file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import NamedTuple

import numpy as np

from molgraph.api.prediction import load
from molgraph.base.errors import UsageError
from molgraph.base.paths import write_whole
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.standardise import standardise
from molgraph.nn.encoder import Encoder
from molgraph.train.inputs import graph_of_rows, input_graphs
from molgraph.train.large_graphs import too_large
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model

WIDTH, HEIGHT = 300, 240  # of one molecule, pixels
SHOWN = 10  # molecules that are written out in a terminal


@dataclass(frozen=True, repr=False)
class Drawn:
    """Molecules with a drawing each; a notebook shows the drawings.

    Args:
        smiles: each molecule as the model reads it, after its standardiser; or as it was given, if it cannot be read.
        svgs: a drawing each, an ``<svg>`` element.
        reasons: why the model has nothing to show of a molecule; empty where it has.
    """

    smiles: tuple[str, ...]
    svgs: tuple[str, ...]
    reasons: tuple[str, ...]

    @property
    def captions(self) -> tuple[str, ...]:
        """The text under each drawing."""
        return tuple(": ".join(filter(None, both)) for both in zip(self.smiles, self.reasons, strict=True))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawings as an HTML page, or that of a single molecule as ``.svg``.

        Raises:
            UsageError: an ``.svg`` file for several molecules, or another ending.
        """
        ending = Path(path).suffix.lower()
        if ending not in (".svg", ".html"):
            raise UsageError(f"drawings are written as .html or .svg, not {ending or path}", hint="name such a file")
        if ending == ".svg" and len(self.svgs) != 1:
            raise UsageError(f"an .svg file holds one molecule, these are {len(self.svgs)}", hint="write an .html page")
        return write_whole(path, self._repr_html_() if ending == ".html" else self.svgs[0])

    def _repr_html_(self) -> str:
        figures = "".join(
            f'<figure style="margin:0;width:{WIDTH}px">{svg}<figcaption style="font:12px system-ui,sans-serif;'
            f'overflow-wrap:anywhere;text-align:center">{escape(text)}</figcaption></figure>'
            for text, svg in zip(self.captions, self.svgs, strict=True)
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:16px;background:#fff;color:#1d2733">{figures}</div>'


class Read(NamedTuple):
    """Molecules as a model's encoder reads them.

    Args:
        encoder: of the model.
        smiles: each molecule after the model's standardiser; or as it was given, if it cannot be read.
        batch: a graph for each molecule; one without atoms for one that cannot be read, or is too large.
        reasons: which of both it is; empty for the others.
    """

    encoder: Encoder
    smiles: tuple[str, ...]
    batch: GraphBatch
    reasons: tuple[str, ...]


def read_molecules(
    model: Model | str | os.PathLike[str], smiles: str | Sequence[str], kind: type[Encoder], *, what: str, hint: str
) -> Read:
    """Molecules as the encoder of a model reads them.

    Raises:
        UsageError: a model whose encoder is of another kind, of which ``what`` and ``hint`` tell, or that reads more
            than one molecule a row.
    """
    loaded = model if isinstance(model, Model) else load(model)
    method = loaded.method
    encoder = method.ready().network.encoder if isinstance(method, GraphMethod) else None
    if not isinstance(method, GraphMethod) or not isinstance(encoder, kind):
        raise UsageError(f"a {loaded.kind} {what}", hint=hint)
    if loaded.columns_read != [("molecule", loaded.columns_read[0][1])]:
        raise UsageError("this model does not read one molecule a row, which drawing asks for")
    given = [str(each or "") for each in ([smiles] if isinstance(smiles, str) else smiles)]
    # a row without a molecule has no graph; one that cannot be read has an empty one, as the last row here
    table = standardise(loaded.read([text.strip() or "none" for text in (*given, "")]), loaded.standardiser)
    graphs = input_graphs(table, method.graph_inputs())
    *rows, empty = graph_of_rows(graphs)[:, 0].tolist()
    large = {graph: f"cannot be drawn: {error.message}" for graph, error in too_large(encoder, graphs[0].store).items()}
    drawn = [empty if graph < 0 or graph in large else graph for graph in rows]  # below 0: the standardiser refused it
    batch = collate(graphs[0].store, np.array(drawn, dtype=np.int64))
    sizes = batch["atom"].offsets.diff().tolist()
    texts = tuple(own if n else text for own, text, n in zip(table.smiles, given, sizes, strict=False))
    reasons = tuple("" if n else large.get(g, "cannot be read") for g, n in zip(rows, sizes, strict=True))
    return Read(encoder, texts, batch, reasons)

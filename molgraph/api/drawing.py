"""Draw the clusters into which a trained model pools the atoms of molecules."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from molgraph.api.prediction import load
from molgraph.base.errors import UsageError
from molgraph.base.paths import atomic_write
from molgraph.base.printable import count, printable
from molgraph.chem.draw import draw_molecule
from molgraph.data.batch import collate
from molgraph.data.standardise import standardise
from molgraph.nn.pooling_net import PoolingNet
from molgraph.train.inputs import graph_of_rows, input_graphs
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model

WIDTH, HEIGHT = 300, 240  # of one molecule, pixels
SHOWN = 10  # molecules that are written out in a terminal


@dataclass(frozen=True, repr=False)
class DrawnClusters:
    """Molecules with the clusters of their atoms; a notebook shows the drawings.

    Args:
        smiles: each molecule as the model reads it, after its standardiser; or as it was given, if it cannot be read.
        shares: float32 [atoms, k] each: how much of an atom is in each cluster; [0, k] for one that cannot be read.
        svgs: a drawing each, an ``<svg>`` element; an atom has its largest share's colour, paler where that is less.
    """

    smiles: tuple[str, ...]
    shares: tuple[np.ndarray, ...]
    svgs: tuple[str, ...]

    @property
    def clusters(self) -> tuple[np.ndarray, ...]:
        """int64 [atoms] each: the cluster that holds most of each atom."""
        return tuple(each.argmax(axis=1) for each in self.shares)

    def __repr__(self) -> str:
        head = f"DrawnClusters of {count(len(self.smiles), 'molecule')}, the atoms of each by their cluster"
        lines = [f"{head}; save('clusters.html') draws them"]
        for text, part, clusters in zip(self.smiles[:SHOWN], self.shares, self.clusters, strict=False):
            said = "; ".join(f"{k}: {', '.join(map(str, np.flatnonzero(clusters == k)))}" for k in np.unique(clusters))
            best = part.max(axis=1, initial=0)
            shares = f" (shares {best.min():.2f} to {best.max():.2f})" if said else "cannot be read"
            lines.append(f"  {text}  {said}{shares}")
        return printable("\n".join([*lines, "  ..."] if len(self.smiles) > SHOWN else lines))

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the drawings as an HTML page, or that of a single molecule as ``.svg``.

        Raises:
            UsageError: an ``.svg`` file for several molecules.
        """
        if Path(path).suffix.lower() == ".svg" and len(self.svgs) != 1:
            raise UsageError(f"an .svg file holds one molecule, these are {len(self.svgs)}", hint="write an .html page")
        page = self._repr_html_() if Path(path).suffix.lower() != ".svg" else self.svgs[0]
        with atomic_write(Path(path), "w") as file:
            file.write(page)
        return Path(path)

    def _repr_html_(self) -> str:
        figures = "".join(
            f'<figure style="margin:0;width:{WIDTH}px">{svg}<figcaption style="font:12px system-ui,sans-serif;'
            f'overflow-wrap:anywhere;text-align:center">{escape(text)}</figcaption></figure>'
            for text, svg in zip(self.smiles, self.svgs, strict=True)
        )
        return f'<div style="display:flex;flex-wrap:wrap;gap:16px;background:#fff;color:#1d2733">{figures}</div>'


def draw_clusters(model: Model | str | os.PathLike[str], smiles: str | Sequence[str]) -> DrawnClusters:
    """Draw the learned clusters of atoms on molecules, a colour for each.

    A cluster's number and colour mean the same in all molecules of one model. Clusters are what the pooling found
    useful, which need not be groups of chemistry.

    Args:
        model: a model whose encoder pools atoms into clusters (``structpool``, or ``pyg_pool`` with diffpool or
            mincut), or the path of its file.
        smiles: one molecule, or several.

    Raises:
        UsageError: a model of another kind.

    Example:
        >>> import molgraph
        >>> options = {"model": "structpool", "epochs": 1, "baseline": False}
        >>> model = molgraph.train("builtin:chembl2321810", **options).model
        >>> found = molgraph.draw_clusters(model, ["CCO", "not a molecule"])
        >>> print(repr(found).splitlines()[2])
          not a molecule  cannot be read
        >>> found.clusters[0].shape, found.svgs[0].startswith("<svg"), len(found.clusters[1])
        ((3,), True, 0)
    """
    loaded = model if isinstance(model, Model) else load(model)
    encoder = loaded.method.ready().network.encoder if isinstance(loaded.method, GraphMethod) else None
    if not isinstance(loaded.method, GraphMethod) or not isinstance(encoder, PoolingNet):
        raise UsageError(
            f"a {loaded.kind} does not pool atoms into clusters", hint="train one: molgraph train -m structpool"
        )
    if loaded.columns_read != [("molecule", loaded.columns_read[0][1])]:
        raise UsageError("clusters are drawn on molecules, which this model does not read alone")
    given = [smiles] if isinstance(smiles, str) else list(smiles)
    table = standardise(loaded.read(given), loaded.standardiser)
    graphs = input_graphs(table, loaded.method.graph_inputs())
    of_row, store = graph_of_rows(graphs)[:, 0], graphs[0].store
    batch = collate(store, of_row)
    with torch.no_grad():
        shares = encoder.clusters(batch).numpy()
    offsets = batch["atom"].offsets.numpy()
    parts = tuple(shares[a:b] for a, b in pairwise(offsets.tolist()))
    texts = tuple(own if len(part) else text for own, text, part in zip(table.smiles, given, parts, strict=True))
    size = {"width": WIDTH, "height": HEIGHT}
    drawn = [
        draw_molecule(text, **size, groups=part.argmax(axis=1).tolist(), shares=part.max(axis=1).tolist())
        for text, part in zip(texts, parts, strict=True)
    ]
    return DrawnClusters(texts, parts, tuple(drawn))

"""Draw the clusters into which a trained model pools the atoms of molecules."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch

from molgraph.api.drawn import HEIGHT, SHOWN, WIDTH, Drawn, read_molecules
from molgraph.base.printable import count, printable
from molgraph.chem.draw import draw_molecule
from molgraph.nn.pooling_net import PoolingNet
from molgraph.train.model import Model


@dataclass(frozen=True, repr=False)
class DrawnClusters(Drawn):
    """Molecules with the clusters of their atoms; an atom has its largest share's colour, paler where that is less.

    Args:
        shares: float32 [atoms, k] each: how much of an atom is in each cluster; [0, k] for one that cannot be read.
    """

    shares: tuple[np.ndarray, ...]

    @property
    def clusters(self) -> tuple[np.ndarray, ...]:
        """int64 [atoms] each: the cluster that holds most of each atom."""
        return tuple(each.argmax(axis=1) for each in self.shares)

    def __repr__(self) -> str:
        head = f"DrawnClusters of {count(len(self.smiles), 'molecule')}, the atoms of each by their cluster"
        lines = [f"{head}; save('clusters.html') draws them"]
        for text, part, clusters in zip(self.captions[:SHOWN], self.shares, self.clusters, strict=False):
            said = "; ".join(f"{k}: {', '.join(map(str, np.flatnonzero(clusters == k)))}" for k in np.unique(clusters))
            best = part.max(axis=1, initial=0)
            lines.append(f"  {text}" + (f"  {said} (shares {best.min():.2f} to {best.max():.2f})" if said else ""))
        return printable("\n".join([*lines, "  ..."] if len(self.smiles) > SHOWN else lines))


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
          not a molecule: cannot be read
        >>> found.clusters[0].shape, found.svgs[0].startswith("<svg"), len(found.clusters[1])
        ((3,), True, 0)
    """
    refusal = {"what": "does not pool atoms into clusters", "hint": "train one: molgraph train -m structpool"}
    encoder, texts, batch, reasons = read_molecules(model, smiles, PoolingNet, **refusal)
    assert isinstance(encoder, PoolingNet)
    with torch.no_grad():
        shares = encoder.clusters(batch).numpy()
    parts = tuple(shares[a:b] for a, b in pairwise(batch["atom"].offsets.tolist()))
    drawn = []
    for text, part in zip(texts, parts, strict=True):
        colours = {"groups": part.argmax(axis=1).tolist(), "shares": part.max(axis=1).tolist()}
        drawn.append(draw_molecule(text, width=WIDTH, height=HEIGHT, **colours))
    return DrawnClusters(texts, tuple(drawn), reasons, parts)

"""Labels of molecules for pretraining: the volume of a conformer, and how much those of two molecules overlap."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from molgraph.chem.shape_grid import N_POINTS, SIZE, TURNS, shape_grids
from molgraph.train.row_labels import RowLabels


class ShapeLabels(RowLabels):
    """The points of a grid along a molecule's principal axes that are within it (``chem.shape_grid``)."""

    name, width = "shapes", N_POINTS

    def fit(self, texts: Sequence[str], workers: int) -> None:
        """Nothing is fitted."""

    def make(self, texts: Sequence[str], workers: int) -> np.ndarray:
        """int8 [n, 10080]; -1 where a molecule has no shape."""
        return shape_grids(texts, workers)


def shape_tanimoto(a: Tensor, b: Tensor) -> Tensor:
    """float [n, m]: the Tanimoto coefficient of the volumes of two sets of shapes.

    ``V(a and b) / V(a or b)``, with the principal axes of both laid over each other in the best of the four rotations
    that do so, as ``rdShapeHelpers.ShapeTanimotoDist`` of conformers that are aligned so gives 1 minus it. NaN where a
    molecule has no shape.

    Args:
        a, b: float [n, 10080] and [m, 10080], labels.
    """
    x, y = a.float(), b.float().reshape(-1, *SIZE)
    overlaps = [x @ y.flip([k + 1 for k in axes]).reshape(len(y), -1).T for axes in TURNS]
    best = torch.stack(overlaps).amax(dim=0)
    known = (x[:, 0] >= 0)[:, None] & (b[:, 0] >= 0)[None, :]
    union = x.sum(dim=1)[:, None] + b.float().sum(dim=1)[None, :] - best
    return torch.where(known, best / union, torch.nan)

"""Functional groups of molecules as labels for pretraining."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.chem.functional_groups import GROUPS, functional_groups
from molgraph.train.row_labels import RowLabels


class GroupLabels(RowLabels):
    """1 for each of RDKit's 85 functional groups that a molecule has, else 0."""

    name, width = "functional-groups", len(GROUPS)

    def fit(self, texts: Sequence[str], workers: int) -> None:
        """Nothing is fitted."""

    def make(self, texts: Sequence[str], workers: int) -> np.ndarray:
        """float16 [n, 85]."""
        return functional_groups(texts, workers=workers).astype(np.float16)

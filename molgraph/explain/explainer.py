"""Define ``Explainer``, the base class of methods that give values to atoms, bonds or fragments of molecules."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
import pandas as pd

from molgraph.data.batch import GraphBatch

Level = Literal["atom", "bond", "fragment"]


@dataclass(frozen=True)
class Attribution:
    """Values of the parts of molecules, and how each molecule is drawn with them.

    Args:
        level: what has a value.
        values: a row an atom, bond or fragment: ``molecule`` (its number), ``atom`` (of a bond ``other`` too, which is
            larger), ``value``, and columns of the explainer's own.
        drawings: for each drawing the number of its molecule and keywords of ``molgraph.chem.draw.draw_molecule``.
        captions: words under each drawing, after the SMILES.
        notes: sentences on what the values are, and are not.
        columns: the model's output column that the values of each molecule explain; empty where they explain none, and
            no deletion curve is made.
    """

    level: Level
    values: pd.DataFrame
    drawings: Sequence[tuple[int, Mapping[str, Any]]]
    captions: Sequence[str]
    notes: tuple[str, ...] = ()
    columns: tuple[int, ...] = ()


def signed_shares(values: np.ndarray) -> dict[str, list[Any]]:
    """How atoms are drawn by signed values: group 0 where they are above 0, 1 below, paler where they are less.

    Example:
        >>> signed_shares(np.array([2.0, -1.0]))
        {'groups': [0, 1], 'shares': [1.0, 0.5]}
    """
    size = np.abs(values)
    shares = size / max(size.max(initial=0.0), np.finfo(np.float64).tiny)
    return {"groups": (values < 0).astype(int).tolist(), "shares": shares.tolist()}


class Explainer(ABC):
    """The base class of explainers, registered with ``@register("explainer", name)``; settings are keyword arguments.

    ``reads``: what a model must have, in words; ``model``: one that has it. An explainer asks for a capability of the
    encoder (a Protocol), never for its class, so that other encoders can be read too. ``whole_model``: whether both
    methods are handed the model (``molgraph.train.model.Model``), of any method, in the place of its encoder. ``rank``:
    the explainers that explain predictions are tried in this order where none is named, from 1; 0 is never.
    """

    reads: str = ""
    model: str = ""
    whole_model: bool = False
    rank: int = 0
    small: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def can_read(self, encoder: Any) -> bool:
        """Whether the encoder has it."""

    @abstractmethod
    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The values of the molecules of a batch.

        Args:
            encoder: fitted, in evaluation mode, one that ``can_read`` accepts; gradients are off.
            batch: a graph for each molecule, of no atoms for one that cannot be read; no graphs where the model reads
                none.
            smiles: each molecule, its atoms in the order of the batch.
        """

"""Define ``Compressor``, the base class of ways to make a trained model smaller or faster."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from molgraph.base.contracts import Method
from molgraph.base.parts import make_part
from molgraph.data.table import Table
from molgraph.train.model import Model


class Compressor(ABC):
    """The base class of compressors, registered with ``@register("compressor", name)``; settings are keyword arguments.

    ``trains``: whether it learns from the rows; one that does not leaves them out. ``source``: the model, with its
    settings, on which the contract trials try it. ``small``: settings of a quick one, for trials.
    """

    trains: bool = True
    source: str = "random_forest(n_estimators=5)"
    small: Mapping[str, Any] = MappingProxyType({})

    @abstractmethod
    def compress(self, model: Model, table: Table, valid: Table, seed: int) -> Method:
        """A fitted method in the place of the model's, with the same targets; the model stays as it is.

        Args:
            model: trained.
            table: rows to learn from, standardised, with the model's targets.
            valid: rows for early stopping.
            seed: of whatever is random.

        Raises:
            UnsupportedError: the model cannot be compressed in this way.
        """


def make_compressor(text: str) -> Compressor:
    """A registered compressor with its settings, such as ``born_again(student=gin)``."""
    compressor: Compressor = make_part("compressor", text)
    return compressor

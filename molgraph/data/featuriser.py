"""The base class of featurisers: entities of one kind to a store of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from molgraph.base.table import EntityKind
from molgraph.data.graph_store import GraphStore, InputSpec


class Featuriser(ABC):
    """Make the graphs of entities of one kind; registered with ``@register("featuriser", name)``.

    ``kind``: the entities that it reads. ``versions``: name and version of the features, and of the libraries that
    they depend on; other versions are other features. ``older``: earlier versions that it makes too, for model files
    that name them; ``version`` is then the one that it makes. ``examples``: two or more entities for
    trials and test vectors. ``learns``: whether it takes settings from the training data, so that no cache keeps its
    graphs. ``as_written``: whether a text is read as it is written, in place of its canonical form; None where all
    writings make one graph. ``elements``: symbols of the columns of ``element_counts``; none where rows are no atoms.
    """

    name: ClassVar[str] = ""
    kind: ClassVar[EntityKind] = "molecule"
    versions: ClassVar[tuple[str, ...]] = ()
    version: str = ""
    older: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[tuple[Any, ...]] = ()
    learns: ClassVar[bool] = False
    as_written: bool | None = None
    elements: ClassVar[tuple[str, ...]] = ()

    @abstractmethod
    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """Make one graph of each value, in order.

        Args:
            values: entities of the kind.
            spec: that of the graphs that a model was trained on, where the layout depends on the data; a value that
                does not fit into it is ``unreadable``.
            workers: processes, at most; the result does not depend on it.

        Returns:
            As many graphs as values; one that cannot be made has no rows, status ``unreadable`` and a reason.
        """

    def examples_for(self, spec: InputSpec) -> tuple[Any, ...]:
        """Entities that fit a model's graphs, for test vectors; ``examples`` where the layout is always the same."""
        return self.examples

    def as_of(self, version: str) -> Featuriser:
        """The featuriser that makes one of the ``older`` versions; itself for any other."""
        if version not in self.older:
            return self
        clone = copy(self)
        clone.version = version
        return clone

    def element_counts(self, features: np.ndarray) -> np.ndarray:
        """float [rows, elements]: how many atoms of each element a row of the atoms' features stands for.

        By default the first columns, which are one-hot.
        """
        return features[:, : len(self.elements)]

    def key(self, value: Any) -> str:
        """A text that equal entities share: those are made once. ``None`` is not the text "None"."""
        return value if isinstance(value, str) else f"{type(value).__name__}\0{value}"


def is_absent(value: Any) -> bool:
    """Whether a value stands for nothing: None, NaN or another missing value of numpy or pandas."""
    return bool(pd.api.types.is_scalar(value) and pd.isna(value))


def why_no_text(value: Any, kind: EntityKind) -> str:
    """Why a value is no text of an entity; empty where it is text.

    Example:
        >>> why_no_text(None, "sequence"), why_no_text(b"MK", "sequence"), why_no_text("MK", "sequence")
        ('no sequence in this row', 'not text: bytes', '')
    """
    if isinstance(value, str):
        return ""
    return f"no {kind} in this row" if is_absent(value) else f"not text: {type(value).__name__}"


#: the featuriser of each kind of entity, where an encoder names no other
DEFAULT_FEATURISERS: dict[str, str] = {
    "molecule": "v2",
    "graph": "graph",
    "geometry": "geometry",
    "sequence": "residues",
    "reaction": "reaction",
}

"""The base class of featurisers: entities of one kind to a store of graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

from molgraph.base.table import EntityKind
from molgraph.data.graph_store import GraphStore, InputSpec


class Featuriser(ABC):
    """Make the graphs of entities of one kind; registered with ``@register("featuriser", name)``.

    ``kind``: the entities that it reads. ``versions``: name and version of the features, and of the libraries that
    they depend on; other versions are other features. ``examples``: two or more entities for trials and test vectors.
    """

    name: ClassVar[str] = ""
    kind: ClassVar[EntityKind] = "molecule"
    versions: ClassVar[tuple[str, ...]] = ()
    examples: ClassVar[tuple[Any, ...]] = ()

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

    def key(self, value: Any) -> str:
        """A text that equal entities share: those are made once."""
        return str(value)


#: the featuriser of each kind of entity, where an encoder names no other
DEFAULT_FEATURISERS: dict[str, str] = {
    "molecule": "v2",
    "graph": "graph",
    "geometry": "geometry",
    "sequence": "residues",
}

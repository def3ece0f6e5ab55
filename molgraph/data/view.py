"""Define ``View``, the base class of data augmentations that training applies to each batch."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from molgraph.base.errors import UnusedSettingError
from molgraph.base.parts import read_parts, settings_of
from molgraph.base.registry import get, names
from molgraph.base.table import OK, Entities, EntityKind
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featuriser import Featuriser
from molgraph.data.graph_store import GraphStore, InputSpec


class View(ABC):
    """The base class of views; a subclass is registered with ``@register("view", name)``.

    Its settings are keyword arguments with defaults. ``sees``: what it is called with, a ``batch`` of graphs, or the
    ``column`` of their entities before graphs are made of them. ``kinds``: the entities that it can see.
    ``keeps_label``: whether the labels of a row still hold. ``graph_invariant``: whether it writes the same graph in
    another way, so that only a model of texts learns from it. ``n``: how many looks at each row a batch has.
    """

    sees: ClassVar[Literal["batch", "column"]] = "batch"
    kinds: ClassVar[tuple[EntityKind, ...]] = ("molecule",)
    keeps_label: ClassVar[bool] = True
    n: int = 1
    graph_invariant: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, seen: Any, rng: np.random.Generator) -> Any:
        """Another look at a ``GraphBatch``, or at ``Entities``, of as many rows in the same order.

        It draws from ``rng`` alone, and changes a copy.
        """

    def changes(self, featuriser: Featuriser) -> bool:
        """Whether the graphs of a featuriser can look different through it."""
        return featuriser.kind in self.kinds and not (self.graph_invariant and featuriser.as_written is None)


def make_views(text: str | None) -> list[View]:
    """The views that a text names, in order.

    Example:
        >>> [type(each).__name__ for each in make_views("random_smiles+mask(p=0.1)")]
        ['RandomSmiles', 'Mask']
    """
    parts = read_parts(text, "view") if text else ()
    return [make(**settings_of(make, part)) for part in parts for make in (get("view", part.name),)]


def check_views(views: Sequence[View], featurisers: Sequence[Featuriser]) -> None:
    """Refuse a view through which the graphs of none of the featurisers look different.

    Raises:
        UnusedSettingError: there is such a view.
    """
    for view in views:
        if not any(view.changes(item) for item in featurisers):
            name = next(item for item in names("view") if get("view", item) is type(view))
            reads = " and ".join(dict.fromkeys(f"graphs of a {item.kind}" for item in featurisers))
            reason = "writes the same graph in another way" if view.graph_invariant else f"sees {', '.join(view.kinds)}"
            hint = "choose another view, or a model of texts: molgraph models --kind view; -m tokens"
            reason += f", which changes nothing for a model that reads {reads}"
            raise UnusedSettingError(f"the view {name} {reason}", hint=hint)


@dataclass(frozen=True)
class ViewedColumn:
    """An entity column with the views through which its batches are seen.

    Args:
        views: views of columns come first, whatever their order.
        entities: the entity of each graph of a store.
        featuriser, spec: what made that store.
    """

    views: tuple[View, ...]
    entities: Entities
    featuriser: Featuriser
    spec: InputSpec

    def batch(self, store: GraphStore, graphs: np.ndarray, rng: np.random.Generator) -> GraphBatch:
        """The batch of some graphs, int64 [g], seen through the views; what cannot be read then is seen as it is."""
        if columns := [view for view in self.views if view.sees == "column"]:
            plain = seen = replace(self.entities, values=self.entities.values[graphs])
            for view in columns:
                seen = view(seen, rng)
            view_store = self._made(seen.values)
            if (odd := view_store.status != OK).any():
                view_store = self._made(np.where(odd, plain.values, seen.values))
            batch = collate(view_store, np.arange(len(graphs)))
        else:
            batch = collate(store, graphs)
        for view in self.views:
            batch = batch if view.sees == "column" else view(batch, rng)
        return batch

    def _made(self, values: np.ndarray) -> GraphStore:
        featuriser = copy(self.featuriser)
        featuriser.as_written = None if featuriser.as_written is None else True
        return featuriser.featurise(list(values), spec=self.spec)

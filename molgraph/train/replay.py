"""A buffer of molecules of an earlier corpus, whose states are mixed with those of the new one (LUMP)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from molgraph.base.errors import EmptyError
from molgraph.base.seeds import generator
from molgraph.base.table import Entities
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import GraphStore
from molgraph.data.read import read_table
from molgraph.data.standardise import standardise
from molgraph.data.table import OK
from molgraph.data.view import ViewedColumn, make_views
from molgraph.train.inputs import Input


class Replay:
    """Molecules of an earlier corpus, seen through views.

    Madaan et al. 2022, "Representational Continuity for Unsupervised Continual Learning" (LUMP): an input of the new
    corpus is mixed with one of the buffer, ``l x_new + (1 - l) x_old`` with ``l ~ Beta(alpha, alpha)``, and the loss is
    that of the mixtures. Graphs have no mixture, so that the encoder's states are mixed.

    Args:
        path: the earlier corpus, any file or ``dataset:NAME``.
        size: molecules that are kept, each of the corpus' alike likely.
        alpha: of the Beta distribution; a small one gives shares near 0 and 1.
        read: the column of molecules, as the encoder reads it.
        views: through which both of a molecule's copies are seen.
    """

    def __init__(self, path: str, size: int, alpha: float, read: Input, views: str) -> None:
        self.path, self.size, self.alpha, self.read, self.views = path, size, alpha, read, views

    @cached_property
    def kept(self) -> tuple[GraphStore, ViewedColumn]:
        """The graphs of the buffer; raises ``EmptyError`` where none of the file can be read."""
        table = standardise(read_table(self.path))
        texts = [str(text) for text in table.smiles[table.ok]]
        values = np.array(reservoir(texts, self.size, generator(0, "replay")), dtype=object)
        maker = self.read.featuriser
        store = maker.featurise(list(values), spec=self.read.spec)
        if not (able := store.status == OK).any():
            raise EmptyError(f"no molecule of {self.path} can be read", hint="name a file of molecules")
        if not able.all():
            values = values[able]
            store = maker.featurise(list(values), spec=self.read.spec)
        kind: Any = self.read.kind
        views = tuple(view for view in make_views(self.views) if view.changes(maker))
        return store, ViewedColumn(views, Entities(self.read.column, kind, values), maker, self.read.spec)

    def batch(self, n: int) -> GraphBatch:
        """n molecules, each of which comes twice, as in a batch of pairs: all once, then all again."""
        store, column = self.kept
        draw = torch.randint(len(store), (n,)).numpy()  # by torch's numbers, whose state a checkpoint has
        rng = np.random.default_rng(int(torch.randint(1 << 31, ())))
        return column.batch(store, np.tile(draw, 2), rng)

    def share(self) -> float:
        """How much of a mixture is new."""
        return float(torch.distributions.Beta(self.alpha, self.alpha).sample())

    def mixed(self, new: Tensor, encoder: Any) -> Tensor:
        """float [2 n, d]: the states of a batch of pairs, mixed with those of as many molecules of the buffer."""
        share = self.share()
        old = encoder(self.batch(len(new) // 2).to(new.device)).graphs
        return share * new + (1 - share) * old


def reservoir(values: Iterable[str], size: int, rng: np.random.Generator) -> Sequence[str]:
    """At most ``size`` of the values, each as likely as any other, in one pass (Vitter 1985, algorithm R).

    Example:
        >>> reservoir("abc", 5, np.random.default_rng(0))
        ['a', 'b', 'c']
    """
    kept: list[str] = []
    for seen, value in enumerate(values):
        if seen < size:
            kept.append(value)
        elif (place := int(rng.integers(seen + 1))) < size:
            kept[place] = value
    return kept

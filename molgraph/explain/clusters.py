"""Colour atoms by the clusters into which a trained model pools them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol, runtime_checkable

import numpy as np
import pandas as pd
from torch import Tensor

from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.explain.explainer import Attribution, Explainer


@runtime_checkable
class PoolsAtoms(Protocol):
    """An encoder that puts atoms into clusters."""

    def clusters(self, batch: GraphBatch) -> Tensor:
        """Float [atoms, k]: how much of each atom is in each cluster; the shares of an atom sum to 1."""


@register("explainer", "clusters", summary="atoms by the clusters into which the model pools them")
class Clusters(Explainer):
    """Each atom has the colour of the cluster that holds most of it, paler where that is less.

    A cluster's number and colour mean the same in all molecules of one model. Clusters are those that the pooling finds
    useful, which need not be groups of chemistry. ``values`` has each atom's ``cluster``, its share there as ``value``,
    and all its shares: ``share_0``, ``share_1``, ...
    """

    reads, model = "clusters of atoms", "structpool"

    def can_read(self, encoder: Any) -> bool:
        """Whether it pools atoms."""
        return isinstance(encoder, PoolsAtoms)

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The cluster of each atom."""
        shares = encoder.clusters(batch).numpy()
        ends = batch["atom"].offsets.tolist()
        cluster, value = shares.argmax(axis=1), shares.max(axis=1, initial=0)
        frame = pd.DataFrame({"molecule": batch.graph_of("atom").numpy(), "cluster": cluster, "value": value})
        frame.insert(1, "atom", frame.groupby("molecule").cumcount())
        frame = frame.join(pd.DataFrame(shares, columns=[f"share_{k}" for k in range(shares.shape[1])]))
        drawings, captions = [], []
        for i, (a, b) in enumerate(pairwise(ends)):
            drawings.append((i, {"groups": cluster[a:b].tolist(), "shares": value[a:b].tolist()}))
            parts = [f"{k}: {', '.join(map(str, np.flatnonzero(cluster[a:b] == k)))}" for k in np.unique(cluster[a:b])]
            captions.append(f"{smiles[i]}, atoms by cluster {'; '.join(parts)}" if parts else "")
        return Attribution("atom", frame, drawings, captions)

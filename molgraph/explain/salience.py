"""Colour bonds by the norm of the state that a trained graph network gives each of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.explain.explainer import Attribution, Explainer


@runtime_checkable
class HasBondStates(Protocol):
    """An encoder that has states of directed bonds after some of its blocks."""

    def bond_states(self, batch: GraphBatch) -> Mapping[str, Tensor]:
        """Float [bonds, d] by the name of the block."""


@register(
    "explainer",
    "salience",
    summary="bonds by the norm of their states",
    paper="Tacchetti et al. 2019, ICLR",
    command="molgraph train dataset:chembl2321810 -m rfm -o rfm.mgm && molgraph explain rfm.mgm CCO --by salience",
)
class Salience(Explainer):
    """Each bond has the norm of its state, the larger of both directions; the least is white, the largest orange.

    Tacchetti et al. 2019, "Relational Forward Models for Multi-Agent Learning", read the norm of an edge's activation
    as its salience. It is a heuristic: where the bonds that decide a label were planted, the norm after the encoder
    block found them (ROC AUC 0.98) if their own two atoms decide; if their surroundings do, no block was reliable (0.63
    to 0.81, differing between seeds), while an ablation was (0.94). Compare a model that was not trained.

    Args:
        block: after which block of the network the states are taken.
    """

    reads, model = "states of bonds", "rfm"

    def __init__(self, *, block: Literal["encoder", "core", "decoder"] = "encoder") -> None:
        self.block = block

    def can_read(self, encoder: Any) -> bool:
        """Whether it has states of bonds."""
        return isinstance(encoder, HasBondStates)

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The norm of each bond's state."""
        norm = encoder.bond_states(batch)[self.block].norm(dim=1)
        graph = batch.graph_of("bond")
        first = batch["atom"].offsets[graph]
        ends = torch.stack([batch.source - first, batch.target - first]).sort(dim=0).values
        columns = {"molecule": graph.numpy(), "atom": ends[0].numpy(), "other": ends[1].numpy(), "value": norm.numpy()}
        bonds = pd.DataFrame(columns).groupby(["molecule", "atom", "other"], as_index=False).max()
        drawings, captions = [], []
        for i, text in enumerate(smiles):
            df = bonds[bonds["molecule"] == i]
            least, most = (df["value"].min(), df["value"].max()) if len(df) else (0.0, 1.0)
            shares = (df["value"] - least) / max(most - least, np.finfo(np.float32).tiny)
            drawings.append((i, {"bonds": dict(zip(zip(df["atom"], df["other"], strict=True), shares, strict=True))}))
            captions.append(f"{text}, norm {least:.3g} to {most:.3g}" if len(df) else "")
        return Attribution("bond", bonds, drawings, captions)

"""Mark the atoms that a model with hard attention picked, and all that its prediction can depend on."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.explain.explainer import Attribution, Explainer
from molgraph.nn.hard_attention import PicksAtoms, ranks
from molgraph.nn.segment import softmax_by_graph


@register(
    "explainer",
    "glimpses",
    summary="the few surroundings of atoms that a prediction depends on, of a model with hard attention",
    paper="Elsayed et al. 2019, NeurIPS",
    command="molgraph train dataset:tox21 -m hard_subgraphs --objective saccader -o picks.mgm && "
    "molgraph explain picks.mgm CCOc1ccccc1 --by glimpses",
)
class Glimpses(Explainer):
    """The picked atoms with all atoms within the model's radius: nothing outside of them reaches the answer.

    ``values`` has each atom's ``value``, its probability under the policy, its ``pick`` (1 for the first, 0 for none),
    and whether it is ``seen`` from one that was picked.
    """

    reads, model = "picks of atoms", "hard_subgraphs"

    def can_read(self, encoder: Any) -> bool:
        """Whether it picks atoms."""
        return isinstance(encoder, PicksAtoms)

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The picks of each molecule."""
        look = encoder.look(batch)
        picked = encoder.picked(look.scores, look.graph_of).numpy()
        pick = np.where(picked, ranks(look.scores, look.graph_of).numpy() + 1, 0)
        seen = surroundings(batch, picked, encoder.radius)
        frame = pd.DataFrame({"molecule": look.graph_of.numpy(), "pick": pick, "seen": seen})
        frame.insert(1, "value", softmax_by_graph(look.scores, look.graph_of, batch.n_graphs).numpy())
        frame.insert(1, "atom", frame.groupby("molecule").cumcount())
        drawings, captions = [], []
        for i, (a, b) in enumerate(pairwise(batch["atom"].offsets.tolist())):
            drawings.append((i, {"atoms": np.flatnonzero(seen[a:b]).tolist()}))
            order = np.argsort(np.where(pick[a:b] > 0, pick[a:b], b))[: int(picked[a:b].sum())]
            captions.append(f"{smiles[i]}: picked atoms {', '.join(map(str, order))}" if b > a else "")
        notes = ("the prediction depends on the marked atoms alone; the choice of them saw the whole molecule",)
        return Attribution("atom", frame, drawings, captions, notes)


def surroundings(batch: GraphBatch, picked: np.ndarray, radius: int) -> np.ndarray:
    """bool [atoms]: those within ``radius`` bonds of one that is picked."""
    source, target, seen = batch.source.numpy(), batch.target.numpy(), picked.copy()
    for _ in range(radius):
        near = seen.copy()
        near[target[seen[source]]] = True
        seen = near
    return seen

"""Colour atoms by how the prediction changes where their features are hidden, and measure how such changes add up."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from molgraph.base.ranges import INNER_LIMIT, Range
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graph_store import GraphStore
from molgraph.data.table import make_table
from molgraph.explain.explainer import Attribution, Explainer
from molgraph.train.inference import FittedNetworks
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.rdkit_features import for_model
from molgraph.train.samples import InputBatch, Sample

PAIRS, BATCH = 100, 256  # pairs of a molecule, at most; copies that are predicted together


class Hidden(NamedTuple):
    """Changes of a prediction where atoms of a molecule are hidden, on the scale that the network learned on.

    Args:
        one: float64 [atoms]: the prediction less that without the atom's features.
        apart: float64 [pairs]: the sum of both changes, of pairs of atoms that are far apart.
        joint: float64 [pairs]: the change where both are hidden.
    """

    one: np.ndarray
    apart: np.ndarray
    joint: np.ndarray


def hide_atoms(fitted: FittedNetworks, smiles: str, apart: int = 6) -> Hidden:
    """Hide each atom, and pairs of atoms more than ``apart`` bonds from each other: their features become zeros.

    The bonds, all other atoms and descriptors of the molecule stay as they are. Pairs are evenly spread over all there
    are, 100 at most.
    """
    single = collate(_store(fitted, smiles), np.array([0]))
    n = single.n_atoms
    ends = single.source.numpy(), single.target.numpy()
    far = shortest_path(csr_array((np.ones(single.n_bonds), ends), shape=(n, n)), unweighted=True)
    first, second = np.nonzero(np.triu(far > apart))
    kept = np.unique(np.linspace(0, max(len(first) - 1, 0), PAIRS).astype(int))[: len(first)]
    first, second = first[kept], second[kept]
    raw = answers_without(fitted, smiles, [(), *((a,) for a in range(n)), *zip(first, second, strict=True)])[:, 0]
    change = raw[0] - raw
    one = change[1 : n + 1]
    return Hidden(one, one[first] + one[second], change[n + 1 :])


@torch.no_grad()
def answers_without(fitted: FittedNetworks, smiles: str, hidden: Sequence[Sequence[int]]) -> np.ndarray:
    """float64 [len(hidden), width]: the network's raw outputs for a molecule with the features of some atoms zeros."""
    table, store = make_table([smiles]), _store(fitted, smiles)
    descriptors = for_model(table, fitted.descriptors.names)
    extra = fitted.descriptors.apply(descriptors.features, descriptors.feature_names)
    raw = []
    for start in range(0, len(hidden), BATCH):
        part = hidden[start : start + BATCH]
        batch = _without(collate(store, np.zeros(len(part), dtype=np.int64)), part)
        more = None if extra is None else torch.from_numpy(extra).expand(len(part), -1)
        raw.append(fitted.network(Sample((InputBatch(batch, None),), more, None, None))[0].double().numpy())
    return np.concatenate(raw)


def _store(fitted: FittedNetworks, smiles: str) -> GraphStore:
    return fitted.inputs[0].featuriser.featurise([smiles], spec=fitted.inputs[0].spec)


def _without(batch: GraphBatch, hidden: Sequence[Sequence[int]]) -> GraphBatch:
    table, code = batch["atom"].table, batch["atom"].code.clone()
    assert table is not None
    for i, atoms in enumerate(hidden):
        code[int(batch["atom"].offsets[i]) + np.array(atoms, dtype=np.int64)] = len(table)
    return batch.with_level("atom", table=torch.cat([table, torch.zeros_like(table[:1])]), code=code)


def interaction_index(found: Sequence[Hidden]) -> float:
    """The correlation of the sum of two atoms' changes with their joint change; NaN where no atoms are far apart.

    Brendel and Bethge 2019, section 4.3: 1 for a sum of contributions of surroundings within half of the distance, and
    less where the network joins what is far apart. NaN where no change differs from another.

    Example:
        >>> x = np.array([1.0, 2.0, 4.0])
        >>> round(interaction_index([Hidden(x, x, 2 * x)]), 6)
        1.0
    """
    apart, joint = (np.concatenate([getattr(each, name) for each in found] or [[]]) for name in ("apart", "joint"))
    if len(apart) < 2 or not apart.std() or not joint.std():
        return float("nan")
    return float(np.corrcoef(apart, joint)[0, 1])


@register(
    "explainer",
    "occlusion",
    summary="atoms by the change of the prediction without their features; says how far changes add up",
    paper="Brendel and Bethge 2019, ICLR, section 4.3; Zeiler and Fergus 2014, ECCV",
    command="molgraph train dataset:esol -m dmpnn -o dmpnn.mgm && molgraph explain dmpnn.mgm CCO --by occlusion",
)
class Occlusion(Explainer):
    """Each atom has the fall of the answer where its features are zeros; blue (0) raises it, orange (1) lowers it.

    A rival of exact contributions for any graph network, and a guess: an atom without features is none that the network
    has seen. The note has the interaction index (``interaction_index``) of all molecules: where it is far below 1,
    values of single atoms do not tell what groups do together. ``values`` are on the scale of the first target's raw
    output: standard deviations of a number, log-odds of a class.

    Args:
        apart: bonds between the atoms of a pair, at least one more; ``2 radius`` for ``additive``.
    """

    reads, model = "atoms with features", "dmpnn"
    whole_model = True

    def __init__(self, *, apart: Annotated[int, Range(0, INNER_LIMIT)] = 6) -> None:
        self.apart = apart

    def can_read(self, encoder: Any) -> bool:
        """Whether it is a graph network that predicts molecules, from features of atoms."""
        if not isinstance(encoder, Model) or not isinstance(encoder.method, GraphMethod):
            return False
        fitted = encoder.method.ready()
        atoms = fitted.inputs[0].spec.widths.get("atom", 0) > 0 and not fitted.network.encoder.by_code
        return fitted.network.has_head and len(fitted.inputs) == 1 and atoms and fitted.network.level == "row"

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The changes."""
        fitted, ends = encoder.method.ready(), [*pairwise(batch["atom"].offsets.tolist())]
        found = {i: hide_atoms(fitted, smiles[i], self.apart) for i, (a, b) in enumerate(ends) if b > a}
        value = np.concatenate([each.one for each in found.values()] or [np.zeros(0)])
        frame = pd.DataFrame({"molecule": batch.graph_of("atom").numpy(), "value": value})
        frame.insert(1, "atom", frame.groupby("molecule").cumcount())
        drawings, captions = [], []
        for i in range(len(ends)):
            own = found[i].one if i in found else np.zeros(0)
            shares = np.abs(own) / max(np.abs(own).max(initial=0.0), np.finfo(np.float64).tiny)
            drawings.append((i, {"groups": (own < 0).astype(int).tolist(), "shares": shares.tolist()}))
            captions.append(f"{smiles[i]}: {own.min():+.3g} to {own.max():+.3g}" if len(own) else "")
        pairs, index = sum(len(each.joint) for each in found.values()), interaction_index([*found.values()])
        words = f"no two atoms are more than {self.apart} bonds apart: how changes add up is not known"
        if pairs and np.isfinite(index):
            words = (
                f"interaction index {index:.3f} of {pairs:,} pairs more than {self.apart} bonds apart (1: they add up)"
            )
        return Attribution("atom", frame, drawings, captions, ("blue (0) raises it, orange (1) lowers it", words))

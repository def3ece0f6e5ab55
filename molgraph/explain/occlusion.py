"""Colour atoms by how the prediction changes where their features are hidden, and measure how such changes add up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Annotated, Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import shortest_path

from molgraph.base.contracts import Method
from molgraph.base.ranges import INNER_LIMIT, Range
from molgraph.base.registry import register
from molgraph.chem.delete_atoms import delete_atoms
from molgraph.chem.smiles import parse_smiles
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graph_store import GraphStore
from molgraph.data.table import make_table
from molgraph.explain.answers import as_score, explained_columns, network_score, place_of, reads_atom_features
from molgraph.explain.explainer import Attribution, Explainer, signed_shares
from molgraph.train.inference import FittedNetworks
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


def answers_without_atoms(
    model: Model, smiles: Sequence[str], masks: Mapping[int, Sequence[Sequence[int]]], columns: Sequence[int]
) -> dict[int, np.ndarray]:
    """The answers of any model for molecules without some atoms: numbers, or log-odds of a class.

    The atoms of a network that reads their features have zeros in their place; of any other model they are deleted from
    the molecule, and hydrogens take their places.

    Args:
        model: it predicts.
        smiles: the molecules.
        masks: for some of them, by number, the atoms of each deletion.
        columns: the output column of each molecule.

    Returns:
        float64 [deletions] for each; NaN where no molecule is left.
    """
    if reads_atom_features(model):
        fitted, answers = model.method.ready(), {}  # type: ignore[attr-defined]
        for i, group in masks.items():
            distinct = [*dict.fromkeys(map(tuple, group))]
            raw = torch.from_numpy(answers_without(fitted, smiles[i], distinct))
            score = network_score(fitted, raw, torch.full((len(raw),), columns[i]), place_of(model, columns[i]))
            known = dict(zip(distinct, score.tolist(), strict=True))
            answers[i] = np.array([known[tuple(mask)] for mask in group])
        return answers
    texts = {i: {tuple(mask): delete_atoms(smiles[i], mask) for mask in group} for i, group in masks.items()}
    every = sorted({text for group in texts.values() for text in group.values() if text})
    value = model.check_predicts().predict(make_table(every)).value if every else np.zeros((0, 1))
    place = {text: k for k, text in enumerate(every)}
    scores = {}
    for i, group in masks.items():
        answer = as_score(model, value, columns[i]) if every else np.zeros(0)
        rows = [texts[i][tuple(mask)] for mask in group]
        scores[i] = np.array([answer[place[text]] if text else np.nan for text in rows])
    return scores


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
    apart, joint = (np.concatenate([getattr(item, name) for item in found] or [[]]) for name in ("apart", "joint"))
    if len(apart) < 2 or not apart.std() or not joint.std():
        return float("nan")
    return float(np.corrcoef(apart, joint)[0, 1])


@register(
    "explainer",
    "occlusion",
    summary="atoms by the change of the prediction without them, of any model; says how far changes add up",
    paper="Brendel and Bethge 2019, ICLR, section 4.3; Zeiler and Fergus 2014, ECCV",
    command="molgraph train dataset:esol -m dmpnn -o dmpnn.mgm && molgraph explain dmpnn.mgm CCO --by occlusion",
)
class Occlusion(Explainer):
    """Each atom has the fall of the answer where its features are zeros; blue (0) raises it, orange (1) lowers it.

    A rival of exact contributions for any model, and a guess: an atom without features is none that the network has
    seen. Of models that read no features of atoms the atom is deleted, and hydrogens take its place, which opens rings.
    The note has the interaction index (``interaction_index``) of all molecules: where it is far below 1, values of
    single atoms do not tell what groups do together. ``values`` are on the scale of the first target's raw output:
    standard deviations of a number, log-odds of a class; of other models in its units, or log-odds.

    Args:
        apart: bonds between the atoms of a pair, at least one more; ``2 radius`` for ``additive``.
    """

    reads, model = "predictions of molecules", "dmpnn"
    whole_model = True
    rank = 4

    def __init__(self, *, apart: Annotated[int, Range(0, INNER_LIMIT)] = 6) -> None:
        self.apart = apart

    def can_read(self, encoder: Any) -> bool:
        """Whether the model predicts molecules."""
        if not isinstance(encoder, Model) or not isinstance(encoder.method, Method) or not encoder.targets:
            return False
        return encoder.targets[0].level == "row"

    def explain(self, encoder: Any, batch: GraphBatch, smiles: Sequence[str]) -> Attribution:
        """The changes."""
        if not reads_atom_features(encoder):
            return _deleted(encoder, smiles)
        fitted, ends = encoder.method.ready(), [*pairwise(batch["atom"].offsets.tolist())]
        effects = {i: hide_atoms(fitted, smiles[i], self.apart) for i, (a, b) in enumerate(ends) if b > a}
        value = np.concatenate([item.one for item in effects.values()] or [np.zeros(0)])
        frame = pd.DataFrame({"molecule": batch.graph_of("atom").numpy(), "value": value})
        frame.insert(1, "atom", frame.groupby("molecule").cumcount())
        drawings, captions = [], []
        for i in range(len(ends)):
            values = effects[i].one if i in effects else np.zeros(0)
            drawings.append((i, signed_shares(values)))
            captions.append(f"{smiles[i]}: {values.min():+.3g} to {values.max():+.3g}" if len(values) else "")
        pairs, index = sum(len(item.joint) for item in effects.values()), interaction_index([*effects.values()])
        words = f"no two atoms are more than {self.apart} bonds apart: how changes add up is not known"
        if pairs and np.isfinite(index):
            words = (
                f"interaction index {index:.3f} of {pairs:,} pairs more than {self.apart} bonds apart (1: they add up)"
            )
        notes, columns = ("blue (0) raises it, orange (1) lowers it", words), (0,) * len(ends)
        return Attribution("atom", frame, drawings, captions, notes, columns)


def _deleted(model: Model, smiles: Sequence[str]) -> Attribution:
    """The changes where atoms are deleted; 0 for the only atom of a molecule, and where the rest is no molecule."""
    predicted = model.predict([*smiles])
    columns = explained_columns(model, predicted.value, "")
    fine = [i for i in range(len(smiles)) if np.isfinite(predicted.value[i, columns[i]])]
    sizes = {i: mol.GetNumAtoms() for i in fine if (mol := parse_smiles(smiles[i]).mol) is not None}
    masks = {i: [(), *((a,) for a in range(n))] for i, n in sizes.items()}
    answers = answers_without_atoms(model, smiles, masks, columns)
    drawings: list[tuple[int, dict[str, Any]]] = [(i, {}) for i in range(len(smiles))]
    captions, frames = [""] * len(smiles), [pd.DataFrame({"molecule": [], "atom": [], "value": []}, dtype=np.int64)]
    for i, scores in answers.items():
        change = np.nan_to_num(scores[0] - scores[1:])
        drawings[i] = (i, signed_shares(change))
        captions[i] = f"{smiles[i]}: {change.min():+.3g} to {change.max():+.3g}"
        frames.append(pd.DataFrame({"molecule": i, "atom": range(len(change)), "value": change}))
    notes = (
        "blue (0) raises it, orange (1) lowers it",
        "atoms are deleted one by one, and hydrogens take their places",
    )
    return Attribution("atom", pd.concat(frames, ignore_index=True), drawings, captions, notes, tuple(columns))

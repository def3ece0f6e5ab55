"""Measure how faithful values of atoms are: the area under the deletion curve, beside that of random orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.seeds import generator
from molgraph.explain.explainer import Attribution
from molgraph.explain.occlusion import answers_without_atoms
from molgraph.train.model import Model

MEASURES = ("molecule", "deletion_area", "random_area", "beats_random")  # columns of a frame of curves
STEPS, RANDOM = 10, 8  # steps of a curve, at most; random orders of each molecule


class Deletion(NamedTuple):
    """How a molecule's answer falls where its atoms are deleted, from the one that raises it most.

    Args:
        area: the mean of the answer along the curve; the lower, the more faithful.
        random: the mean area of random orders.
        beats: the share of random orders whose area is larger; half of it is chance.
    """

    area: float
    random: float
    beats: float

    def __str__(self) -> str:
        return f"deletion {self.area:.3g}, random {self.random:.3g}"


def summary(curves: Mapping[int, Deletion]) -> str:
    """The sentence on the faithfulness of all molecules; empty where none was measured."""
    if not curves:
        return ""
    gain = np.mean([curve.random - curve.area for curve in curves.values()])
    beats = np.mean([curve.beats for curve in curves.values()])
    return (
        f"faithfulness: where the atoms that raise the answer most are deleted first, its mean on the way is "
        f"{gain:.3g} lower than in random orders, and lower than {beats:.0%} of these (chance: 50%)"
    )


def deletion_curves(model: Model, smiles: Sequence[str], made: Attribution, *, seed: int = 0) -> dict[int, Deletion]:
    """The curves of the molecules that have values, by their numbers.

    Petsiuk, Das and Saenko 2018, "RISE", section 4.2: the parts that an explanation holds for the most important are
    deleted first, in up to ten steps, and the area under the answer (a number, or log-odds) tells how soon it falls.
    Atoms of a network that reads their features have zeros in their place; of any other model they are deleted from the
    molecule, and hydrogens fill their places (a step that leaves no molecule has the answer of the step before).

    Args:
        model: the model.
        smiles: the molecules.
        made: its values say which atoms, and its ``columns`` which output.
        seed: of the random orders.
    """
    scores = {i: score for i, score in atom_scores(made).items() if len(score) > 1}
    orders = {}
    for i, values in scores.items():
        rng = generator(seed, "deletion", i)
        orders[i] = [np.argsort(-values, kind="stable"), *(rng.permutation(len(values)) for _ in range(RANDOM))]
    masks = {i: [_first(order, k) for order in values for k in _steps(len(order))] for i, values in orders.items()}
    results = {}
    for i, answers in answers_without_atoms(model, smiles, masks, made.columns).items():
        curves = pd.DataFrame(answers.reshape(1 + RANDOM, -1)).ffill(axis=1).to_numpy()
        area = np.trapezoid(curves, axis=1) / (curves.shape[1] - 1)
        if np.isfinite(area).all():
            ties = np.isclose(area[1:], area[0], rtol=1e-9, atol=1e-12)
            beats = np.where(ties, 0.5, area[1:] > area[0]).mean()
            results[i] = Deletion(float(area[0]), float(area[1:].mean()), float(beats))
    return results


def atom_scores(made: Attribution) -> dict[int, np.ndarray]:
    """What each atom adds to the answer: the values of atoms, or its part of the ``change`` of its fragment."""
    scores = {}
    for molecule, rows in made.values.groupby("molecule"):
        if made.level == "atom":
            scores[int(molecule)] = rows.sort_values("atom")["value"].to_numpy(dtype=np.float64)
        elif {"atoms", "change"} <= {*rows}:
            parts = [[int(a) for a in str(text).split()] for text in rows["atoms"]]
            values = np.zeros(1 + max(max(atoms) for atoms in parts))
            for atoms, change in zip(parts, rows["change"].fillna(0.0), strict=True):
                values[atoms] = change / len(atoms)
            scores[int(molecule)] = values
    return scores


def _steps(n: int) -> list[int]:
    """Numbers of deleted atoms, from none to all."""
    return [round(k) for k in np.linspace(0, n, min(n, STEPS) + 1)]


def _first(order: np.ndarray, k: int) -> tuple[int, ...]:
    return tuple(sorted(order[:k].tolist()))

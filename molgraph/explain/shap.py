"""Colour atoms by the Shapley values of the fingerprint bits that they set, of tree ensembles and linear models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.registry import register
from molgraph.chem.environment import bit_places
from molgraph.data.table import make_table
from molgraph.explain.answers import explained_columns
from molgraph.explain.explainer import Attribution, Explainer, signed_shares
from molgraph.explain.feature_shares import SharesFeatures
from molgraph.train.model import Model

NAMED = 3  # further features that a caption names


@register(
    "explainer",
    "shap",
    summary="atoms by the exact Shapley values of their Morgan bits: forests, boosted trees, linear models",
    paper="Lundberg and Lee 2017, NeurIPS; Lundberg et al. 2020, Nat. Mach. Intell. 2:56",
    command="molgraph train dataset:esol -m random_forest -o forest.mgm && molgraph explain forest.mgm CCO --by shap",
)
class Shap(Explainer):
    """Each atom has its share of the answer: blue (0) raises it, orange (1) lowers it, paler where it is less.

    Lundberg and Lee 2017, "A Unified Approach to Interpreting Model Predictions": the Shapley value of a feature is its
    mean contribution over all orders in which features are added. Features start from a reference without any bit and
    with the training rows' median of each descriptor, and the values of all of them sum to the answer less that for the
    reference, exactly: of trees they are walked out (Lundberg et al. 2020, interventional TreeSHAP against one row), of
    a linear model they are slopes times differences. A bit's value is given in equal parts to the environments in the
    molecule that set it, and there to their atoms. Descriptors are of the whole molecule and of no atom: ``rest`` has
    their sum. ``values`` has each atom's ``value``, in the target's units, in probability (forests) or in log-odds
    (others).

    Args:
        target: its name; the model's first if empty. Of several classes the likeliest is explained.
    """

    reads, model = "trees or slopes on Morgan bits", "random_forest"
    whole_model = True
    rank = 2

    def __init__(self, *, target: str = "") -> None:
        self.target = target

    def can_read(self, encoder: Any) -> bool:
        """Whether its predictions can be taken apart into shares of Morgan bits."""
        if not isinstance(encoder, Model) or not isinstance(encoder.method, SharesFeatures):
            return False
        return encoder.method.shares_features

    def explain(self, encoder: Any, batch: Any, smiles: Sequence[str]) -> Attribution:
        """The values."""
        predicted = encoder.predict([*smiles])
        columns = explained_columns(encoder, predicted.value, self.target)
        fine = [i for i in range(len(smiles)) if np.isfinite(predicted.value[i, columns[i]])]
        terms = encoder.method.feature_shares(make_table([smiles[i] for i in fine]), [columns[i] for i in fine])
        drawings: list[tuple[int, dict[str, Any]]] = [(i, {}) for i in range(len(smiles))]
        captions, frames, gaps = [""] * len(smiles), [], [0.0]
        for k, i in enumerate(fine):
            bits, rest = terms.shares[k, : terms.n_bits], terms.shares[k, terms.n_bits :]
            atoms = _of_atoms(smiles[i], bits, terms.radius, terms.n_bits)
            drawings[i] = (i, signed_shares(atoms))
            first = np.argsort(-np.abs(rest), kind="stable")[:NAMED]
            named = ", ".join(f"{terms.names[j]} {rest[j]:+.2g}" for j in first if rest[j])
            words = (
                f"{smiles[i]}: {terms.unit} {terms.answer[k]:.3g} = {terms.base[k]:.3g} {bits.sum():+.3g} of its atoms"
            )
            captions[i] = words + (f" {rest.sum():+.3g} of the whole ({named})" if named else "")
            frames.append(pd.DataFrame({"molecule": i, "atom": range(len(atoms)), "value": atoms, "rest": rest.sum()}))
            gaps.append(abs(terms.answer[k] - terms.base[k] - atoms.sum() - rest.sum()))
        empty = pd.DataFrame({name: [] for name in ("molecule", "atom", "value", "rest")})
        notes = (
            "blue (0) raises it, orange (1) lowers it",
            f"base, atoms and descriptors sum to the answer within {max(gaps):.1g}; the base has no bits",
        )
        frame = pd.concat(frames, ignore_index=True) if frames else empty
        return Attribution("atom", frame, drawings, captions, notes, tuple(columns))


def _of_atoms(smiles: str, shares: np.ndarray, radius: int, n_bits: int) -> np.ndarray:
    """float64 [atoms]: the shares of bits given to the atoms of the environments that set them."""
    places = bit_places(smiles, radius=radius, n_bits=n_bits)
    n_places = np.bincount([place.bit for place in places], minlength=n_bits)
    atoms = np.zeros(1 + max((max(place.atoms) for place in places), default=-1))
    for bit, indices in places:
        atoms[list(indices)] += shares[bit] / n_places[bit] / len(indices)
    return atoms

"""Functions from before ``molgraph.explain``, kept for old code: each calls it with one explainer."""

from __future__ import annotations

import os
from collections.abc import Sequence

from molgraph.explain.explanation import Explanation, explain
from molgraph.train.model import Model


def draw_clusters(model: Model | str | os.PathLike[str], smiles: str | Sequence[str]) -> Explanation:
    """``explain`` by ``clusters``: the atoms of molecules by the clusters into which the model pools them.

    Example:
        >>> import molgraph
        >>> options = {"model": "structpool", "params": {"d_hidden": 8}, "epochs": 1, "baseline": False}
        >>> model = molgraph.train("builtin:chembl2321810", **options).model
        >>> molgraph.draw_clusters(model, ["CCO", "not a molecule"]).captions[1]
        'not a molecule: cannot be read'
    """
    return explain(model, smiles, "clusters")


def draw_salience(
    model: Model | str | os.PathLike[str], smiles: str | Sequence[str], *, block: str = "encoder"
) -> Explanation:
    """``explain`` by ``salience``: bonds by the norm of the state that an ``rfm`` model gives them."""
    return explain(model, smiles, f"salience(block={block})")


def explain_bit(
    model: Model | str | os.PathLike[str], bit: int, smiles: str | Sequence[str], *, top: int = 8
) -> Explanation:
    """``explain`` by ``bits``: the fragments that activate a bit of a ``neural_fingerprint`` most."""
    return explain(model, smiles, f"bits(bit={bit}, top={top})")

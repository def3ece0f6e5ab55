"""Embed molecules for the Fréchet distance, each embedding under a name that stands beside its numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.optional import missing, need
from molgraph.base.seeds import generator
from molgraph.chem.descriptors import rdkit_descriptors
from molgraph.chem.fingerprints import morgan

WIDTH = 128  # columns of the projected fingerprint
FURTHEST = 10.0  # standard deviations from the reference's mean at which a descriptor is cut off


class Embedding(NamedTuple):
    """A way to turn molecules into vectors.

    Args:
        summary: what it is.
        make: readable SMILES of a sample [n] and of the reference [m] -> float64 [n, d] and [m, d].
    """

    summary: str
    make: Callable[[Sequence[str], Sequence[str]], tuple[np.ndarray, np.ndarray]]


def embed(name: str, smiles: Sequence[str], reference: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    """The vectors of a sample and of the reference.

    Raises:
        UsageError: no embedding has that name, or ``chemnet`` without the package ``fcd``.

    Example:
        >>> x, y = embed("fingerprint", ["CCO"], ["CCO", "CCN"])
        >>> x.shape, y.shape, bool((x[0] == y[0]).all())
        ((1, 128), (2, 128), True)
    """
    check_embedding(name)
    x, y = EMBEDDINGS[name].make(smiles, reference)
    return np.asarray(x, dtype=np.float64), np.asarray(y, dtype=np.float64)


def check_embedding(name: str) -> None:
    """Raise ``UsageError`` for a name that is not known, or a library that is not there."""
    if name not in EMBEDDINGS:
        raise UnknownNameError(f"no embedding is named {name!r}", hint=nearest(name, EMBEDDINGS))
    if name == "chemnet" and missing(["fcd"]):
        need("fcd", "the embedding chemnet")


def default_embedding() -> str:
    """``chemnet`` where the package ``fcd`` is installed, else ``descriptors``."""
    return "descriptors" if missing(["fcd"]) else "chemnet"


def _descriptors(smiles: Sequence[str], reference: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    y = rdkit_descriptors(list(reference)).x.astype(np.float64)
    known = np.isfinite(y).any(axis=0)
    y = y[:, known]
    mean, sd = np.nanmean(y, axis=0), np.nanstd(y, axis=0)
    used = sd > 1e-9
    x = rdkit_descriptors(list(smiles)).x.astype(np.float64)[:, known]

    def standardised(values: np.ndarray) -> np.ndarray:
        z = (values[:, used] - mean[used]) / sd[used]
        return np.clip(np.nan_to_num(z, nan=0.0), -FURTHEST, FURTHEST)

    return standardised(x), standardised(y)


def _fingerprint(smiles: Sequence[str], reference: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    matrix = generator(0, "fingerprint projection").standard_normal((2048, WIDTH)) / np.sqrt(WIDTH)
    x, y = (morgan(list(part), counts=True).x.astype(np.float64) @ matrix for part in (smiles, reference))
    return x, y


def _chemnet(smiles: Sequence[str], reference: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
    fcd = need("fcd", "the embedding chemnet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        model = fcd.load_ref_model()
        x, y = (fcd.get_predictions(model, list(part), n_jobs=0, device="cpu") for part in (smiles, reference))
    return x, y


EMBEDDINGS = {
    "descriptors": Embedding("RDKit descriptors, standardised by the reference and cut off at 10", _descriptors),
    "fingerprint": Embedding("Morgan counts (radius 2, 2,048) through a fixed random matrix to 128", _fingerprint),
    "chemnet": Embedding("the last layer but one of ChemNet (Preuer et al. 2018), by the package fcd", _chemnet),
}

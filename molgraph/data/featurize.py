"""SMILES in, a graph store out: one graph for each entry, in order, a reason where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import numpy as np

from molgraph.base.errors import UsageError, nearest
from molgraph.chem.smiles import parse_smiles, precheck, quiet
from molgraph.data import featurize_cuik
from molgraph.data.features import FEATURISER, atom_rows, bond_rows
from molgraph.data.packing import Piece, pack
from molgraph.data.graphstore import GraphStore

Backend = Literal["auto", "cuik", "rdkit"]
BACKENDS = ("auto", "cuik", "rdkit")
CHUNK = 128
"""Molecules a call of a backend: feature rows of more would leave the processor's cache."""


def featurize(smiles: Sequence[str], *, backend: Backend = "auto") -> GraphStore:
    """Make the graphs of molecules.

    Args:
        smiles: one entry a molecule; what can't be read becomes a graph without rows, with a reason.
        backend: ``cuik`` (C++), ``rdkit`` (Python), or ``auto`` for the first where it is installed
            and made for this version of rdkit. Both give the same features.

    Returns:
        As many graphs as entries, in their order.

    Raises:
        UsageError: an unknown backend, or ``cuik`` where it can't be used.

    Example:
        >>> store = featurize(["CCO", "C1CC"])
        >>> list(store.status), store.levels["atom"].offsets.tolist()
        (['ok', 'unreadable'], [0, 3, 3])
    """
    run = _runner(backend)
    reason = np.array([precheck(text) for text in smiles], dtype=object)
    texts = ["" if why else text for text, why in zip(smiles, reason, strict=True)]
    found: list[Piece] = []
    with quiet():
        for start in range(0, len(texts), CHUNK):
            found += run(texts[start : start + CHUNK])
    counts = np.concatenate([p.n_atoms for p in found]) if found else np.zeros(0, np.int64)
    for i in np.flatnonzero(counts == 0):
        reason[i] = reason[i] or parse_smiles(texts[i]).reason or "no atoms"
    status = np.where(counts > 0, "ok", "unreadable").astype(object)
    return pack(found, status, reason, FEATURISER, atom_rows, bond_rows)


def _runner(backend: str) -> Callable[[list[str]], list[Piece]]:
    if backend not in BACKENDS:
        raise UsageError(f"no featuriser backend is named {backend!r}", hint=nearest(backend, BACKENDS))
    missing = featurize_cuik.missing()
    if backend == "cuik" and missing:
        raise UsageError(missing, hint="use backend='rdkit', or install the pinned versions of both")
    if backend == "rdkit" or missing:
        from molgraph.data import featurize_rdkit

        return featurize_rdkit.pieces
    return featurize_cuik.pieces

"""Make one graph of each SMILES, in order, or a reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal

import numpy as np
from rdkit import rdBase

from molgraph.base.errors import NotInstalledError, UnknownNameError, nearest
from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.chem.elements import SYMBOLS
from molgraph.chem.handedness import handedness, without_maps
from molgraph.chem.parallel import map_texts
from molgraph.chem.smiles import check_smiles, parse_smiles, quiet
from molgraph.data import featurize_cuik, featurize_rdkit
from molgraph.data.feature_layout import (
    FEATURISER,
    OLDER,
    atom_rows,
    bond_rows,
    chiral_tags,
    element_counts,
    with_chiral_tags,
)
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.packing import PackedGraphs, pack
from molgraph.data.table import OK, UNREADABLE

Backend = Literal["auto", "cuik", "rdkit"]
BACKENDS = ("auto", "cuik", "rdkit")
ELEMENTS = (*SYMBOLS[1:37], "I", "an element of no column of its own")
"""Of the columns of the atomic number in ``feature_layout``."""


def featurize(
    smiles: Sequence[str], *, backend: Backend = "auto", workers: int = 1, version: str = FEATURISER
) -> GraphStore:
    """Make the graphs of molecules.

    Args:
        smiles: one entry a molecule; what can't be read becomes a graph without rows, with a reason.
        backend: ``cuik`` (C++), ``rdkit`` (Python), or ``auto`` for the first where it is installed
            and made for this version of rdkit. Both give the same features.
        workers: processes; the result does not depend on it.
        version: of the features; ``v2.1`` for models that were trained on those.

    Returns:
        As many graphs as entries, in their order.

    Raises:
        UsageError: an unknown backend, or ``cuik`` where it can't be used.

    Example:
        >>> store = featurize(["CCO", "C1CC"])
        >>> list(store.status), store.levels["atom"].offsets.tolist()
        (['ok', 'unreadable'], [0, 3, 3])
    """
    _runner(backend)
    reason = np.array([why_no_text(text, "molecule") or check_smiles(text) for text in smiles], dtype=object)
    texts = ["" if problem else text for text, problem in zip(smiles, reason, strict=True)]
    pieces = map_texts(
        partial(_pieces, backend, version), texts, label="graphs", workers=workers
    ) or featurize_rdkit.pieces([])
    counts = np.concatenate([p.n_atoms for p in pieces])
    for i in np.flatnonzero(counts == 0):
        reason[i] = reason[i] or parse_smiles(texts[i]).reason or "a molecule of no atoms"
    status = np.where(counts > 0, OK, UNREADABLE).astype(object)
    return pack(pieces, status, reason, version, atom_rows, bond_rows)


@register("featuriser", "v2", summary="atoms and bonds of a molecule, in chemprop's layout")
class Molecules(Featuriser):
    """Levels ``atom`` and ``bond`` of molecules (see ``molgraph.data.feature_layout``)."""

    name = "v2"
    kind = "molecule"
    version = FEATURISER
    older = (OLDER,)
    examples = ("CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O")
    elements = ELEMENTS

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """The layout's, and RDKit's."""
        return self.version, rdkit_version()

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One graph a molecule."""
        return featurize(values, workers=workers, version=self.version)

    def element_counts(self, features: np.ndarray) -> np.ndarray:
        """float32 [rows, 38]: an atom and its implicit hydrogens."""
        return element_counts(features)


def rdkit_version() -> str:
    """The version of RDKit: what it perceives (aromaticity, stereo) is part of the features."""
    return rdBase.rdkitVersion


def _pieces(backend: str, version: str, texts: Sequence[str]) -> list[PackedGraphs]:
    run = _runner(backend)
    with quiet():
        if version == OLDER:
            return run(list(texts))
        plain = [without_maps(text) for text in texts]
        (piece,) = run(plain)
        return [_handed(piece, plain)]


def _handed(piece: PackedGraphs, texts: Sequence[str]) -> PackedGraphs:
    """The graphs with chiral tags that do not depend on the writing; texts without stereocentres are not read again."""
    atoms, tags = offsets_of(piece.n_atoms), chiral_tags(piece.atom_key)
    handed = np.flatnonzero((tags == 1) | (tags == 2))  # clockwise and counterclockwise
    graph_of = np.searchsorted(atoms, handed, side="right") - 1
    for centres in np.split(handed, np.flatnonzero(np.diff(graph_of)) + 1) if len(handed) else ():
        graph = np.searchsorted(atoms, centres[0], side="right") - 1
        tags[centres] = handedness(texts[graph], (centres - atoms[graph]).tolist())
    return replace(piece, atom_key=with_chiral_tags(piece.atom_key, tags))


def _runner(backend: str) -> Callable[[list[str]], list[PackedGraphs]]:
    if backend not in BACKENDS:
        raise UnknownNameError(f"no featuriser backend is named {backend!r}", hint=nearest(backend, BACKENDS))
    missing = featurize_cuik.missing()
    if backend == "cuik" and missing:
        raise NotInstalledError(missing, hint="use backend='rdkit', or install the pinned versions of both")
    return featurize_rdkit.pieces if backend == "rdkit" or missing else featurize_cuik.pieces

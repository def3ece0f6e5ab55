"""Make one graph of each SMILES, in order, or a reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
from rdkit import rdBase

from molgraph.base.errors import UsageError, nearest
from molgraph.base.registry import register
from molgraph.chem.parallel import map_texts
from molgraph.chem.smiles import check_smiles, parse_smiles, quiet
from molgraph.data import featurize_cuik, featurize_rdkit
from molgraph.data.feature_layout import FEATURISER, atom_rows, bond_rows
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.packing import PackedGraphs, pack
from molgraph.data.table import OK, UNREADABLE

Backend = Literal["auto", "cuik", "rdkit"]
BACKENDS = ("auto", "cuik", "rdkit")


def featurize(smiles: Sequence[str], *, backend: Backend = "auto", workers: int = 1) -> GraphStore:
    """Make the graphs of molecules.

    Args:
        smiles: one entry a molecule; what can't be read becomes a graph without rows, with a reason.
        backend: ``cuik`` (C++), ``rdkit`` (Python), or ``auto`` for the first where it is installed
            and made for this version of rdkit. Both give the same features.
        workers: processes; the result does not depend on it.

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
    texts = ["" if why else text for text, why in zip(smiles, reason, strict=True)]
    found = map_texts(partial(_pieces, backend), texts, label="graphs", workers=workers) or featurize_rdkit.pieces([])
    counts = np.concatenate([p.n_atoms for p in found])
    for i in np.flatnonzero(counts == 0):
        reason[i] = reason[i] or parse_smiles(texts[i]).reason or "a molecule of no atoms"
    status = np.where(counts > 0, OK, UNREADABLE).astype(object)
    return pack(found, status, reason, FEATURISER, atom_rows, bond_rows)


@register("featuriser", "v2", summary="atoms and bonds of a molecule, in chemprop's layout")
class Molecules(Featuriser):
    """Levels ``atom`` and ``bond`` of molecules (see ``molgraph.data.feature_layout``)."""

    name = "v2"
    kind = "molecule"
    examples = ("CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O")

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """The layout's, and RDKit's."""
        return FEATURISER, rdkit_version()

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One graph a molecule."""
        return featurize(values, workers=workers)


def rdkit_version() -> str:
    """The version of RDKit: what it perceives (aromaticity, stereo) is part of the features."""
    return rdBase.rdkitVersion


def _pieces(backend: str, texts: Sequence[str]) -> list[PackedGraphs]:
    with quiet():
        return _runner(backend)(list(texts))


def _runner(backend: str) -> Callable[[list[str]], list[PackedGraphs]]:
    if backend not in BACKENDS:
        raise UsageError(f"no featuriser backend is named {backend!r}", hint=nearest(backend, BACKENDS))
    missing = featurize_cuik.missing()
    if backend == "cuik" and missing:
        raise UsageError(missing, hint="use backend='rdkit', or install the pinned versions of both")
    return featurize_rdkit.pieces if backend == "rdkit" or missing else featurize_cuik.pieces

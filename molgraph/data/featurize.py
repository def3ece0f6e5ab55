"""Make one graph of each SMILES, in order, or a reason why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np
from rdkit import rdBase

from molgraph.base.errors import UsageError, nearest
from molgraph.base.progress import bar
from molgraph.base.registry import register
from molgraph.chem.smiles import check_smiles, parse_smiles, quiet
from molgraph.data import featurize_cuik, featurize_rdkit
from molgraph.data.feature_layout import FEATURISER, atom_rows, bond_rows
from molgraph.data.featuriser import Featuriser
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.packing import PackedGraphs, pack
from molgraph.data.table import OK, UNREADABLE

Backend = Literal["auto", "cuik", "rdkit"]
BACKENDS = ("auto", "cuik", "rdkit")
CHUNK = 1_024
"""Molecules a call of a backend; they are packed together."""
BLOCK = 20_000
"""Molecules that a worker process gets at a time."""


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
    reason = np.array([check_smiles(text) for text in smiles], dtype=object)
    texts = ["" if why else text for text, why in zip(smiles, reason, strict=True)]
    blocks = [texts[start : start + BLOCK] for start in range(0, len(texts), BLOCK)]
    found: list[PackedGraphs] = []
    with bar("graphs", total=len(texts), quiet=len(texts) < BLOCK) as progress:
        for block, pieces in zip(blocks, _each(blocks, backend, workers), strict=True):
            found += pieces
            progress.advance(len(block))
    counts = np.concatenate([p.n_atoms for p in found]) if found else np.zeros(0, np.int64)
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


def _each(blocks: list[list[str]], backend: str, workers: int) -> Iterator[list[PackedGraphs]]:
    if workers <= 1 or len(blocks) <= 1:
        return (_block(block, backend) for block in blocks)
    # joblib's processes need no __main__ guard in a user's script and no fork beside torch's threads
    from joblib import Parallel, delayed

    run = Parallel(n_jobs=min(workers, len(blocks)), return_as="generator")
    return run(delayed(_block)(block, backend) for block in blocks)


def _block(texts: list[str], backend: str) -> list[PackedGraphs]:
    run = _runner(backend)
    with quiet():
        return [piece for start in range(0, len(texts), CHUNK) for piece in run(texts[start : start + CHUNK])]


def _runner(backend: str) -> Callable[[list[str]], list[PackedGraphs]]:
    if backend not in BACKENDS:
        raise UsageError(f"no featuriser backend is named {backend!r}", hint=nearest(backend, BACKENDS))
    missing = featurize_cuik.missing()
    if backend == "cuik" and missing:
        raise UsageError(missing, hint="use backend='rdkit', or install the pinned versions of both")
    return featurize_rdkit.pieces if backend == "rdkit" or missing else featurize_cuik.pieces

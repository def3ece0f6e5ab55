"""Featurise molecules as ``v2`` does, with a bit mask of the rings that each atom is in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from rdkit import Chem

from molgraph.base.registry import register
from molgraph.base.table import OK, EntityKind
from molgraph.chem.parallel import map_texts
from molgraph.chem.smiles import quiet
from molgraph.data.feature_layout import FEATURISER, OLDER, element_counts
from molgraph.data.featuriser import Featuriser
from molgraph.data.featurize import ELEMENTS, featurize, rdkit_version
from molgraph.data.graph_store import GraphStore, InputSpec, Level

RINGS, MAX_RINGS = "+rings.1", 63
"""Rings of a molecule that are told apart, the bits of an int64; C60 has 32."""


@register("featuriser", "v2_rings", summary="as v2, with the rings of each atom")
class MoleculesWithRings(Featuriser):
    """The levels of ``v2``, and ``atom.rings``, int64 [n]: bit r is set for the atoms of the molecule's ring r.

    Rings are RDKit's (its symmetrised smallest set), the first 63 of a molecule. Two atoms are in the same ring where
    ``rings[a] & rings[b]`` is not 0.

    Example:
        >>> store = MoleculesWithRings().featurise(["C1CC1C1CC1"])
        >>> store.levels["atom"].arrays["rings"].tolist()
        [1, 1, 1, 2, 2, 2]
    """

    name = "v2_rings"
    kind: ClassVar[EntityKind] = "molecule"
    version = FEATURISER + RINGS
    older = (OLDER + RINGS,)
    examples = ("CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O")
    elements = ELEMENTS

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """The layout's with that of the rings, and RDKit's."""
        return self.version, rdkit_version()

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One graph a molecule."""
        store = featurize(values, workers=workers, version=self.version.removesuffix(RINGS))
        texts = [value if status == OK else "" for value, status in zip(values, store.status, strict=True)]
        pieces = map_texts(_rings, texts, label="rings", workers=workers)
        atoms = store.levels["atom"]
        rings = np.concatenate([np.zeros(0, np.int64), *pieces])
        level = Level(atoms.offsets, {**atoms.arrays, "rings": rings}, atoms.index)
        return replace(store, levels={**store.levels, "atom": level}, featuriser=self.versions[0])

    def element_counts(self, features: np.ndarray) -> np.ndarray:
        """float32 [rows, 38]: an atom and its implicit hydrogens."""
        return element_counts(features)


def _rings(texts: Sequence[str]) -> list[np.ndarray]:
    """int64 [atoms] of each molecule."""
    with quiet():
        return [_rings_of(text) for text in texts]


def _rings_of(text: str) -> np.ndarray:
    if not text:
        return np.zeros(0, np.int64)
    mol = Chem.MolFromSmiles(text)
    rings = np.zeros(mol.GetNumAtoms(), np.int64)
    for r, members in enumerate(mol.GetRingInfo().AtomRings()[:MAX_RINGS]):
        rings[list(members)] |= np.int64(1 << r)
    return rings

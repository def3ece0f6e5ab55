"""Describe a sample of molecules once, so that every metric of generators reads the same arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from molgraph.base.errors import EmptyError
from molgraph.chem.drawn_molecules import PROPERTIES, DrawnMolecule, describe_drawn
from molgraph.chem.fingerprints import morgan


@dataclass(frozen=True)
class Sample:
    """Molecules in the order in which they were drawn, invalid ones too.

    Args:
        smiles: as they were drawn.
        molecules: what each is.
    """

    smiles: tuple[str, ...]
    molecules: tuple[DrawnMolecule, ...]

    def __len__(self) -> int:
        return len(self.smiles)

    @cached_property
    def valid(self) -> np.ndarray:
        """bool [n], whether each is a molecule."""
        return np.array([not molecule.reason for molecule in self.molecules], dtype=bool)

    @cached_property
    def no_molecule(self) -> np.ndarray:
        """bool [n], whether RDKit reads each, and it is no molecule: an open attachment point, a bare ion."""
        return np.array([molecule.reason != "" and molecule.canonical != "" for molecule in self.molecules], dtype=bool)

    @cached_property
    def readable(self) -> tuple[DrawnMolecule, ...]:
        """The m valid ones, in order."""
        return tuple(molecule for molecule in self.molecules if not molecule.reason)

    @cached_property
    def canonical(self) -> tuple[str, ...]:
        """Canonical SMILES of the valid ones."""
        return tuple(molecule.canonical for molecule in self.readable)

    @cached_property
    def identity(self) -> np.ndarray:
        """int [m]: the same number for the same canonical SMILES."""
        return np.unique(np.array(self.canonical, dtype=object).astype(str), return_inverse=True)[1].reshape(-1)

    @cached_property
    def properties(self) -> np.ndarray:
        """float [m, k], values of ``PROPERTIES``."""
        return np.array([molecule.properties for molecule in self.readable], dtype=float).reshape(-1, len(PROPERTIES))

    @cached_property
    def passes(self) -> np.ndarray:
        """bool [m], whether MOSES's filters let each pass."""
        return np.array([not molecule.alert for molecule in self.readable], dtype=bool)

    @cached_property
    def bits(self) -> np.ndarray:
        """uint8 [m, 1024], Morgan fingerprints of radius 2 of the valid ones, as MOSES has them."""
        return morgan(list(self.canonical), n_bits=1024).x

    def property(self, name: str) -> np.ndarray:
        """float [m], one of ``PROPERTIES``."""
        return self.properties[:, PROPERTIES.index(name)]

    def take(self, rows: np.ndarray) -> Sample:
        """Some of the molecules, in the order of ``rows``."""
        return Sample(tuple(self.smiles[i] for i in rows), tuple(self.molecules[i] for i in rows))


def describe(smiles: Sequence[str], label: str = "molecules") -> Sample:
    """Describe what was drawn; what is no text or no molecule is a row with a reason.

    Raises:
        EmptyError: nothing was drawn.

    Example:
        >>> found = describe(["CCO", "OCC", "C1C"])
        >>> found.valid.tolist(), found.identity.tolist()
        ([True, True, False], [0, 0])
    """
    texts = ["" if value is None else str(value) for value in smiles]
    if not texts:
        hint = "give a list of SMILES, or a file with a column of them"
        raise EmptyError(f"there are no {label} to judge", hint=hint)
    return Sample(tuple(texts), tuple(describe_drawn(texts, label=label)))

"""Oracles of similarity: to a lead, and to the nearest molecule of a table."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import CellError, DataError, EmptyError
from molgraph.base.registry import register
from molgraph.chem.fingerprints import Fingerprints, morgan
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.read import read_table
from molgraph.data.table import Table, make_table
from molgraph.generate.oracles.oracle import Oracle, Scores
from molgraph.train.training_molecules import molecule_hashes


class Neighbours(NamedTuple):
    """The most similar molecule of a table for each of a list: its SMILES, its similarity, why there is none."""

    smiles: np.ndarray
    similarity: np.ndarray
    reason: np.ndarray


class Molecules:
    """The readable molecules of a list, with the fingerprints by which the nearest is found (Morgan, radius 2).

    Args:
        smiles: n molecules; what cannot be read is passed over.

    Raises:
        EmptyError: none can be read.

    Example:
        >>> found = Molecules(["CCO", "c1ccccc1"]).nearest(["CCCO", "C(C"])
        >>> found.smiles.tolist(), found.similarity.round(2).tolist()
        (['CCO', ''], [0.56, nan])
    """

    def __init__(self, smiles: Sequence[str]) -> None:
        prints = morgan(smiles)
        self.smiles = np.array(smiles, dtype=object)[prints.ok]
        self.bits = prints.x[prints.ok]
        if not len(self.smiles):
            raise EmptyError("no molecule of the table to compare with can be read", hint="look at its rows' reasons")

    def __len__(self) -> int:
        return len(self.smiles)

    def nearest(self, smiles: Sequence[str]) -> Neighbours:
        """The nearest of these molecules to each SMILES."""
        prints: Fingerprints = morgan(smiles)
        neighbours = find_nearest(prints.x, self.bits)
        similarity = np.where(prints.ok, neighbours.similarity, np.nan)
        return Neighbours(np.where(prints.ok, self.smiles[neighbours.row], ""), similarity, prints.reasons)

    def holds(self, smiles: Sequence[str], near: Neighbours) -> np.ndarray:
        """bool [n], whether each SMILES is one of these molecules, salts, charges and stereo aside.

        Two molecules may have one fingerprint, as long chains do: those that do are compared by their identities.

        Example:
            >>> molecules, asked = Molecules(["CCCCCCCCO", "CCO.Cl"]), ["CCCCCCCCCCO", "OCCCCCCCC", "CCO"]
            >>> molecules.holds(asked, molecules.nearest(asked)).tolist()
            [False, True, True]
        """
        alike = {*near.smiles[near.reason == ""].tolist()}
        size = self.bits.sum(axis=1, dtype=np.int32)
        for bits in np.unique(morgan([s for s, d in zip(smiles, near.similarity, strict=True) if d >= 1]).x, axis=0):
            rows = np.flatnonzero(size == bits.sum(dtype=np.int32))
            alike.update(self.smiles[rows[(self.bits[rows] == bits).all(axis=1)]].tolist())
        known = molecule_hashes(make_table(sorted(alike)))
        return np.isin(molecule_hashes(make_table(list(smiles))), known[known != 0])


@register("oracle", "similarity", summary="Tanimoto to a lead, 0 to 1", paper="Rogers and Hahn 2010")
class Similarity(Oracle):
    """Tanimoto similarity of Morgan fingerprints (radius 2, 2,048 bits) to one molecule.

    Args:
        lead: its SMILES.
    """

    name, scale, free, unit = "similarity", 0.2, True, True

    def __init__(self, lead: str) -> None:
        self.lead = lead

    @cached_property
    def _lead(self) -> Molecules:
        try:
            return Molecules([self.lead])
        except DataError:
            raise CellError(f"the lead {self.lead!r} cannot be read", hint="give a SMILES") from None

    def score(self, smiles: Sequence[str]) -> Scores:
        """The similarity of each SMILES."""
        neighbours = self._lead.nearest(smiles)
        return Scores(neighbours.similarity, neighbours.reason)


@register("oracle", "nearest", summary="Tanimoto to the nearest molecule of a table, 0 to 1")
class Nearest(Oracle):
    """Similarity to the nearest molecule of a table: of a model's training table, how far the model may be trusted.

    Args:
        table: csv, smi, sdf or parquet, or ``dataset:NAME``, or a table.
    """

    name, scale, free, unit = "nearest", 0.2, True, True

    def __init__(self, table: str | Table) -> None:
        self.table = table

    @cached_property
    def molecules(self) -> Molecules:
        """The table's molecules, read at the first question."""
        table = self.table if isinstance(self.table, Table) else read_table(self.table)
        return Molecules([str(text) for text in table.smiles[table.ok]])

    @property
    def content(self) -> str:
        """A hash of the molecules."""
        return hashlib.sha256("\n".join(self.molecules.smiles).encode()).hexdigest()[:16]

    def score(self, smiles: Sequence[str]) -> Scores:
        """The similarity of each SMILES to its nearest."""
        neighbours = self.molecules.nearest(smiles)
        return Scores(neighbours.similarity, neighbours.reason)

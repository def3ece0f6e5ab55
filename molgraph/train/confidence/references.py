"""Keep training molecules with their values, find the nearest one of a molecule, and molecules of another sort."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from molgraph.base.seeds import generator
from molgraph.chem.atom_order import kinds_of
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import NearestPairs, find_nearest
from molgraph.data.limits import limits_as_values
from molgraph.data.table import Table

BITS, MOST, MOST_TARGETS = 2048, 10_000, 12  # molecules that are kept, and targets whose values are kept with them
SIZE = 2.0  # times the heavy atoms of the nearest molecule at which the edge of the domain begins
ALIKE, ALIKE_SIZE = 0.8, 1.25  # the same for molecules of this similarity, which repeat the same environments
TIMES = 10  # the largest training molecule's heavy atoms that no molecule should exceed
ELEMENTS = 119
NONMETALS = frozenset({1, 2, 5, 6, 7, 8, 9, 10, 14, 15, 16, 17, 18, 33, 34, 35, 36, 52, 53, 54, 85, 86})
_UNUSUAL = re.compile(r"\[(?!nH|[HOCNSP@+\-\d])")  # an element in brackets that is not among the usual ones
_ATOM = re.compile(r"\[[^\]]*\]|Br|Cl|[BCNOPSFIbcnops]")
_HYDROCARBON = re.compile(r"(?:C(?!l)|c|\[(?:13)?[Cc]@{0,2}H?\d?\]|[^A-Za-z\[\]*])*")
_SHORT = 8  # characters of a SMILES that may be a single atom


@dataclass(frozen=True)
class References:
    """Training molecules, up to 10,000, drawn at random where there are more.

    Args:
        ids: object [n], as the table has them: the user's, or row numbers; empty texts in files from before them.
        smiles: object [n], standardised.
        bits: uint8 [n, 256], Morgan fingerprints of radius 2, eight bits a byte.
        y: float64 [n, targets], measured values or limits; NaN where there is none. No columns for over 12 targets.
        elements: bool [119], those that a training molecule has, by atomic number.
        sizes: int64 [2], heavy atoms of the smallest and of the largest training molecule.
        carbonless: bool [1], whether a training molecule has no carbon.
        carbon_alone: bool [1], whether one has no other heavy atom than carbon.
        signs: int8 [n, targets], 1 where the value is measured to be above ``y``, -1 below, else 0.
    """

    ids: np.ndarray
    smiles: np.ndarray
    bits: np.ndarray
    y: np.ndarray
    elements: np.ndarray
    sizes: np.ndarray
    carbonless: np.ndarray
    carbon_alone: np.ndarray
    signs: np.ndarray

    @classmethod
    def of(cls, table: Table, bits: np.ndarray) -> Self:
        """Those of readable rows.

        Args:
            table: of single molecules, all of them readable.
            bits: uint8 [n, 2048], their fingerprints.
        """
        kept = np.arange(len(table))
        if len(kept) > MOST:
            kept = np.sort(generator(0, "references").choice(len(kept), MOST, replace=False))
        atoms = [kinds_of(str(text), "atom") for text in table.smiles]
        heavy = [int((entry > 1).sum()) for entry in atoms]
        elements = np.zeros(ELEMENTS, dtype=bool)
        elements[np.unique(np.concatenate(atoms))] = True
        y, signs = np.zeros((len(table), 0)), np.zeros((len(table), 0), np.int8)
        values = limits_as_values(table).y
        if values is not None and values.shape[1] <= MOST_TARGETS:
            y, signs = values, np.zeros(values.shape, np.int8)
            if table.limits is not None:
                signs = (np.isposinf(table.limits[..., 1]) * 1 - np.isneginf(table.limits[..., 0]) * 1).astype(np.int8)
        carbonless = np.array([not all((entry == 6).any() for entry in atoms)])
        smiles = np.array([str(table.smiles[row]) for row in kept], dtype=object)
        ids = np.array([str(entry).replace("\n", " ") for entry in table.ids[kept]], dtype=object)
        packed, sizes = np.packbits(bits[kept], axis=1), np.array([min(heavy), max(heavy)])
        alone = np.array([any(np.isin(entry, (1, 6)).all() for entry in atoms)])
        return cls(ids, smiles, packed, y[kept], elements, sizes, carbonless, alone, signs[kept])

    def nearest(self, bits: np.ndarray) -> NearestPairs:
        """The most similar of them for each fingerprint [m, 2048]."""
        return find_nearest(bits, np.unpackbits(self.bits, axis=1))

    def other_sizes(self, smiles: Sequence[str], near: NearestPairs) -> np.ndarray:
        """bool [m]: molecules of more than twice the heavy atoms of their nearest one, or fewer than half.

        Fingerprints of bits do not tell a chain of 36 atoms from one of 26: where nearly all bits are shared, a quarter
        more or fewer is enough.
        """
        sizes, limit = _sizes(smiles), np.where(near.similarity >= ALIKE, ALIKE_SIZE, SIZE)
        others: np.ndarray = _ratios(sizes, _sizes(self.smiles[near.row])) > limit
        for i in np.flatnonzero(others):  # another molecule with the bits of the nearest one may have its size
            equal = (self.bits == self.bits[near.row[i]]).all(axis=1)
            others[i] = (_ratios(sizes[i], _sizes(self.smiles[equal])) > limit[i]).all()
        return others

    def hydrocarbons(self, smiles: Sequence[str]) -> np.ndarray:
        """bool [m]: molecules of carbon and hydrogen alone, where no training molecule is one."""
        if self.carbon_alone[0]:
            return np.zeros(len(smiles), dtype=bool)
        return np.array([_HYDROCARBON.fullmatch(str(text)) is not None for text in smiles], dtype=bool)

    def strange(self, smiles: Sequence[str]) -> np.ndarray:
        """object [m]: why a molecule is of a sort that the training molecules are not, else empty.

        A single heavy atom, no carbon, a metal that no training molecule has, or ten times the heavy atoms of the
        largest training molecule.
        """
        return np.array([self._strange(str(text)) for text in smiles], dtype=object)

    def _strange(self, text: str) -> str:
        largest = int(self.sizes[1])
        usual = "C" in text.replace("Cl", "") or "c" in text
        if usual and len(text) > _SHORT and len(text) <= TIMES * largest and not _UNUSUAL.search(text):
            return ""
        atoms = kinds_of(text, "atom")
        heavy = int((atoms > 1).sum())
        if not len(atoms):
            return ""
        metals = [z for z in np.unique(atoms).tolist() if not self.elements[z] and z not in NONMETALS]
        if metals:
            return "holds a metal that no training molecule has"
        if not (atoms == 6).any() and not self.carbonless[0]:
            return "has no carbon, as every training molecule has"
        if heavy <= 1 and int(self.sizes[0]) > 2:
            return f"is a single heavy atom; the smallest training molecule has {int(self.sizes[0])}"
        if heavy > TIMES * largest:
            return f"has {heavy} heavy atoms; the largest training molecule has {largest}"
        return ""

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays for a model file, texts as bytes of UTF-8."""
        texts = {name: _bytes_of(getattr(self, name)) for name in ("ids", "smiles")}
        numbers = {name: getattr(self, name) for name in ("bits", "elements", "sizes", "carbonless", "carbon_alone")}
        numbers |= {"signs": self.signs} if self.signs.any() else {}
        missing = ~np.isfinite(self.y)
        return {**texts, "y": np.where(missing, 0.0, self.y), "missing": missing, **numbers}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Rebuild; raises ``ValueError`` or ``LookupError`` where they do not fit together."""
        smiles = _texts_of(arrays["smiles"])
        ids = _texts_of(arrays["ids"]) if "ids" in arrays else np.full(len(smiles), "", dtype=object)
        alone = arrays.get("carbon_alone", np.ones(1, dtype=bool))  # files from before it say nothing
        bits, y, sizes = arrays["bits"], np.asarray(arrays["y"], dtype=np.float64), arrays["sizes"]
        y = np.where(arrays["missing"].astype(bool), np.nan, y)
        right = bits.dtype == np.uint8 and bits.shape == (len(smiles), BITS // 8) and y.ndim == 2
        signs = arrays.get("signs", np.zeros(y.shape, np.int8))
        right &= len(ids) == len(smiles) and signs.shape == y.shape
        if not right or len(y) != len(smiles) or sizes.shape != (2,) or arrays["elements"].shape != (ELEMENTS,):
            raise ValueError("the training molecules in the file do not fit together")
        elements, carbonless = arrays["elements"].astype(bool), arrays["carbonless"].reshape(1)
        return cls(ids, smiles, bits, y, elements, sizes, carbonless, alone.reshape(1).astype(bool), signs)


def _sizes(smiles: Sequence[str]) -> np.ndarray:
    """int64 [m]: heavy atoms, counted in the text."""
    return np.array([len(_ATOM.findall(str(text))) for text in smiles], dtype=np.int64)


def _ratios(sizes: np.ndarray, others: np.ndarray) -> np.ndarray:
    """float64: the larger of two numbers of atoms by the smaller."""
    ratios: np.ndarray = np.maximum(sizes, others) / np.maximum(np.minimum(sizes, others), 1)
    return ratios


def _bytes_of(texts: np.ndarray) -> np.ndarray:
    return np.frombuffer("\n".join(texts).encode(), dtype=np.uint8)


def _texts_of(data: np.ndarray) -> np.ndarray:
    return np.array(data.tobytes().decode().split("\n"), dtype=object)


def fingerprints(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """uint8 [rows, 2048] Morgan fingerprints of the readable rows' molecules, and which rows those are."""
    rows = np.flatnonzero(table.ok)
    prints = morgan([str(table.smiles[row]) for row in rows])
    return prints.x[prints.ok], rows[prints.ok]

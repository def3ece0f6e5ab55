"""List the Morgan environments of each atom, with the smaller pieces that each is made of."""

from __future__ import annotations

from typing import NamedTuple
from zlib import crc32

import numpy as np
from rdkit.Chem import rdFingerprintGenerator

from molgraph.base.packed import offsets_of
from molgraph.chem.smiles import parse_smiles

RADIUS = 1


class Words(NamedTuple):
    """The environments of a molecule, atom after atom, the smaller radius first.

    Args:
        key: int64 [n], RDKit's Morgan identifiers.
        offsets: int64 [n + 1], where the pieces of each environment begin in ``piece``.
        piece: int64 [p], hashes of the pieces.
    """

    key: np.ndarray
    offsets: np.ndarray
    piece: np.ndarray


NONE = Words(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))


def morgan_words(smiles: str) -> Words:
    """The environments of radius 0 and 1 of a molecule; none where RDKit does not read it.

    The pieces of an environment of radius 0 are its element and itself; those of radius 1 are these of its atom, and
    those of each neighbour, the element with the bond that leads to it. An environment's identifier says which they
    are, so that equal environments have equal pieces.

    Example:
        >>> words = morgan_words("CO")
        >>> len(words.key), np.diff(words.offsets).tolist()
        (4, [2, 4, 2, 4])
    """
    mol = parse_smiles(smiles).mol
    if mol is None:
        return NONE
    made = rdFingerprintGenerator.GetMorganGenerator(radius=RADIUS, includeRedundantEnvironments=True)
    extra = rdFingerprintGenerator.AdditionalOutput()
    extra.AllocateBitInfoMap()
    made.GetSparseCountFingerprint(mol, additionalOutput=extra)
    key = {place: key for key, places in extra.GetBitInfoMap().items() for place in places}
    pieces = []
    for number, radius in sorted(key):
        atom = mol.GetAtomWithIdx(number)
        own = [str(atom.GetAtomicNum()), f"0:{key[number, 0]}"]
        if radius:
            for bond in atom.GetBonds():
                other = bond.GetOtherAtom(atom)
                own += [f"{bond.GetBondType()}{other.GetAtomicNum()}", f"0:{key[other.GetIdx(), 0]}"]
        pieces.append([crc32(text.encode()) for text in own])
    hashes = np.array([piece for own in pieces for piece in own], dtype=np.int64)
    return Words(
        np.array([key[place] for place in sorted(key)], dtype=np.int64), offsets_of([*map(len, pieces)]), hashes
    )

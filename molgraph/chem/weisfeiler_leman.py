"""Colour molecular graphs by the Weisfeiler-Leman test, which bounds the molecules that message passing tells apart."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.chem.identity import molecule_key
from molgraph.chem.smiles import parse_smiles


class Skeletons(NamedTuple):
    """Different molecules: their texts, atoms, bonds between the two farthest atoms of one piece, and colours."""

    texts: list[str]
    n_atoms: np.ndarray
    diameters: np.ndarray
    colours: list[tuple[tuple[int, int], ...]]


def skeletons(smiles: Sequence[str] | np.ndarray, n: int) -> Skeletons:
    """The first ``n`` molecules of different constitution; a text that is none is left out.

    Example:
        >>> made = skeletons(["CCCC", "C1CC1.C", "C(C)CC", "no molecule"], 9)
        >>> made.texts, made.diameters.tolist()
        (['CCCC', 'C1CC1.C'], [3, 1])
    """
    known, colours = dict[str, tuple[str, Chem.Mol]](), Colours()
    for text in smiles:
        mol = parse_smiles(str(text)).mol
        if mol is not None and mol.GetNumAtoms():
            known.setdefault(molecule_key(mol, stereo=False), (str(text), mol))
        if len(known) == n:
            break
    mols = [mol for _, mol in known.values()]
    sizes, spans = [mol.GetNumAtoms() for mol in mols], [Chem.GetDistanceMatrix(mol) for mol in mols]
    diameters = [int(span[span < size].max()) for span, size in zip(spans, sizes, strict=True)]
    return Skeletons([text for text, _ in known.values()], np.array(sizes), np.array(diameters), [*map(colours, mols)])


class Colours:
    """1-WL colour refinement of molecules by elements and bond orders; equal colourings get equal numbers.

    The colour of an atom becomes its own with the sorted (bond order, colour) of its neighbours, until the number of
    colours of the molecule no longer grows. Message passing from the same atom and bond features gives two molecules
    of one colouring the same states (Xu et al. 2019, "How powerful are graph neural networks?", lemma 2).

    Example:
        >>> colours = Colours()
        >>> decalin, bicyclopentyl, butane = map(Chem.MolFromSmiles, ["C1CCC2CCCCC2C1", "C1CCC(C1)C1CCCC1", "CCCC"])
        >>> colours(decalin) == colours(bicyclopentyl), colours(decalin) == colours(butane)
        (True, False)
    """

    def __init__(self) -> None:
        self.numbers: dict[object, int] = {}  # shared by all molecules, so that colours of two of them compare

    def __call__(self, mol: Chem.Mol) -> tuple[tuple[int, int], ...]:
        """The colours of a molecule's atoms, each with its count."""
        bonds: list[list[tuple[int, int]]] = [[] for _ in range(mol.GetNumAtoms())]
        for bond in mol.GetBonds():
            start, end, order = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), int(bond.GetBondType())
            bonds[start].append((order, end))
            bonds[end].append((order, start))
        colours = self._numbered((atom.GetAtomicNum(), atom.GetFormalCharge()) for atom in mol.GetAtoms())
        while True:
            hoods = (sorted((order, colours[j]) for order, j in near) for near in bonds)
            finer = self._numbered((own, *hood) for own, hood in zip(colours, hoods, strict=True))
            if len(set(finer)) == len(set(colours)):
                return tuple(sorted((c, finer.count(c)) for c in set(finer)))
            colours = finer

    def _numbered(self, keys: Iterable[object]) -> list[int]:
        return [self.numbers.setdefault(key, len(self.numbers)) for key in keys]

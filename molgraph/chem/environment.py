"""Find the atoms within some bonds of an atom, and write them as SMILES."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator

from molgraph.chem.bounded import bounded, is_hard
from molgraph.chem.smiles import parse_smiles, quiet


class Environment(NamedTuple):
    """The atoms around one: their SMILES from it, how far they reach in bonds, and their numbers."""

    smiles: str
    radius: int
    atoms: list[int]


def atom_environment(smiles: str, atom: int, radius: int) -> Environment:
    """All atoms of a readable molecule within ``radius`` bonds of one of its atoms.

    Example:
        >>> atom_environment("CCO", 0, 1), atom_environment("CCO", 1, 4).radius
        (Environment(smiles='CC', radius=1, atoms=[0, 1]), 1)
    """
    mol = parse_smiles(smiles).mol
    distances = Chem.GetDistanceMatrix(mol)[atom]
    inside = (distances <= radius).nonzero()[0].tolist()
    written = Chem.MolFragmentToSmiles(mol, inside, rootedAtAtom=atom)
    return Environment(written, int(distances[inside].max()), inside)


def bit_environments(
    smiles: Sequence[str], bits: Collection[int], *, radius: int = 2, n_bits: int = 2048
) -> dict[int, str]:
    """The first environment that sets each of some bits of Morgan fingerprints, as SMILES; none of a bit that is off.

    Example:
        >>> from molgraph.chem.fingerprints import morgan
        >>> bit_environments(["CCO"], [int(morgan(["CCO"]).x[0].argmax())])
        {80: 'C'}
    """
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=n_bits)
    wanted, environments = {*bits}, dict[int, str]()
    for text in smiles:
        if (mol := parse_smiles(text).mol) is None:
            continue
        extra = rdFingerprintGenerator.AdditionalOutput()
        extra.AllocateBitInfoMap()
        generator.GetFingerprint(mol, additionalOutput=extra)
        for bit, places in extra.GetBitInfoMap().items():
            if bit in wanted:
                wanted.discard(bit)
                environments[bit] = atom_environment(text, *places[0]).smiles
        if not wanted:
            break
    return environments


class BitPlace(NamedTuple):
    """An environment that sets a bit of a Morgan fingerprint: the bit, and the numbers of its atoms."""

    bit: int
    atoms: tuple[int, ...]


def bit_places(smiles: str, *, radius: int = 2, n_bits: int = 2048) -> list[BitPlace]:
    """Every environment that sets a bit of the Morgan fingerprint of a readable molecule.

    Example:
        >>> sorted(len(place.atoms) for place in bit_places("CCO"))
        [1, 1, 1, 2, 2, 3]
    """
    return bounded(_bit_places, (smiles, radius, n_bits)) if is_hard(smiles) else _bit_places((smiles, radius, n_bits))


def _bit_places(asked: tuple[str, int, int]) -> list[BitPlace]:
    smiles, radius, n_bits = asked
    mol = parse_smiles(smiles).mol
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=radius, fpSize=n_bits)
    extra = rdFingerprintGenerator.AdditionalOutput()
    extra.AllocateBitInfoMap()
    with quiet():
        generator.GetFingerprint(mol, additionalOutput=extra)
    distances, bit_places = Chem.GetDistanceMatrix(mol), []
    for bit, places in sorted(extra.GetBitInfoMap().items()):
        for centre, reach in places:
            bit_places.append(BitPlace(bit, tuple((distances[centre] <= reach).nonzero()[0].tolist())))
    return bit_places

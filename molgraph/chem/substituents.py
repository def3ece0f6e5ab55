"""Cut out of molecules the substituents at marked places of a SMARTS pattern, and describe each by a few properties."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import Crippen, rdMolDescriptors, rdPartialCharges

from molgraph.base.errors import BadValueError, FormatError
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles, precheck, quiet

MATCHES = 10_000  # of a pattern in one molecule, at most
_ACID = "[$([CX3,SX4,PX4](=O)[OX2H1,OX1-]),$([nH,n-]1nnnc1),$([nH,n-]1nncn1),$([nH,n-]1ncnn1),$([NX3H1](S(=O)=O)C=O)]"
_BASE = "[$([NX3;!$(N[C,S,N,P]=[!#6]);!$(N-a);!$(N-C=C);!$(NC#N)]),$([NX2]=[CX3][NX3]),$([NX4+])]"
_IONS = tuple(Chem.MolFromSmarts(text) for text in (_ACID, _BASE))
PROPERTIES = (
    "heavy atoms", "logP", "molar refractivity", "polar surface", "donors", "acceptors", "acids", "bases", "charge",
    "rotatable bonds", "rings", "aromatic rings", "share of sp3 carbons", "charge of the first atom",
)  # fmt: skip


class Place(NamedTuple):
    """A place of a pattern: its atom map number, the index of its atom, and that of the atom that it hangs on."""

    number: int
    atom: int
    neighbour: int


class Pattern(NamedTuple):
    """A SMARTS query with places, in the order of their numbers."""

    query: Chem.Mol
    places: tuple[Place, ...]


@lru_cache(16)
def read_pattern(smarts: str) -> Pattern:
    """The query of a SMARTS whose atoms with a map number, at ends of the pattern, are places of substituents.

    Raises:
        FormatError: it is no SMARTS.
        BadValueError: it is in several parts, has no place, a number twice, or a place with several neighbours.

    Example:
        >>> read_pattern("c1ccccc1[*:1]").places
        (Place(number=1, atom=6, neighbour=5),)
    """
    with quiet():
        query = Chem.MolFromSmarts(smarts)
    if query is None or not query.GetNumAtoms():
        raise FormatError(f"{smarts!r} is no SMARTS pattern", hint='as in "c1ccccc1[*:1]"')
    places = []
    for atom in query.GetAtoms():
        if number := atom.GetAtomMapNum():
            near = [other.GetIdx() for other in atom.GetNeighbors()]
            if len(near) != 1:
                words = f"the place :{number} of {smarts!r} has {len(near)} neighbours in the pattern, expected 1"
                raise BadValueError(words, hint="a place is at an end of the pattern, as in c1ccccc1[*:1]")
            places.append(Place(number, atom.GetIdx(), near[0]))
    numbers = [place.number for place in places]
    if not places or len({*numbers}) < len(numbers):
        words = f"{smarts!r} has {'a place twice' if places else 'no place'}"
        raise BadValueError(words, hint="number its places: c1ccccc1[*:1], or [*:1]c1ccc([*:2])cc1")
    if len(Chem.GetMolFrags(query)) > 1:
        raise BadValueError(f"{smarts!r} is in several parts", hint="give a connected pattern")
    return Pattern(query, tuple(sorted(places)))


def read_exemplar(text: str) -> tuple[int, str]:
    """The place of an exemplar such as ``[*:1]C(=O)O`` (0 where it has no number), and its canonical SMILES with ``*``.

    Raises:
        FormatError: it cannot be read.
        BadValueError: it is not one piece with one ``*`` at an end.

    Example:
        >>> read_exemplar("[*:2]C(=O)O")
        (2, '*C(=O)O')
    """
    mol, reason = parse_smiles(text)
    if mol is None:
        raise FormatError(f"the substituent {text!r} cannot be read: {reason}", hint='as in "[*:1]C(=O)O"')
    ends = [atom for atom in mol.GetAtoms() if not atom.GetAtomicNum()]
    if len(ends) != 1 or ends[0].GetDegree() != 1 or "." in text:
        words = f"the substituent {text!r} is not one piece that hangs on one *"
        raise BadValueError(words, hint='as in "[*:1]C(=O)O"')
    number = ends[0].GetAtomMapNum()
    ends[0].SetAtomMapNum(0)
    return number, Chem.MolToSmiles(mol, isomericSmiles=False)


def substituents(smarts: str, smiles: Sequence[str]) -> list[tuple[str, tuple[tuple[str, ...], ...]]]:
    """Of each SMILES why it cannot be read, or what stands at the places of a pattern, for each way in which it fits.

    The pattern is matched by RDKit; the bond between a place and its neighbour is cut, and what hangs on it is the
    substituent, in canonical SMILES without stereo, with ``*`` where it was cut. A place whose bond is in a ring has
    no substituent, and that way does not count.

    Example:
        >>> substituents("c1ccccc1[*:1]", ["OC(=O)c1ccccc1C", "CCO"])
        [('', (('*C',), ('*C(=O)O',))), ('', ())]
    """
    read_pattern(smarts)
    return map_molecules(partial(_at_places, smarts), smiles, _refused, label="matching")


def on_methyl(substituent: str) -> str:
    """SMILES of a substituent on a carbon, which encoders can read in the place of ``*``.

    Example:
        >>> on_methyl("*C(=O)O")
        'CC(=O)O'
    """
    return str(Chem.MolToSmiles(_on_methyl(substituent)[0]))


def substituent_properties(texts: Sequence[str]) -> np.ndarray:
    """float64 [n, 14]: ``PROPERTIES`` of substituents on a methyl group, by RDKit.

    Size, lipophilicity, polarity and charge are those by which substituents are commonly compared (Ertl 1998, J. Mol.
    Graph. Model. 16:11); the charge of the first atom is Gasteiger's.

    Example:
        >>> substituent_properties(["*C(=O)O"])[0, [0, 4, 6]].tolist()
        [3.0, 1.0, 1.0]
    """
    with quiet():
        return np.array([_properties(text) for text in texts]).reshape(len(texts), len(PROPERTIES))


def _refused(_: str, reason: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    return f"{reason} to match", ()


def _at_places(smarts: str, text: str) -> tuple[str, tuple[tuple[str, ...], ...]]:
    mol = None if precheck(text) else Chem.MolFromSmiles(text)
    if mol is None or not mol.GetNumAtoms():
        return parse_smiles(text).reason or "no atoms", ()
    pattern, ways, cut = read_pattern(smarts), set(), lru_cache(None)(partial(_cut, mol))
    for match in mol.GetSubstructMatches(pattern.query, uniquify=False, maxMatches=MATCHES):
        bonds = [(match[place.neighbour], match[place.atom]) for place in pattern.places]
        if not any(mol.GetBondBetweenAtoms(*ends).IsInRing() for ends in bonds):
            ways.add(tuple(cut(*ends) for ends in bonds))
    return "", tuple(sorted(ways))


def _cut(mol: Chem.Mol, kept: int, atom: int) -> str:
    """What hangs on ``kept`` by its bond with ``atom``."""
    bond = mol.GetBondBetweenAtoms(kept, atom).GetIdx()
    parts = Chem.FragmentOnBonds(mol, [bond], dummyLabels=[(0, 0)])
    atoms: list[tuple[int, ...]] = []
    pieces = Chem.GetMolFrags(parts, asMols=True, sanitizeFrags=False, fragsMolAtomMapping=atoms)
    piece = next(item for item, members in zip(pieces, atoms, strict=True) if atom in members)
    for item in piece.GetAtoms():
        item.SetAtomMapNum(0)
    text = Chem.MolToSmiles(piece, isomericSmiles=False)
    again = Chem.MolFromSmiles(text)  # its own aromaticity, as that of an exemplar
    return text if again is None else str(Chem.MolToSmiles(again, isomericSmiles=False))


def _on_methyl(substituent: str) -> tuple[Chem.Mol, int]:
    """A substituent on a carbon, and the index of its first atom."""
    mol = Chem.RWMol(Chem.MolFromSmiles(substituent))
    end = next(atom for atom in mol.GetAtoms() if not atom.GetAtomicNum())
    first = end.GetNeighbors()[0].GetIdx()
    end.SetAtomicNum(6)
    end.SetNoImplicit(False)
    Chem.SanitizeMol(mol)
    return mol.GetMol(), first


def _properties(text: str) -> list[float]:
    mol, first = _on_methyl(text)
    acids, bases = (len(mol.GetSubstructMatches(query)) for query in _IONS)
    rdPartialCharges.ComputeGasteigerCharges(mol)
    charge = float(mol.GetAtomWithIdx(first).GetDoubleProp("_GasteigerCharge"))
    return [
        mol.GetNumHeavyAtoms() - 1, Crippen.MolLogP(mol), Crippen.MolMR(mol), rdMolDescriptors.CalcTPSA(mol),
        rdMolDescriptors.CalcNumHBD(mol), rdMolDescriptors.CalcNumHBA(mol), acids, bases, Chem.GetFormalCharge(mol),
        rdMolDescriptors.CalcNumRotatableBonds(mol), rdMolDescriptors.CalcNumRings(mol),
        rdMolDescriptors.CalcNumAromaticRings(mol), rdMolDescriptors.CalcFractionCSP3(mol),
        charge if np.isfinite(charge) else 0.0,
    ]  # fmt: skip

"""Assemble molecules of BRICS fragments: attach a fragment at the first open position, or close it with hydrogen."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

from rdkit import Chem
from rdkit.Chem import BRICS

from molgraph.chem.smiles import parse_smiles, quiet

DOUBLE = 7  # the label of positions with a double bond, which hydrogen cannot close; left out
#: labels of positions that BRICS binds to each other (Degen et al. 2008, ChemMedChem 3:1503)
PAIRS = frozenset(
    frozenset((int(a), int(b))) for rules in BRICS.reactionDefs for a, b, bond in rules if bond == "-"
)  # fmt: skip
MAX_HARD = 60  # heavy atoms of a molecule that is taken apart


def brics_fragments(smiles: Sequence[str], most: int = 200) -> list[str]:
    """The most frequent BRICS fragments of molecules, each with its open positions as labelled dummy atoms.

    Args:
        smiles: of the molecules; those that cannot be read have none.
        most: fragments, at most.

    Example:
        >>> brics_fragments(["CCC(=O)Nc1ccccc1", "CC(=O)Nc1ccccc1"])
        ['[1*]C(=O)CC', '[1*]C(C)=O', '[16*]c1ccccc1', '[5*]N[5*]']
    """
    counts = Counter[str]()
    with quiet():
        for text in smiles:
            mol = parse_smiles(text).mol
            if mol is not None and mol.GetNumHeavyAtoms() <= MAX_HARD:
                counts.update(BRICS.BRICSDecompose(mol))
    labels = {text: open_labels(text) for text in counts}
    usable = [text for text in counts if labels[text] and DOUBLE not in labels[text]]
    return sorted(sorted(usable, key=lambda text: (-counts[text], text))[:most])


@lru_cache(maxsize=20_000)
def open_labels(state: str) -> tuple[int, ...]:
    """The labels of the open positions, in the order of the SMILES.

    Example:
        >>> open_labels("[1*]C(=O)c1ccc([16*])cc1"), open_labels("CCO")
        ((1, 16), ())
    """
    mol = _read(state)
    return tuple(atom.GetIsotope() for atom in _open(mol)) if mol is not None else ()


def binds(a: int, b: int) -> bool:
    """Whether positions of these labels are bound to each other."""
    return frozenset((a, b)) in PAIRS


@lru_cache(maxsize=50_000)
def attach(state: str, fragment: str, place: int) -> str:
    """Bind an open position of a fragment to the first one of a molecule: canonical SMILES, empty where it fails.

    Args:
        state: SMILES with open positions.
        fragment: the same.
        place: which open position of the fragment, from 0.

    Example:
        >>> attach("[16*]c1ccccc1", "[5*]N[5*]", 0)
        '[5*]Nc1ccccc1'
    """
    left, right = _read(state), _read(fragment)
    first, second = _open(left)[0].GetIdx(), _open(right)[place].GetIdx() + left.GetNumAtoms()
    mol = Chem.RWMol(Chem.CombineMols(left, right))
    a, b = (mol.GetAtomWithIdx(i).GetNeighbors()[0].GetIdx() for i in (first, second))
    mol.AddBond(a, b, Chem.BondType.SINGLE)
    for i in sorted((first, second), reverse=True):
        mol.RemoveAtom(i)
    return _written(mol)


def close(state: str, n: int = 1) -> str:
    """Put hydrogen at the first ``n`` open positions: canonical SMILES, empty where it fails.

    Example:
        >>> close("[5*]Nc1cc([16*])ccc1"), close("[9*]n1cccc1")
        ('[16*]c1cccc(N)c1', 'c1cc[nH]c1')
    """
    mol = Chem.RWMol(_read(state))
    for atom in _open(mol)[:n]:
        atom.SetAtomicNum(1)
        atom.SetIsotope(0)
    with quiet():
        try:
            return _written(Chem.RemoveHs(mol))
        except (ValueError, RuntimeError):
            return ""


@lru_cache(maxsize=20_000)
def closed(state: str) -> str:
    """The molecule whose open positions all have hydrogen."""
    return close(state, len(open_labels(state)))


@lru_cache(maxsize=20_000)
def heavy_atoms(state: str) -> int:
    """Heavy atoms, without those that mark open positions.

    Example:
        >>> heavy_atoms("[5*]Nc1cc([16*])ccc1")
        7
    """
    return int(_read(state).GetNumHeavyAtoms())


@lru_cache(maxsize=20_000)
def _read(state: str) -> Chem.Mol:
    """The molecule of a SMILES of this file's own; it is not to be changed."""
    return Chem.MolFromSmiles(state)


def _open(mol: Chem.Mol) -> list[Chem.Atom]:
    return [atom for atom in mol.GetAtoms() if atom.GetAtomicNum() == 0]


def _written(mol: Chem.Mol) -> str:
    with quiet():
        try:
            Chem.SanitizeMol(mol)
        except (ValueError, RuntimeError):
            return ""
        return Chem.MolToSmiles(mol)

"""Mutate a molecule for a genetic algorithm: add, remove or change one atom, bond or ring at random."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from rdkit import Chem

from molgraph.chem.smiles import parse_smiles, quiet

TRIES = 10  # edits that are tried before a molecule is given up
MAX_RING = 7  # atoms of a ring
SINGLE, DOUBLE, TRIPLE = Chem.BondType.SINGLE, Chem.BondType.DOUBLE, Chem.BondType.TRIPLE
ORDERS = {1: SINGLE, 2: DOUBLE, 3: TRIPLE}
#: elements and the bond orders by which they are added, the common ones more often
ATOMS = (
    (6, 1, 30), (7, 1, 12), (8, 1, 12), (9, 1, 5), (16, 1, 4), (17, 1, 4), (35, 1, 2), (6, 2, 6), (7, 2, 5), (8, 2, 12),
    (16, 2, 2), (6, 3, 2), (7, 3, 4),
)  # fmt: skip
WEIGHTS = np.array([weight for *_, weight in ATOMS]) / sum(weight for *_, weight in ATOMS)
STRAINED = [Chem.MolFromSmarts(text) for text in ("[R]=[R]=[R]", "[R]#[R]", "[r3,r4]=[r3,r4]", "[r3]:[r3]")]


def mutate(smiles: str, rng: np.random.Generator, *, max_atoms: int = 50) -> str:
    """A molecule that is one edit away from another: an atom appended, inserted, deleted or changed, a bond's order
    changed, a ring closed or opened.

    Seven kinds of edits with equal chances, as the mutations of Jensen 2019 (Chem. Sci. 10:3567), on the Kekule graph.

    Args:
        smiles: of the molecule.
        rng: of the edit.
        max_atoms: heavy atoms that the result may have.

    Returns:
        Canonical SMILES; empty where no edit of some tries leaves a sensible molecule.

    Example:
        >>> mutate("CCO", np.random.default_rng(0)) not in ("", "CCO")
        True
    """
    with quiet():
        for _ in range(TRIES):
            mol = editable(smiles)
            if mol is not None and EDITS[rng.integers(len(EDITS))](mol, rng):
                mutant = finished(mol, max_atoms)
                if mutant and mutant != smiles:
                    return mutant
    return ""


def draft_edits(smiles: str, n: int, rng: np.random.Generator) -> list[tuple[str, Chem.RWMol]]:
    """Edits of a molecule at random, of the kinds of ``mutate``, whose products are graphs and not yet checked.

    Returns:
        At most ``n`` different ones: the text ``MOLECULE>>PRODUCT`` with atom maps, and the graph, which ``finished``
        makes a molecule of where it is one.

    Example:
        >>> drafts = draft_edits("CCO", 10, np.random.default_rng(2))
        >>> drafts[0][0].partition(">>")[0], any(finished(graph, 50) for _, graph in drafts)
        ('[CH3:1][CH2:2][OH:3]', True)
    """
    drafts: dict[str, Chem.RWMol] = {}
    with quiet():
        start = editable(smiles)
        if start is None:
            return []
        numbered = Chem.Mol(start)
        for atom in numbered.GetAtoms():
            atom.SetAtomMapNum(atom.GetIdx() + 1)
        before = Chem.MolToSmiles(numbered)
        for _ in range(n):
            mol = Chem.RWMol(numbered)
            if EDITS[rng.integers(len(EDITS))](mol, rng):
                mol.UpdatePropertyCache(strict=False)
                after = Chem.MolToSmiles(mol, canonical=False)
                for atom in mol.GetAtoms():
                    atom.SetAtomMapNum(0)
                drafts.setdefault(f"{before}>>{after}", mol)
    return [*drafts.items()]


def editable(smiles: str) -> Chem.RWMol | None:
    """The Kekule graph of a molecule, whose neutral atoms fill their valences with hydrogens; None if unreadable."""
    mol = parse_smiles(smiles).mol
    if mol is None:
        return None
    mol = Chem.RWMol(mol)
    Chem.Kekulize(mol, clearAromaticFlags=True)
    for i in range(mol.GetNumAtoms()):  # RDKit's own iteration takes thrice as long
        atom = mol.GetAtomWithIdx(i)
        atom.SetAtomMapNum(0)
        if not (atom.GetFormalCharge() or atom.GetIsotope() or atom.GetNumRadicalElectrons()):
            atom.SetNoImplicit(False)
            atom.SetNumExplicitHs(0)
    mol.UpdatePropertyCache(strict=False)
    return mol


def finished(mol: Chem.Mol, max_atoms: int) -> str:
    """The canonical SMILES of an edited graph; empty where it is no sensible molecule.

    Left out are impossible valences, radicals, a charge of the whole, several fragments, more than ``max_atoms`` heavy
    atoms, rings of more than seven atoms, triple bonds and allenes in rings, double bonds in rings of three or four.
    """
    try:
        Chem.SanitizeMol(mol)
        Chem.AssignStereochemistry(mol, cleanIt=True, force=True)
    except (ValueError, RuntimeError):
        return ""
    strange = (
        mol.GetNumHeavyAtoms() > max_atoms
        or Chem.GetFormalCharge(mol)
        or len(Chem.GetMolFrags(mol)) != 1
        or any(atom.GetNumRadicalElectrons() for atom in mol.GetAtoms())
        or max(map(len, mol.GetRingInfo().AtomRings()), default=0) > MAX_RING
        or any(mol.HasSubstructMatch(pattern) for pattern in STRAINED)
    )
    return "" if strange else Chem.MolToSmiles(mol)


def _element(rng: np.random.Generator) -> tuple[int, Chem.BondType]:
    number, order, _ = ATOMS[rng.choice(len(ATOMS), p=WEIGHTS)]
    return number, ORDERS[order]


def _append_atom(mol: Chem.RWMol, rng: np.random.Generator) -> bool:
    number, order = _element(rng)
    place = int(rng.integers(mol.GetNumAtoms()))
    mol.AddBond(place, mol.AddAtom(Chem.Atom(number)), order)
    return True


def _insert_atom(mol: Chem.RWMol, rng: np.random.Generator) -> bool:
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds() if b.GetBondType() == SINGLE]
    if not bonds:
        return False
    a, b = bonds[rng.integers(len(bonds))]
    number, order = _element(rng)
    mol.RemoveBond(a, b)
    new = mol.AddAtom(Chem.Atom(number))
    mol.AddBond(a, new, order)
    mol.AddBond(new, b, SINGLE)
    return True


def _delete_atom(mol: Chem.RWMol, rng: np.random.Generator) -> bool:
    """Take an atom out and join its neighbours in a row."""
    if mol.GetNumAtoms() < 3:
        return False
    place = int(rng.integers(mol.GetNumAtoms()))
    around = [int(index) for index in rng.permutation([a.GetIdx() for a in mol.GetAtomWithIdx(place).GetNeighbors()])]
    for a, b in pairwise(around):
        if mol.GetBondBetweenAtoms(a, b) is None:
            mol.AddBond(a, b, SINGLE)
    mol.RemoveAtom(place)
    return True


def _change_atom(mol: Chem.RWMol, rng: np.random.Generator) -> bool:
    atom = mol.GetAtomWithIdx(int(rng.integers(mol.GetNumAtoms())))
    atom.SetAtomicNum(_element(rng)[0])
    return not atom.GetFormalCharge()


def _change_bond(mol: Chem.RWMol, rng: np.random.Generator) -> bool:
    if not mol.GetNumBonds():
        return False
    bond = mol.GetBondWithIdx(int(rng.integers(mol.GetNumBonds())))
    bond.SetStereo(Chem.BondStereo.STEREONONE)
    bond.SetBondType(ORDERS[1 + int(rng.integers(3))])
    return True


def _open_ring(mol: Chem.RWMol, rng: np.random.Generator) -> bool:
    bonds = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds() if b.IsInRing()]
    if not bonds:
        return False
    mol.RemoveBond(*bonds[rng.integers(len(bonds))])
    return True


def _close_ring(mol: Chem.RWMol, rng: np.random.Generator) -> bool:
    """Bind two atoms with hydrogens that are so far apart that a ring of three to six arises, mostly of five or six."""
    size = int(rng.choice([3, 4, 5, 6], p=[0.05, 0.05, 0.45, 0.45]))
    free = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetTotalNumHs()]
    distance = Chem.GetDistanceMatrix(mol)
    pairs = [(a, b) for a in free for b in free if a < b and distance[a, b] == size - 1]
    if not pairs:
        return False
    mol.AddBond(*pairs[rng.integers(len(pairs))], SINGLE)
    return True


EDITS: tuple[Callable[[Chem.RWMol, np.random.Generator], bool], ...] = (
    _append_atom, _insert_atom, _delete_atom, _change_atom, _change_bond, _open_ring, _close_ring,
)  # fmt: skip

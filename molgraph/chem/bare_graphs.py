"""Read molecules as bare graphs of elements, charges and bond orders, with the diameter of each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.base.packed import offsets_of
from molgraph.chem.identity import molecule_key
from molgraph.chem.smiles import parse_smiles


class BareGraphs(NamedTuple):
    """Different molecules, their atoms one after another, as ``data.color_refinement.atom_colors`` reads them.

    Args:
        texts: the SMILES.
        n_atoms: int64 [g].
        diameters: int64 [g], bonds between the two atoms that are farthest apart in one piece.
        atom_code: int64 [n], of element and charge.
        bond_code: int64 [e], the order of each directed bond, sorted by the atom at which it arrives.
        source: int64 [e], the atom from which it leaves.
        offsets: int64 [n + 1], the bonds that arrive at each atom.
    """

    texts: list[str]
    n_atoms: np.ndarray
    diameters: np.ndarray
    atom_code: np.ndarray
    bond_code: np.ndarray
    source: np.ndarray
    offsets: np.ndarray


def bare_graphs(smiles: Sequence[str] | np.ndarray, n: int) -> BareGraphs:
    """The first ``n`` molecules of different constitution; a text that is none is left out.

    Example:
        >>> made = bare_graphs(["CCCC", "C1CC1.C", "C(C)CC", "no molecule"], 9)
        >>> made.texts, made.diameters.tolist()
        (['CCCC', 'C1CC1.C'], [3, 1])
    """
    known = dict[str, tuple[str, Chem.Mol]]()
    for text in smiles:
        mol = parse_smiles(str(text)).mol
        if mol is not None and mol.GetNumAtoms():
            known.setdefault(molecule_key(mol, stereo=False), (str(text), mol))
        if len(known) == n:
            break
    texts, mols = [text for text, _ in known.values()], [mol for _, mol in known.values()]
    sizes, distances = [mol.GetNumAtoms() for mol in mols], [Chem.GetDistanceMatrix(mol) for mol in mols]
    diameters = [int(d[d < size].max()) for d, size in zip(distances, sizes, strict=True)]
    atoms, bonds = list[int](), [np.zeros((0, 3), np.int64)]
    for start, mol in zip(offsets_of(sizes), mols, strict=False):
        atoms += [256 * atom.GetAtomicNum() + 128 + atom.GetFormalCharge() for atom in mol.GetAtoms()]
        drawn = [(b.GetBeginAtomIdx(), b.GetEndAtomIdx(), int(b.GetBondType())) for b in mol.GetBonds()]
        both = np.array([*drawn, *((b, a, order) for a, b, order in drawn)], np.int64).reshape(-1, 3)
        bonds.append(both[np.argsort(both[:, 1], kind="stable")] + [start, start, 0])
    source, target, order = np.concatenate(bonds).T
    offsets = offsets_of(np.bincount(target, minlength=len(atoms)))
    return BareGraphs(texts, np.array(sizes), np.array(diameters), np.array(atoms), order, source, offsets)

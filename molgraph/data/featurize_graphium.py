"""Featurise molecules as the library Graphium does for MiniMol: 85 columns an atom, 13 a bond, spectra and walks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdchem import BondType

from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.bounded import TooHardError, bounded, is_hard
from molgraph.chem.handedness import centre_tags, without_maps
from molgraph.chem.parallel import map_texts
from molgraph.chem.smiles import check_smiles, parse_smiles, quiet
from molgraph.data import graphium_layout as layout
from molgraph.data.featuriser import Featuriser, why_no_text
from molgraph.data.featurize import rdkit_version
from molgraph.data.graph_places import PLACES, places
from molgraph.data.graph_store import GraphStore, InputSpec, Level
from molgraph.data.packing import PackedGraphs, pack

MAX_ATOMS = 500
"""Eigenvectors of a matrix of all atoms by all atoms take time in proportion to the third power: 0.3 s for so many."""


_KINDS = {kind: i for i, kind in enumerate((BondType.SINGLE, BondType.DOUBLE, BondType.TRIPLE, BondType.AROMATIC))}


class _Read(NamedTuple):
    """A molecule's atoms and bonds."""

    atoms: np.ndarray  # int64 [n], a key each
    bonds: np.ndarray  # int64 [b], a key each
    ends: np.ndarray  # int64 [2, b]
    places: np.ndarray  # float16 [n, 32]
    reason: str = ""


_NONE = _Read(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros((2, 0), np.int64), np.zeros((0, PLACES), np.half))


@register("featuriser", "graphium", summary="atoms and bonds in Graphium's layout, with spectra and random walks")
class GraphiumMolecules(Featuriser):
    """Levels ``atom`` and ``bond`` (``molgraph.data.graphium_layout``), and ``atom.place``, float16 [n, 32].

    A place holds the 8 lowest eigenvalues of the Laplacian of the atom's component, its numbers in their eigenvectors,
    and the chances that random walks of 1 to 16 steps come back (``molgraph.data.graph_places``), in half precision as
    Graphium has them. The sign of an eigenvector is that of LAPACK for atoms in RDKit's canonical order, so that a
    molecule has one graph however it is written; where eigenvalues are equal their vectors may differ between machines.
    Beside Graphium's columns stand 4 of handedness, which it has none of. Atom maps are not read.

    Kläser et al. 2024, arXiv:2404.14986; Beaini et al. 2024, "Towards Foundational Models for Molecular Learning on
    Large-Scale Multi-Task Datasets". Molecules of more than 500 atoms are ``unreadable``.

    Example:
        >>> store = GraphiumMolecules().featurise(["CO"])
        >>> store.spec.widths, store.levels["atom"].arrays["place"][:, [0, 1, 16, 17]].tolist()
        ({'atom': 89, 'bond': 13}, [[0.0, 2.0, 0.0, 1.0], [0.0, 2.0, 0.0, 1.0]])
    """

    name = "graphium"
    kind: ClassVar[EntityKind] = "molecule"
    examples = ("CCO", "c1ccccc1", "CC(=O)Oc1ccccc1C(=O)O")
    elements = layout.ELEMENTS

    @property
    def versions(self) -> tuple[str, ...]:  # type: ignore[override]
        """The layout's, and RDKit's."""
        return layout.VERSION, rdkit_version()

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One graph a molecule."""
        reason = np.array([why_no_text(text, "molecule") or check_smiles(text) for text in values], dtype=object)
        texts = ["" if problem else text for text, problem in zip(values, reason, strict=True)]
        graphs = map_texts(_read_all, texts, label="graphs", workers=workers)
        counts = np.array([len(graph.atoms) for graph in graphs], dtype=np.int64)
        for i in np.flatnonzero(counts == 0):
            reason[i] = reason[i] or graphs[i].reason or parse_smiles(texts[i]).reason or "a molecule of no atoms"
        status = np.where(counts > 0, OK, UNREADABLE).astype(object)
        store = pack([_packed(graphs)], status, reason, layout.VERSION, layout.atom_rows, layout.bond_rows)
        atoms = store.levels["atom"]
        arrays = {**atoms.arrays, "place": np.concatenate([_NONE.places, *(graph.places for graph in graphs)])}
        return replace(store, levels={**store.levels, "atom": Level(atoms.offsets, arrays, atoms.index)})

    def element_counts(self, features: np.ndarray) -> np.ndarray:
        """float32 [rows, 44]: the atom alone; the layout holds no number of hydrogens."""
        return features[:, layout.ELEMENT : layout.ELEMENT + len(self.elements)]


def _packed(found: Sequence[_Read]) -> PackedGraphs:
    """All molecules side by side."""
    n_atoms = np.array([len(item.atoms) for item in found], dtype=np.int64)
    first = np.cumsum(n_atoms) - n_atoms
    ends = [_NONE.ends, *(item.ends + start for item, start in zip(found, first, strict=True))]
    keys = ([of, *(getattr(item, name) for item in found)] for name, of in (("atoms", _NONE[0]), ("bonds", _NONE[1])))
    atoms, bonds = (np.concatenate(item) for item in keys)
    return PackedGraphs.from_bonds(n_atoms, atoms, bonds, np.concatenate(ends, axis=1))


def _read_all(texts: Sequence[str]) -> list[_Read]:
    with quiet():
        return [_read(text) if text else _NONE for text in texts]


def _read(text: str) -> _Read:
    try:
        mol = Chem.MolFromSmiles(without_maps(text))
    except (RuntimeError, ValueError):  # RDKit throws a few parser errors instead of logging them
        return _NONE
    if mol is None or not mol.GetNumAtoms():
        return _NONE
    if (n := mol.GetNumAtoms()) > MAX_ATOMS:
        return _NONE._replace(reason=f"a molecule of {n:,} atoms, of which {MAX_ATOMS} are read at most")
    try:
        order = bounded(_canonical, mol) if is_hard(text) else _canonical(mol)
    except TooHardError as error:
        return _NONE._replace(reason=f"its canonical order of atoms {error}")
    mol = Chem.RenumberAtoms(mol, order)
    tags = np.array([int(atom.GetChiralTag()) for atom in mol.GetAtoms()], dtype=np.int64)
    centres = np.flatnonzero((tags == 1) | (tags == 2))  # clockwise and counterclockwise
    if len(centres):
        tags[centres] = centre_tags(mol, centres.tolist(), hard=is_hard(text))
    atoms = layout.atom_keys(np.column_stack([_atoms(mol), tags]))
    bonds = np.array([_bond(bond) for bond in mol.GetBonds()], dtype=np.int64).reshape(-1, 5)
    ends = bonds[:, :2].T
    return _Read(atoms, layout.bond_keys(bonds[:, 2:]), ends, places(len(tags), ends))


def _atoms(mol: Chem.Mol) -> np.ndarray:
    """int64 [n, 7], as ``atom_keys`` reads them, without the tags."""
    rows = [
        (
            atom.GetAtomicNum(), atom.GetTotalValence(), atom.GetTotalDegree(), atom.GetFormalCharge(),
            atom.GetNumRadicalElectrons(), atom.GetIsAromatic(), atom.IsInRing(),
        )
        for atom in mol.GetAtoms()
    ]  # fmt: skip
    return np.array(rows, dtype=np.int64)


def _bond(bond: Chem.Bond) -> tuple[int, int, int, int, bool]:
    kind = _KINDS.get(bond.GetBondType(), 4)
    return bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), kind, int(bond.GetStereo()), bond.IsInRing()


def _canonical(mol: Chem.Mol) -> list[int]:
    """The atoms by their canonical rank."""
    return np.argsort(np.array([*Chem.CanonicalRankAtoms(mol)])).tolist()

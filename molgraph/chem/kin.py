"""Find the flat parents of those few rows that may have a relative in another part."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.chem.bounded import each
from molgraph.chem.pruning import is_plain, read_raw
from molgraph.chem.scaffold import LIGHT_METALS, flat_parents
from molgraph.chem.smiles import quiet

_LETTERS = ("C", "N", "O", "S", "P", "F", "I", "B", "X", "Y", "Z", "E")  # X, Y, Z and E stand for Cl, Br, Si and Se
_NUMBERS = (6, 7, 8, 16, 15, 9, 53, 5, 17, 35, 14, 34)
_RING = re.compile(r"%\d\d|\d")
_BRACKET = re.compile(r"\[[^\]]*\]")
#: brackets whose letters are not those of one organic element
_STRANGE = re.compile(r"\[(?!\d*(?:[BCNOPSFI]|Cl|Br|Si|Se|[bcnops]|se)@{0,2}(?:H\d?)?(?:[+-]\d?|\+\+|--)?(?::\d+)?\])")
_LONE = re.compile(r"\[(?:Na|K|Li|Ca|Mg|Cs|Ba|Rb|Sr)H?\d?(?:\+\d?|\+\+)?\]")  # a counter-ion by itself
_ROUNDS = 6
_MATRIX = 300  # atoms up to which a matrix of them is the fastest


class _Kind(NamedTuple):
    """Heavy atoms of each element and ring closures, times two, of a molecule's largest fragment."""

    atoms: tuple[int, ...]
    closures: int
    others: tuple[int, ...] = ()  # atomic numbers that have no letter


def parents_across(smiles: Sequence[str] | np.ndarray, part_of: np.ndarray, alike: np.ndarray | None) -> np.ndarray:
    """Flat parents of the rows that may share one with a row of another part; ``""`` for all others.

    Rows of one flat parent have the same skeleton: as many heavy atoms of each element, as many ring closures and the
    same bonds between them in their largest fragment; charges, hydrogens and bond orders aside. The text tells the
    first two, which sets most rows apart; the others are read, without a look at their chemistry. Where ``alike``
    says which rows have the same flat scaffold, two plain rows (one fragment, no charge but a nitro group's) of
    different scaffolds are no relatives either.

    Args:
        smiles: n texts that can be read.
        part_of: int64 [n], the part of each.
        alike: [n] codes of flat scaffolds, where no two rows of one code lie in different parts; or None.

    Returns:
        object array [n].
    """
    texts = np.asarray(smiles, dtype=object)
    plain = [alike is not None and is_plain(text) for text in texts]
    parents = np.full(len(texts), "", dtype=object)
    with quiet():
        kinds = each(_kinds, list(texts), lambda *_: None)
        # What has no skeleton to go by is read in full; the parent's own skeleton then finds its relatives.
        hidden = [i for i, kind in enumerate(kinds) if kind is None]
        parents[hidden] = flat_parents(texts[hidden]).values
        for i in hidden:
            kinds[i] = _kind(parents[i]) or _kind_read(parents[i])
        rows = _across(range(len(texts)), kinds.__getitem__, part_of, plain)
        found = each(_skeletons, [parents[i] or texts[i] for i in rows], lambda *_: b"")
        skeletons = {i: (kinds[i], skeleton) for i, skeleton in zip(rows, found, strict=True)}
    rows = [i for i in _across(rows, skeletons.__getitem__, part_of, plain) if not parents[i]]
    parents[rows] = flat_parents(texts[rows]).values
    return parents


def _across(rows: Iterable[int], key: Callable[[int], object], part_of: np.ndarray, plain: Sequence[bool]) -> list[int]:
    """Rows that share a key with one of another part, not both of them plain; ``None`` is a key as well."""
    part = part_of.tolist()
    rows_of: dict[object, list[int]] = defaultdict(list)
    for i in rows:
        rows_of[key(i)].append(i)
    found = []
    for group in rows_of.values():
        if len(group) == 1:
            continue
        odd = {part[i] for i in group if not plain[i]}  # parts of the rows that are not plain
        every = {part[i] for i in group}
        found += [i for i in group if (odd if plain[i] else every) - {part[i]}]
    return found


def _kinds(texts: Sequence[str]) -> list[_Kind | None]:
    return [_kind(text) or _kind_read(text) for text in texts]


def _skeletons(texts: Sequence[str]) -> list[bytes]:
    return [_skeleton(text) for text in texts]


def _kind(text: str) -> _Kind | None:
    """The kind of a molecule by its text alone; None where the text does not tell.

    Example:
        >>> _kind("CC(=O)c1cc[nH]c1.[Cl-]") == _kind("O=C(C)c1ccc[nH]1"), _kind("[Na]OC")
        (True, None)
    """
    if "." not in text:
        return None if "[" in text and _STRANGE.search(text) else _counted(text)[0]
    found = []
    for piece in {piece for piece in text.split(".") if not _LONE.fullmatch(piece)}:
        kind, closures = _counted(piece)
        # A ring closure may span a dot: then it stands in a piece an odd number of times.
        if _STRANGE.search(piece) or any(closures.count(closure) % 2 for closure in closures):
            return None
        found.append((sum(kind.atoms), kind))
    return _largest(found)


def _counted(piece: str) -> tuple[_Kind, list[str]]:
    """The kind of a text without dots, and its ring closures."""
    bare = piece.replace("Cl", "X").replace("Br", "Y").replace("Si", "Z").replace("Se", "E").replace("se", "E")
    bare = bare.upper()
    closures = _RING.findall(_BRACKET.sub("", piece) if "[" in piece else piece)
    return _Kind(tuple([bare.count(letter) for letter in _LETTERS]), len(closures)), closures


def _kind_read(text: str) -> _Kind | None:
    """The kind of a molecule from its atoms; None where its flat parent may have another skeleton than it has."""
    mol = read_raw(text)
    if mol is None or any(_loses(atom) for atom in mol.GetAtoms()):
        return None
    found = []
    for fragment in Chem.GetMolFrags(mol):
        atoms = [mol.GetAtomWithIdx(i) for i in fragment]
        heavy = [n for atom in atoms if (n := atom.GetAtomicNum())]
        rings = sum(atom.GetDegree() for atom in atoms) // 2 - len(atoms) + 1
        others = tuple(sorted(n for n in heavy if n not in _NUMBERS))
        found.append((len(heavy), _Kind(tuple([heavy.count(n) for n in _NUMBERS]), 2 * rings, others)))
    return _largest(found)


def _largest(found: list[tuple[int, _Kind]]) -> _Kind | None:
    most = max((n for n, _ in found), default=0)
    largest = [kind for n, kind in found if n == most]
    return largest[0] if len(largest) == 1 else None


def _loses(atom: Chem.Atom) -> bool:
    """Whether a flat parent may lack the atom: hydrogens, and metals that salts are drawn with."""
    number = atom.GetAtomicNum()
    return number == 1 or (number in LIGHT_METALS and atom.GetDegree() > 0)


def _skeleton(text: str) -> bytes:
    """Morgan's sums over neighbours (J. Chem. Doc. 1965, 5:107), sorted: equal for equal skeletons."""
    mol = read_raw(text)
    if mol is None:
        return b""
    if "." in text:
        mol = max(Chem.GetMolFrags(mol, asMols=True, sanitizeFrags=False), key=Chem.Mol.GetNumHeavyAtoms, default=mol)
    n, from_others = mol.GetNumAtoms(), _sums_of(mol)
    values = from_others(np.ones(n))
    for _ in range(_ROUNDS):
        values = 7 * values + from_others(values)  # whole numbers below 2**53, so that their order does not matter
    return np.sort(values).tobytes()


def _sums_of(mol: Chem.Mol) -> Callable[[np.ndarray], np.ndarray]:
    """A function of one value an atom: the sum of its neighbours' values."""
    n = mol.GetNumAtoms()
    if n <= _MATRIX:
        return Chem.GetAdjacencyMatrix(mol).astype(np.float64).__matmul__
    ends = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()], dtype=np.int64).reshape(-1, 2)
    to, come = np.concatenate([ends, ends[:, ::-1]]).T
    return lambda values: np.bincount(to, values[come], n)

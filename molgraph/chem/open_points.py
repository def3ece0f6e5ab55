"""Parse a scaffold, or two fragments to link, with attachment points written as stars, into SMILES tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
from rdkit import Chem

from molgraph.base.errors import BadValueError, CellError
from molgraph.chem.smiles import parse_smiles, quiet
from molgraph.chem.tokens import tokens_of

Score: TypeAlias = Callable[[Sequence[str]], np.ndarray]  # of n SMILES, float [n]
POINT = "*"  # the token of an open point
WRITINGS = 100  # random SMILES of a scaffold among which one is chosen
_LABEL = re.compile(r"%\d\d|\d")
_EXAMPLE = "mark each with a star: c1ccc([*:1])cc1, or c1ccccc1[*:1].[*:1]C1CC1 for a linker"


class OpenScaffold(NamedTuple):
    """A scaffold as a model writes it.

    Args:
        tokens: those of one SMILES, in which ``*`` is an open point; none begins it. Of a linker's fragments the
            second stands behind the star, from its atom at the open point on.
        linker: whether the star stands for a chain that joins two fragments, not for a substituent.
        pattern: the fixed atoms as a query: every atom has as many neighbours as the scaffold gives it.
    """

    tokens: tuple[str, ...]
    linker: bool
    pattern: Chem.Mol

    def is_in(self, smiles: str) -> bool:
        """Whether a molecule is the scaffold with changes at the open points alone."""
        mol = parse_smiles(smiles).mol
        return mol is not None and bool(mol.HasSubstructMatch(self.pattern, useChirality=True))


def read_scaffold(smiles: str, score: Score | None = None) -> OpenScaffold:
    """A scaffold from SMILES with a dummy atom at each open point.

    Args:
        smiles: of the scaffold.
        score: of writings that have a carbon at each open point, such as a model's log-probability: the best is
            taken. If not given, that in which the open points come as late as they can.

    Raises:
        CellError: it cannot be read. BadValueError: no open point, one that is not the end of one bond, no atoms
            beside them, or several parts that no one chain joins.

    Example:
        >>> read_scaffold("[*:1]c1ccccc1").tokens[-1], read_scaffold("OC[*:1].[*:1]C1CC1").linker
        ('*', True)
        >>> found = read_scaffold("c1ccc([*:1])cc1")
        >>> found.is_in("Cc1ccccc1"), found.is_in("Cc1ccc(C)cc1"), found.is_in("C1CCCCC1C")
        (True, False, False)
    """
    mol, reason = parse_smiles(smiles)
    if mol is None:
        raise CellError(f"the scaffold {smiles!r} cannot be read: {reason}", hint=f"give a SMILES; {_EXAMPLE}")
    mol = Chem.Mol(mol)
    points = [atom for atom in mol.GetAtoms() if not atom.GetAtomicNum()]
    if not points:
        raise BadValueError(f"the scaffold {smiles!r} has no open point", hint=_EXAMPLE)
    if any(atom.GetDegree() != 1 or not atom.GetNeighbors()[0].GetAtomicNum() for atom in points):
        words = f"an open point of the scaffold {smiles!r} is not the end of one bond to an atom"
        raise BadValueError(words, hint=_EXAMPLE)
    for atom in mol.GetAtoms():
        atom.SetAtomMapNum(0)
        if not atom.GetAtomicNum():
            atom.SetIsotope(0)
    parts = Chem.GetMolFrags(mol, asMols=True)
    with quiet():
        if len(parts) == 1:
            return OpenScaffold(tuple(_written(mol, score)), False, _query(mol))
        if len(parts) != 2 or any(_points(part) != 1 for part in parts):
            words = f"the scaffold {smiles!r} has {len(parts)} parts with {len(points)} open points"
            raise BadValueError(words, hint="a linker joins two parts with one open point each: OC[*:1].[*:1]C1CC1")
        return OpenScaffold(tuple(_joined(parts[0], parts[1], score)), True, _query(mol))


def _points(mol: Chem.Mol) -> int:
    return sum(not atom.GetAtomicNum() for atom in mol.GetAtoms())


def _written(mol: Chem.Mol, score: Score | None) -> list[str]:
    """The tokens of the best writing; of equal ones that with the fewest tokens behind its open points."""
    roots = [atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomicNum()]
    texts = {Chem.MolToSmiles(mol, rootedAtAtom=root) for root in roots}
    texts |= {text for text in Chem.MolToRandomSmilesVect(mol, WRITINGS, 1) if not text.startswith(POINT)}
    written = sorted((tokens_of(text) for text in texts), key=lambda tokens: (_behind(tokens), len(tokens), tokens))
    if score is None:
        return written[0]
    values = score(["".join(tokens).replace(POINT, "C") for tokens in written])
    return written[int(np.argmax(np.nan_to_num(values, nan=-np.inf)))]


def _behind(tokens: Sequence[str]) -> int:
    return sum(len(tokens) - 1 - place for place, token in enumerate(tokens) if token == POINT)


def _joined(first: Chem.Mol, second: Chem.Mol, score: Score | None) -> list[str]:
    """The tokens of the first part with those of the second behind the star, whose ring labels are free there."""
    tokens = _written(first, score)
    place = tokens.index(POINT)
    (root,) = (atom.GetIdx() for atom in second.GetAtoms() if not atom.GetAtomicNum())
    rest = tokens_of(Chem.MolToSmiles(second, rootedAtAtom=root))[1:]
    return [*tokens[: place + 1], *relabelled(rest, open_labels(tokens[:place])), *tokens[place + 1 :]]


def open_labels(tokens: Sequence[str]) -> frozenset[int]:
    """Ring labels that tokens have opened and not closed.

    Example:
        >>> sorted(open_labels(["C", "1", "C", "%12", "C", "1"]))
        [12]
    """
    labels: frozenset[int] = frozenset()
    for token in tokens:
        if (label := label_of(token)) is not None:
            labels ^= {label}
    return labels


def label_of(token: str) -> int | None:
    """The ring label that a token is, if it is one."""
    return int(token.lstrip("%")) if _LABEL.fullmatch(token) else None


def relabelled(tokens: Sequence[str], taken: frozenset[int]) -> list[str]:
    """The same rings by labels that are not taken.

    Example:
        >>> "".join(relabelled(["C", "1", "C", "C", "1", "C", "1", "C", "C", "1"], frozenset({1})))
        'C2CC2C2CC2'
    """
    out, names = list[str](), dict[int, int]()
    for token in tokens:
        label = label_of(token)
        if label is None:
            out.append(token)
            continue
        new = names.get(label) or next(i for i in range(1, 100) if i not in taken and i not in names.values())
        if names.pop(label, None) is None:
            names[label] = new
        out.append(str(new) if new < 10 else f"%{new}")
    return out


def _query(mol: Chem.Mol) -> Chem.Mol:
    """The atoms without the dummies, each asked for its number of neighbours, dummies among them."""
    how = Chem.AdjustQueryParameters.NoAdjustments()
    how.adjustDegree, how.adjustDegreeFlags = True, Chem.ADJUST_IGNOREDUMMIES
    asked = Chem.RWMol(Chem.AdjustQueryProperties(mol, how))
    for atom in sorted((a.GetIdx() for a in asked.GetAtoms() if not a.GetAtomicNum()), reverse=True):
        asked.RemoveAtom(atom)
    return asked.GetMol()

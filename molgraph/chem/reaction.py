"""Read reaction SMILES: the molecules of both sides, and the atom mapping between them."""

from __future__ import annotations

import re
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.bounded import TooHardError, bounded, is_hard
from molgraph.chem.handedness import without_maps
from molgraph.chem.smiles import captured, one_line, parse_smiles, precheck, unmapped, write_smiles

ARROW = re.compile(r"(?<!-)>")  # "->" is a dative bond
_GROUPS = re.compile(r"\|f:[\d.,]*\|")  # which fragments are one compound; atoms do not depend on it
SIDES = ("reactants", "products")
_READ = Chem.SmilesParserParams()
_READ.removeHs = False
_KEEP_MAPPED = Chem.RemoveHsParameters()
_KEEP_MAPPED.removeMapped = False
_MAPPED = re.compile(r"\[([A-Za-z][a-z]?)H?\d*:\d+\]")


class Reaction(NamedTuple):
    """Both sides of a reaction.

    Args:
        reactants: the molecules before, agents among them, as one molecule of RDKit's without atom maps.
        products: the molecules after.
        product_of: for each atom of the reactants its atom among the products, -1 where it has none.
        texts: both sides as they were written.
    """

    reactants: Chem.Mol
    products: Chem.Mol
    product_of: tuple[int, ...]
    texts: tuple[str, str]


def is_reaction(text: str) -> bool:
    """Whether a text has the two arrows of a reaction SMILES outside of its extension.

    Example:
        >>> [is_reaction(text) for text in ("CC>>CO", "CC>O>CO", "CCO", "[NH3]->[Pt]")]
        [True, True, False, False]
    """
    return ">" in text and len(ARROW.findall(text.strip().partition(" ")[0])) == 2


def sides_of(text: str) -> tuple[str, str]:
    """The SMILES of reactants and products; agents, between the arrows, are among the reactants.

    Raises:
        ValueError: the text is no reaction SMILES, or a side of it is empty.

    Example:
        >>> sides_of("CCO>[Na+]>CC=O")
        ('CCO.[Na+]', 'CC=O')
    """
    body, _, rest = text.strip().partition(" ")
    if rest.strip() and not _GROUPS.fullmatch(rest.strip()):
        raise ValueError(f"text after the reaction: {rest.strip()[:60]!r}")
    parts = ARROW.split(body)
    if len(parts) != 3:
        raise ValueError("no reaction: REACTANTS>>PRODUCTS or REACTANTS>AGENTS>PRODUCTS is expected")
    before, agents, after = parts
    for name, side in zip(SIDES, (before, after), strict=True):
        if not side:
            raise ValueError(f"a reaction without {name}")
    return f"{before}.{agents}" if agents else before, after


def reactants_of(text: str) -> str:
    """The reactants' SMILES without atom maps and without the agents; empty where the text is no reaction.

    Example:
        >>> reactants_of("[CH3:1][OH:2]>O>[CH2:1]=[O:2]"), reactants_of("CC")
        ('[CH3][OH]', '')
    """
    try:
        sides_of(text)
    except ValueError:
        return ""
    return without_maps(ARROW.split(text.strip())[0])


def why_no_reaction(text: str) -> str:
    """Why a text is no mapped reaction; empty where it is one. A hard text is read in its own process alone.

    Example:
        >>> why_no_reaction("[CH3:1][OH:2]>>[CH2:1]=[O:2]"), why_no_reaction("CO>>C=O")
        ('', 'no atom of the reactants is mapped to one of the products: write [CH3:1]O>>[CH2:1]=O')
    """
    try:
        return bounded(_reason, text) if is_hard_reaction(text) else _reason(text)
    except TooHardError as error:
        return f"{error} to read"


def parse_reaction(text: str) -> Reaction | str:
    """A reaction, or the reason why the text is none; nothing is raised.

    Example:
        >>> parse_reaction("[CH3:1][OH:2]>>[CH2:1]=[O:2]").product_of, parse_reaction("CO>>")
        ((0, 1), 'a reaction without products')
    """
    if is_hard_reaction(text) and (reason := why_no_reaction(text)):
        return reason
    try:
        return read_reaction(text)
    except ValueError as error:
        return str(error)


def read_reaction(text: str) -> Reaction:
    """Read one reaction.

    An atom of the reactants is that of the products that has its map number; atoms without a number, and those whose
    number stands on one side alone, have no partner. Mapped hydrogens are atoms, others are counted at their atom.

    Raises:
        ValueError: the reason in one line: a side that cannot be read, a number that stands twice on a side or for two
            elements, no atom with a partner.

    Example:
        >>> read_reaction("[CH3:1][OH:2]>>[CH2:1]=[O:2]").product_of
        (0, 1)
    """
    texts = sides_of(text)
    mols = [_read(side, name) for side, name in zip(texts, SIDES, strict=True)]
    before, after = (_places(mol, name) for mol, name in zip(mols, SIDES, strict=True))
    for number in sorted(before.keys() & after.keys()):
        a, b = (mol.GetAtomWithIdx(side[number]) for mol, side in zip(mols, (before, after), strict=True))
        if a.GetAtomicNum() != b.GetAtomicNum():
            raise ValueError(
                f"atom map {number} is {a.GetSymbol()} in the reactants and {b.GetSymbol()} in the products"
            )
    if not before.keys() & after.keys():
        way = "write [CH3:1]O>>[CH2:1]=O"
        raise ValueError(f"no atom of the reactants is mapped to one of the products: {way}")
    partner = {place: after[number] for number, place in before.items() if number in after}
    of_atom = tuple(partner.get(i, -1) for i in range(mols[0].GetNumAtoms()))
    reactants, products = (unmapped(mol) for mol in mols)
    return Reaction(reactants, products, of_atom, texts)


def reaction_key(text: str) -> str:
    """A text that writings of one reaction share: canonical SMILES of both sides without maps; empty where it is none.

    A molecule and its product have one without maps, too.

    Example:
        >>> reaction_key("[OH:2][CH3:1]>>[CH2:1]=[O:2]") == reaction_key("[CH3:5]O>>[CH2:5]=O")
        True
        >>> reaction_key("OC>>O=C")
        'CO>>C=O'
    """
    try:
        sides = [parse_smiles(side).mol for side in sides_of(text)]
    except ValueError:
        return ""
    return "" if None in sides else ">>".join(write_smiles(unmapped(mol)).smiles for mol in sides)


def is_hard_reaction(text: str) -> bool:
    """Whether a side, without the brackets of mapped atoms, is an unusual molecule (``bounded.is_hard``).

    Example:
        >>> is_hard_reaction(">>".join(["".join(f"[CH2:{i}]" for i in range(1, 90))] * 2))
        False
    """
    return any(is_hard(_MAPPED.sub(r"\1", side)) for side in ARROW.split(text.strip()))


def _reason(text: str) -> str:
    try:
        read_reaction(text)
    except ValueError as error:
        return str(error)
    return ""


def _read(text: str, name: str) -> Chem.Mol:
    """One side, in which mapped hydrogens are atoms."""
    if reason := precheck(text):
        raise ValueError(f"{name}: {reason}")
    with captured() as log:
        try:
            mol = Chem.MolFromSmiles(text, _READ)
            mol = mol and Chem.RemoveHs(mol, _KEEP_MAPPED)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"{name}: {one_line(str(error)) or type(error).__name__}") from None
    if mol is None:
        raise ValueError(f"{name}: {one_line(log.messages) or 'RDKit reads no molecule here'}")
    if not mol.GetNumAtoms():
        raise ValueError(f"a reaction without {name}")
    return mol


def _places(mol: Chem.Mol, name: str) -> dict[int, int]:
    """The atom of each map number of a side."""
    places: dict[int, int] = {}
    for atom in mol.GetAtoms():
        if number := atom.GetAtomMapNum():
            if number in places:
                raise ValueError(f"atom map {number} stands twice in the {name}")
            places[number] = atom.GetIdx()
    return places

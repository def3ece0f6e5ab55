"""Replace a group of a molecule at a single bond by other groups, which gives matched molecular pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.matched_pairs import Cut, cuts_of
from molgraph.chem.smiles import parse_smiles, quiet


class Exchange(NamedTuple):
    """A molecule in which one group was exchanged: its SMILES, and the atoms of the new group in their order in it."""

    cut: Cut
    group: str
    smiles: str
    atoms: tuple[int, ...]


def exchanges(text: str, groups: Sequence[str]) -> Iterator[Exchange]:
    """A molecule with one of its groups exchanged for each of others, at each single bond; no molecule twice.

    Example:
        >>> [each.smiles for each in exchanges("Cc1ccccc1", ["N[*:1]", "O[*:1]"])]
        ['Nc1ccccc1', 'Oc1ccccc1']
    """
    with quiet():
        seen, places = {canonical_text(text)}, cuts_of(text)
        for group in groups:
            for cut in places:
                product = None if group == cut.group else _joined(cut, group)
                if product is not None and product.smiles not in seen:
                    seen.add(product.smiles)
                    yield product


def _joined(cut: Cut, group: str) -> Exchange | None:
    """The context with another group; None where they are no molecule."""
    context, new = Chem.MolFromSmiles(cut.context), Chem.MolFromSmiles(group)
    if context is None or new is None:
        return None
    for atom in new.GetAtoms():
        atom.SetIntProp("exchanged", 1)
    try:
        mol = Chem.molzip(context, new)
        Chem.SanitizeMol(mol)
    except (ValueError, RuntimeError):
        return None
    written = Chem.MolToSmiles(mol)
    order = mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]
    atoms = tuple(at for at, index in enumerate(order) if mol.GetAtomWithIdx(index).HasProp("exchanged"))
    return Exchange(cut, group, written, atoms)


def canonical_text(text: str) -> str:
    """RDKit's canonical SMILES, or the text where it cannot be read."""
    mol = parse_smiles(text).mol
    return text if mol is None else str(Chem.MolToSmiles(mol))

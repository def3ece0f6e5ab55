"""Label tetrahedral stereocentres independently of the order of atoms in the SMILES."""

from __future__ import annotations

import re
from collections.abc import Sequence

from rdkit import Chem

from molgraph.chem.bounded import TooHardError, bounded, is_hard

UNTOLD = int(Chem.ChiralType.CHI_OTHER)
_LABEL = {"R": int(Chem.ChiralType.CHI_TETRAHEDRAL_CW), "S": int(Chem.ChiralType.CHI_TETRAHEDRAL_CCW)}
_MAP = re.compile(r"(\[[^]\s]*?):\d+\]")
_READ = Chem.SmilesParserParams()
_READ.removeHs = False  # so that each atom of a written text is one of the text as it is read


def without_maps(text: str) -> str:
    """A SMILES without atom maps, which RDKit takes for differences between neighbours.

    Example:
        >>> without_maps("[CH3:1][C@H:2]([H:4])[NH2:3]")
        '[CH3][C@H]([H])[NH2]'
    """
    return _MAP.sub(r"\1]", text) if ":" in text else text


def handedness(text: str, centres: Sequence[int]) -> list[int]:
    """RDKit's chiral tags of tetrahedral centres as they would be if all writings of a molecule were one.

    A centre that RDKit gives a CIP code has ``CHI_TETRAHEDRAL_CW`` for R and ``CHI_TETRAHEDRAL_CCW`` for S. Any other,
    whose neighbours are alike but for stereochemistry (1,4-dimethylcyclohexane), has its tag in the canonical SMILES.

    Args:
        text: a SMILES that RDKit reads.
        centres: atoms with one of the two tags.

    Returns:
        As many tags as centres; ``UNTOLD`` where RDKit needs too long for the canonical SMILES, or does not read it.

    Example:
        >>> [handedness(text, [1]) for text in ("C[C@H](N)O", "N[C@@H](C)O", "C[C@@H](N)O")]
        [[1], [1], [2]]
        >>> sorted(handedness("C[C@H]1CC[C@@H](C)CC1", [1, 4])), sorted(handedness("C[C@H]1CC[C@H](C)CC1", [1, 4]))
        ([1, 1], [1, 2])
    """
    return centre_tags(Chem.MolFromSmiles(text), centres, hard=is_hard(text))


def centre_tags(mol: Chem.Mol, centres: Sequence[int], *, hard: bool = False) -> list[int]:
    """The tags of ``handedness`` for a molecule of RDKit's; ``hard``: whether another process writes its SMILES."""
    atoms = [mol.GetAtomWithIdx(i) for i in centres]
    codes = [_LABEL[atom.GetProp("_CIPCode")] if atom.HasProp("_CIPCode") else 0 for atom in atoms]
    if all(codes):
        return codes
    try:
        written = bounded(_canonical_tags, mol) if hard else _canonical_tags(mol)
    except TooHardError:
        written = []
    return [code or (written[i] if written else UNTOLD) for code, i in zip(codes, centres, strict=True)]


def _canonical_tags(mol: Chem.Mol) -> list[int]:
    """The tags of the atoms, in their order, in the canonical SMILES; none where RDKit does not read that."""
    written = Chem.MolToSmiles(mol)
    again = Chem.MolFromSmiles(written, _READ)
    order = list(mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    if again is None or again.GetNumAtoms() != len(order):
        return []
    tags = [0] * len(order)
    for k, i in enumerate(order):
        tags[i] = int(again.GetAtomWithIdx(k).GetChiralTag())
    return tags

"""RDKit's own molecules in; their SMILES, or one line on why there is none, out."""

from __future__ import annotations

from typing import Any, NamedTuple

from rdkit import Chem

from molgraph.chem.smiles import MAX_CHARACTERS, captured, one_line


class Written(NamedTuple):
    """SMILES and an empty reason, or no SMILES and the reason."""

    smiles: str
    reason: str


def is_mol(value: object) -> bool:
    """Whether a value is a molecule of RDKit's.

    Example:
        >>> is_mol(Chem.MolFromSmiles("C")), is_mol("C")
        (True, False)
    """
    return isinstance(value, Chem.Mol)


def write_smiles(mol: Any) -> Written:
    """Write a molecule as SMILES; nothing is raised and nothing reaches the terminal.

    Example:
        >>> write_smiles(Chem.MolFromSmiles("OCC"))
        Written(smiles='CCO', reason='')
        >>> write_smiles(Chem.Mol()).reason
        'a molecule of no atoms'
    """
    n = mol.GetNumAtoms()
    if not n or n > MAX_CHARACTERS:  # RDKit walks along a molecule by recursion: a huge ring would end the process
        return Written("", f"{n} atoms; molgraph reads up to {MAX_CHARACTERS}" if n else "a molecule of no atoms")
    with captured() as log:
        try:
            text = Chem.MolToSmiles(mol)
        except (RuntimeError, ValueError) as error:
            return Written("", one_line(str(error)) or type(error).__name__)
    return Written(text, "") if text else Written("", one_line(log.messages) or "RDKit writes no SMILES for it")

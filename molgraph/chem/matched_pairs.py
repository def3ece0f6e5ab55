"""Cut molecules at single bonds for matched molecular pairs: two molecules that differ in one group at one place."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rdkit.Chem import rdMMPA

from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

LARGEST = 10  # heavy atoms of a group
_HEAVY = re.compile(r"\[(?!\*|\d*H[+\-\]:])[^\]]*\]|Br|Cl|[BCNOPSFIbcnops](?![^\[]*\])")  # neither * nor hydrogen


class Cut(NamedTuple):
    """A molecule cut at one bond.

    Args:
        context: SMILES of what stays, with ``[*:1]`` at the cut.
        group: SMILES of what may be replaced, the smaller part, with ``[*:1]`` at the cut.
    """

    context: str
    group: str


def cuts_of(text: str) -> list[Cut]:
    """The cuts of one molecule at the bonds of rdMMPA, where the group has 10 heavy atoms or fewer; sorted.

    Hussain and Rea 2010, J. Chem. Inf. Model. 50:339, with one cut; hydrogens are no groups.

    Example:
        >>> cuts_of("Cc1ccccc1")
        [Cut(context='c1ccc([*:1])cc1', group='C[*:1]')]
    """
    mol = parse_smiles(text).mol
    if mol is None:
        return []
    cuts = set()
    for _, sides in rdMMPA.FragmentMol(mol, maxCuts=1, maxCutBonds=60, resultsAsMols=False):
        sizes = [(_heavy(side), side) for side in sides.split(".")]
        if len(sizes) == 2:
            (n, group), (m, context) = sorted(sizes)
            if n < m and n <= LARGEST:
                cuts.add(Cut(context, group))
    return sorted(cuts)


def cuts(smiles: Sequence[str], workers: int | None = None) -> list[list[Cut]]:
    """The cuts of each molecule; none where RDKit reads no molecule."""
    return map_molecules(cuts_of, smiles, lambda *_: [], label="matched pairs", workers=workers)


def _heavy(side: str) -> int:
    """Heavy atoms of a part without the one that marks the cut."""
    return len(_HEAVY.findall(side))

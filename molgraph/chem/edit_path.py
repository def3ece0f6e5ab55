"""Find a short path of single edits from one molecule to another by A* search."""

from __future__ import annotations

import heapq
import math
from collections import Counter
from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator

from molgraph.chem.edit_neighbours import edit_neighbours
from molgraph.chem.graph_edits import editable, finished
from molgraph.chem.smiles import parse_smiles, quiet

PER_EDIT = 7.0  # counts of circular environments that bring a molecule an edit nearer; an edit changes 22 in the mean
LARGER = 2  # heavy atoms by which a molecule on the way may exceed the larger end
_ENVIRONMENTS = rdFingerprintGenerator.GetMorganGenerator(radius=2, includeRingMembership=False)


class EditPath(NamedTuple):
    """A path of single edits.

    Args:
        smiles: canonical SMILES without stereo, both ends among them; where the end was not reached, the way to the
            molecule that is nearest to it by the estimate.
        reached: whether the last one is the end.
        expanded: molecules whose neighbours were enumerated.
    """

    smiles: tuple[str, ...]
    reached: bool
    expanded: int


def edit_path(a: str, b: str, *, budget: int = 200, estimate: bool = True) -> EditPath:
    """The molecules between two others, each one edit from the one before it.

    The planning of Kurutach et al. 2018, "Learning Plannable Representations with Causal InfoGAN", NeurIPS: A* search
    over the transitions that are possible, where molecules are their own states and ``edit_neighbours`` the
    transitions. The molecule with the lowest ``f = g + h`` is expanded first: g edits were made, and ``h`` is the sum
    of the differences of counts of Morgan environments (radius 2) to the end, divided by a third of what an edit
    changes in the mean. This h is too high on purpose: the search goes deep, and a path can be longer than the
    shortest one.

    Args:
        a, b: SMILES; stereo is left out.
        budget: molecules that are expanded at most.
        estimate: whether there is an h; without, the search is breadth-first and its path the shortest.

    Raises:
        ValueError: a molecule that cannot be read, is charged, or has several fragments.

    Example:
        >>> edit_path("CCO", "CCCN").smiles
        ('CCO', 'CCN', 'CCCN')
    """
    start, end = flat(a), flat(b)
    if start == end:
        return EditPath((start,), True, 0)
    mols = [Chem.MolFromSmiles(text) for text in (start, end)]
    elements = sorted({atom.GetAtomicNum() for mol in mols for atom in mol.GetAtoms()} - {1})
    largest, goal = max(mol.GetNumAtoms() for mol in mols) + LARGER, environments(mols[1])
    before, cost = {start: ""}, {start: 0}
    left = {start: distance(environments(mols[0]), goal)}
    heap, done = [(left[start] * estimate, left[start] * estimate, start)], set[str]()
    while heap and len(done) < budget and end not in before:
        *_, text = heapq.heappop(heap)
        if text in done:
            continue
        done.add(text)
        for other, mol in edit_neighbours(text, elements, max_atoms=largest).items():
            if cost[text] + 1 < cost.get(other, math.inf):
                if other not in left:
                    left[other] = distance(environments(mol), goal)
                before[other], cost[other] = text, cost[text] + 1
                heapq.heappush(heap, (cost[other] + left[other] * estimate, left[other] * estimate, other))
    way = [end if end in before else min(left, key=lambda text: (left[text], cost[text], text))]
    while before[way[-1]]:
        way.append(before[way[-1]])
    return EditPath(tuple(reversed(way)), end in before, len(done))


def flat(smiles: str) -> str:
    """Canonical SMILES without stereo of a molecule that edits may begin or end at.

    Raises:
        ValueError: it cannot be read, is charged, has several fragments, or a ring that no edit makes.
    """
    mol, reason = parse_smiles(smiles)
    if mol is None:
        raise ValueError(f"{smiles!r} cannot be read: {reason}")
    Chem.RemoveStereochemistry(mol)
    with quiet():
        graph = editable(Chem.MolToSmiles(mol))
        text = "" if graph is None else finished(graph, mol.GetNumAtoms())
    if not text:
        raise ValueError(f"{smiles!r} is charged, a radical, in several fragments, or has a ring that no edit makes")
    return text


def environments(mol: Chem.Mol) -> Counter[int]:
    """How often each circular environment of up to two bonds occurs."""
    return Counter(_ENVIRONMENTS.GetSparseCountFingerprint(mol).GetNonzeroElements())


def distance(one: Counter[int], other: Counter[int]) -> float:
    """Edits between two molecules, estimated from their environments."""
    return sum(abs(one[key] - other[key]) for key in one.keys() | other.keys()) / PER_EDIT

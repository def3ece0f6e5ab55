"""Patterns whose places match by likeness: exact without a radius, growing with it, and close for bioisosteres."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import DataStructs, rdFingerprintGenerator

import molgraph
from molgraph.chem.substituents import on_methyl, substituents
from molgraph.data.sources import builtin
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.embed.grammar import Grammar, Likeness
from tests.systems.effect import Effect

ACID, PATTERN = "[*:1]C(=O)O", "c1ccccc1[*:1]"
#: textbook bioisosteres (Patani and LaVoie 1996, Chem. Rev. 96:3147; Meanwell 2011, J. Med. Chem. 54:2529), written
#: down before any was measured
PAIRS = (
    ("*C(=O)O", "*c1nnn[nH]1"), ("*C(=O)O", "*C(=O)NS(C)(=O)=O"), ("*C(=O)O", "*C(=O)NO"), ("*C(=O)O", "*P(=O)(O)O"),
    ("*C(=O)O", "*S(=O)(=O)O"), ("*c1ccccc1", "*c1cccs1"), ("*c1ccccc1", "*c1ccncc1"), ("*C(F)(F)F", "*C(C)(C)C"),
    ("*O", "*N"), ("*Cl", "*C(F)(F)F"), ("*C", "*Cl"), ("*C(N)=O", "*S(N)(=O)=O"), ("*C(=O)OC", "*c1nc(C)no1"),
    ("*[N+](=O)[O-]", "*C#N"), ("*OC", "*SC"), ("*O", "*NS(C)(=O)=O"), ("*N1CCCCC1", "*N1CCOCC1"),
    ("*C(C)=O", "*S(C)=O"), ("*NC(N)=O", "*NC(N)=S"), ("*C(=N)N", "*NC(=N)N"),
)  # fmt: skip


def nci(n: int) -> list[str]:
    return [str(text) for text in builtin.nci().smiles[:n]]


def charge(atom: Chem.Atom) -> tuple[int, int]:
    return atom.GetFormalCharge(), atom.GetTotalNumHs()


def exactly(texts: list[str], core: str, exemplar: str) -> list[bool]:
    """By RDKit alone: the core with the whole exemplar, whose atoms have no other neighbours, charges or hydrogens."""
    whole = Chem.AdjustQueryParameters.NoAdjustments()
    whole.makeDummiesQueries = True
    whole.adjustDegree, whole.adjustDegreeFlags = True, Chem.ADJUST_IGNOREDUMMIES
    part = Chem.AdjustQueryProperties(Chem.MolFromSmiles(exemplar), whole)
    end = Chem.MolFromSmarts(core).GetNumAtoms() - 1
    out = []
    for text in texts:
        mol, fits = Chem.MolFromSmiles(text), False
        for match in mol.GetSubstructMatches(Chem.MolFromSmarts(core), uniquify=False):
            place, neighbour = match[end], match[end - 1]
            for each in mol.GetSubstructMatches(part, uniquify=False):
                atoms = [(mol.GetAtomWithIdx(j), own) for j, own in zip(each[1:], [*part.GetAtoms()][1:], strict=True)]
                same = all(charge(a) == charge(b) for a, b in atoms)
                ring = mol.GetBondBetweenAtoms(*each[:2]).IsInRing()
                fits |= each[:2] == (neighbour, place) and same and not ring
        out.append(fits)
    return out


@pytest.mark.system("embedding-grammars", rung="exact")
@pytest.mark.parametrize("exemplar", ["*C(=O)O", "*O", "*[N+](=O)[O-]"])
def test_without_a_radius_the_matches_are_those_of_rdkit(off: str, exemplar: str) -> None:
    """Off: a radius of 0.8 in the place of 0."""
    texts = nci(1500)
    wanted = exactly(texts, PATTERN, exemplar)
    found = Grammar(PATTERN, [exemplar], 0.8 if off else 0.0, Likeness()).matches(texts)[0]
    assert sum(wanted) > 20 and [each is not None for each in found] == wanted


@pytest.mark.system("embedding-grammars", rung="exact")
def test_matches_grow_with_the_radius_and_keep_their_distances(off: str) -> None:
    """Off: distances in another order at each radius."""
    texts, likeness, before = nci(600), Likeness(), {}
    for eps in (0.0, 0.2, 0.5, 1.0, 2.0):
        if off:
            likeness = Likeness()
            likeness._spread = np.random.default_rng(int(10 * eps)).permutation(likeness._spread)
        found = Grammar(PATTERN, [ACID, "[*:1]C#N"], eps, likeness).matches(texts)[0]
        now = {i: match.distance for i, match in enumerate(found) if match is not None}
        assert before.items() <= now.items() and max(now.values()) <= eps
        assert len(now) > len(before)
        before = now
    core = Chem.MolFromSmarts("c1ccccc1!@*")
    assert set(before) == {i for i, text in enumerate(texts) if Chem.MolFromSmiles(text).HasSubstructMatch(core)}


def ranks(distance: np.ndarray, names: list[str]) -> float:
    """The mean rank of a partner as a share of the list, over both directions of the pairs; 0.5 at random."""
    row = {name: i for i, name in enumerate(names)}
    shares = []
    for pair in (tuple(map(Chem.CanonSmiles, each)) for each in PAIRS):
        for a, b in (pair, pair[::-1]):
            others = np.delete(distance[row[a]], row[a])
            own = distance[row[a], row[b]]
            place = np.sum(others < own) + (np.sum(others == own) + 1) / 2
            shares.append((place - 0.5) / len(others))
    return float(np.mean(shares))


def fragments() -> list[str]:
    """The partners of the pairs, and the most frequent substituents of NCI's molecules to 200 in all."""
    own = [Chem.CanonSmiles(text) for pair in PAIRS for text in pair]
    counts = Counter(way[0] for _, ways in substituents("[!#1]!@-[*:1]", nci(1500)) for way in ways)
    others = [text for text, _ in counts.most_common() if Chem.MolFromSmiles(text).GetNumHeavyAtoms() <= 10]
    return [*dict.fromkeys([*own, *others])][:200]


@pytest.mark.system("embedding-grammars", rung="works")
def test_bioisosteres_are_near(off: str, effect: Effect) -> None:
    """Off: the vectors of other fragments. Beside: Morgan fingerprints, and a GIN pretrained for three epochs."""
    names = fragments()
    assert len(names) == 200
    model = molgraph.pretrain(nci(3000), model="gin", params={"d_hidden": 64, "depth": 3}, epochs=3, threads=1, seed=0)
    likeness = Likeness()
    other = np.random.default_rng(0).permutation(len(names))
    distance = likeness.distances(names, names)
    learned = Likeness(MoleculeEncoder(model), 1).distances(names, names)
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint
    prints = [make(Chem.MolFromSmiles(on_methyl(name))) for name in names]
    morgan = 1 - np.array([DataStructs.BulkTanimotoSimilarity(each, prints) for each in prints])
    random = distance[np.ix_(other, other)]
    beside = {name: [ranks(d, names)] for name, d in (("learned", learned), ("Morgan", morgan), ("random", random))}
    effect("mean rank of the partner, as a share of 200 fragments", [ranks(random if off else distance, names)],
           at_most=0.25, beside=beside)  # fmt: skip

"""FIDO: regions by enumeration and by learned probabilities, draws that follow a library, motifs that are found."""

from __future__ import annotations

from collections import Counter
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem

from molgraph.base.contracts import Target
from molgraph.chem.infill import FragmentLibrary, cut
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.sources import builtin
from molgraph.data.table import make_table
from molgraph.explain import infill as fido
from molgraph.explain.infill import Evidence, Fill, find_regions, fragment_library
from molgraph.explain.masks import enumerate_masks, learn_masks
from molgraph.explain.occlusion import _without
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect

ACID, NITRO = (Chem.MolFromSmarts(text) for text in ("C(=O)[OH]", "[N+](=O)[O-]"))
CLASSES = (Target("nitro", "binary"),)
MOLECULES = (
    "O=[N+]([O-])c1ccc(C(=O)O)cc1Cl",
    "OC(=O)c1ccc(S(=O)(=O)N2CCOCC2)c([N+](=O)[O-])c1",
    "OC(=O)c1cc([N+](=O)[O-])ccc1OCCN1CCCC1",
    "OC(=O)c1ccc(cc1)-c1ccc([N+](=O)[O-])c(OC)c1NC",
)


class EitherGroup:
    """Predicts an acid or a nitro group: with both, neither alone matters."""

    targets = CLASSES

    def predict(self, texts: list[str]) -> Any:
        mols = [Chem.MolFromSmiles(text) for text in texts]
        has = [mol.HasSubstructMatch(ACID) or mol.HasSubstructMatch(NITRO) for mol in mols]
        return SimpleNamespace(value=np.where(has, 0.98, 0.02)[:, None])


@pytest.mark.system("fido", rung="exact")
@pytest.mark.parametrize("smiles", MOLECULES)
def test_learned_regions_are_those_of_the_enumeration(off: str, smiles: str) -> None:
    """Up to ten fragments, where two groups stand for each other; off: fragments that matter when they alone go."""
    model: Any = EitherGroup()
    evidence = Evidence(model, Chem.CanonSmiles(smiles), "library", fragment_library("builtin:nci"), 0, 4)
    n, share = len(evidence.sizes), evidence.sizes / evidence.sizes.sum()
    assert 3 <= n <= 10
    base = evidence.background()[0]
    gap = float(evidence.values(np.zeros((1, n), bool))[0]) - base

    def cost(masks: np.ndarray) -> np.ndarray:
        left = ((evidence.values(masks) - base) / gap).clip(0, 1)
        return np.asarray(np.where(masks.all(1), 0, left) + 0.5 * masks @ share)

    wanted = enumerate_masks(cost, n)
    if off:
        by_one = find_regions(evidence, 0.5).alone > 0.5
        assert cost(by_one[None])[0] <= cost(wanted[None])[0] + 1e-9
    found = find_regions(evidence, 0.5, exact=10)
    _, learned = learn_masks(cost, n, seed=5)
    assert (found.deletion == wanted).all() and abs(cost(learned[None])[0] - cost(wanted[None])[0]) < 1e-9
    least = min(cost(np.array([[bool(i >> k & 1) for k in range(n)]]))[0] for i in range(2**n))
    assert abs(cost(wanted[None])[0] - least) < 1e-9


@pytest.mark.system("fido", rung="exact")
def test_fragments_are_drawn_as_often_as_they_stand_in_the_same_surroundings(off: str) -> None:
    """What hangs on an aromatic carbon, by SMARTS in 1,000 molecules; off: surroundings are left out of account."""
    texts = [str(text) for text in builtin.nci().smiles[:1000]]
    library = FragmentLibrary(texts)
    if off:
        library.by_surroundings.clear()
    counts: Counter[str] = Counter()
    single = Chem.MolFromSmarts("[c;R]-!@[F,Cl,Br,I,CH3,NH2,OH]")
    for text in texts:
        mol = Chem.MolFromSmiles(text)
        if mol is not None and mol.GetNumAtoms() <= 60:
            counts.update(mol.GetAtomWithIdx(b).GetSymbol() for _, b in mol.GetSubstructMatches(single))
    around = 1 + 6 * 8 + 4 + 2 + 1  # an aromatic carbon
    rng, drawn = np.random.default_rng(4), Counter[str]()
    for _ in range(20_000):
        made = library.draw([around], rng)
        assert made is not None
        heavy = [atom for atom in made.GetAtoms() if atom.GetAtomicNum()]
        if len(heavy) == 1 and heavy[0].GetSymbol() in counts and heavy[0].GetTotalNumHs() <= 3:
            drawn[heavy[0].GetSymbol()] += 1
    wanted, got = (np.array([each[name] for name in sorted(counts)], float) for each in (counts, drawn))
    assert np.abs(wanted / wanted.sum() - got / got.sum()).max() < 0.02


@pytest.mark.system("fido", rung="exact")
def test_nothing_dropped_is_the_molecule_and_all_kept_parts_stay(off: str) -> None:
    """Off: the kept part is drawn too."""
    library = fragment_library("builtin:nci")
    for number, smiles in enumerate(MOLECULES):
        mol = Chem.MolFromSmiles(smiles)
        pieces = cut(mol)
        n = len(pieces.fragments)
        assert sorted(a for own in pieces.atoms for a in own) == [*range(mol.GetNumAtoms())]
        assert fido.infill(pieces, [False] * n, library, np.random.default_rng(number)) == Chem.MolToSmiles(mol)
        acid = next(k for k, own in enumerate(pieces.atoms) if len(own) == 3)
        kept = Chem.MolFromSmarts(Chem.MolFragmentToSmarts(mol, pieces.atoms[acid]))
        for seed in range(20):
            made = fido.infill(pieces, [k != acid or bool(off) for k in range(n)], library, np.random.default_rng(seed))
            assert made is not None and Chem.MolFromSmiles(made).HasSubstructMatch(kept)


@cache
def two_classes(seed: int) -> tuple[Model, FragmentLibrary, tuple[tuple[str, int], ...], tuple[str, ...]]:
    """A network that tells nitro compounds from acids, its training molecules, and others with their class."""
    texts, y = [], []
    for text in builtin.nci().smiles:
        mol = Chem.MolFromSmiles(str(text))
        if mol is not None and 8 <= mol.GetNumAtoms() <= 25 and "." not in str(text):
            has = mol.HasSubstructMatch(ACID), mol.HasSubstructMatch(NITRO)
            if sum(has) == 1:
                texts.append(Chem.MolToSmiles(mol)), y.append(int(has[1]))
    order = np.random.default_rng(seed).permutation(len(texts))
    train = [texts[i] for i in order[:500]]
    table = make_table(train, targets=CLASSES, y=np.array([[float(y[i])] for i in order[:500]]))
    params = {"d_hidden": 32, "depth": 3}
    method = GraphMethod("gin", params, epochs=10, batch_size=32, threads=1, seed=seed).fit(table)
    others = [(texts[i], y[i]) for i in order[500:] if 3 <= len(cut(Chem.MolFromSmiles(texts[i])).fragments) <= 7]
    return Model(method, targets=CLASSES), FragmentLibrary(train), tuple(others[:50]), tuple(train)


def overlap(seed: int, fill: Fill) -> float:
    """The mean intersection over union, by atoms, of the deletion region with the class's group, of 50 molecules."""
    model, library, molecules, _ = two_classes(seed)
    found = []
    for text, kind in molecules:
        evidence = Evidence(model, text, fill, library, 0, 4)
        region = find_regions(evidence, 0.5)
        group = {a for match in evidence.mol.GetSubstructMatches((ACID, NITRO)[kind]) for a in match}
        marked = {a for k, own in enumerate(evidence.pieces.atoms) if region.deletion[k] for a in own}
        found.append(len(group & marked) / len(group | marked))
    return float(np.mean(found))


@pytest.mark.system("fido", rung="works")
def test_the_deletion_region_is_the_group_that_decides(off: str, effect: Effect) -> None:
    """Nitro compounds against acids, where no features are no class; off: zeros in the place of fragments.

    Of a group against all other molecules, zeros do as well (nitro 0.90 beside 0.93, acid 0.80 beside 0.76): a blank is
    then of the class without it. Carbon, printed beside, does better than both here.
    """
    seeds = (11, 12, 13, 14, 15)  # 1 to 3 were those of the set-up
    zero, carbon = ([overlap(seed, fill) for seed in seeds] for fill in ("zero", "carbon"))
    library = zero if off else [overlap(seed, "library") for seed in seeds]
    gain = [a - b for a, b in zip(library, zero, strict=True)]
    beside = {"IoU": library, "IoU by zeros": zero, "IoU by carbon": carbon}
    effect("IoU with the planted group above that by zeros", gain, at_least=0.1, beside=beside)


@pytest.mark.system("fido", rung="works")
def test_filled_molecules_are_nearer_to_those_of_training(off: str, effect: Effect) -> None:
    """The state's distance to the nearest of training; each fragment is dropped with chance 1/2, as learning starts.

    Off: zeros against zeros. Where one fragment alone is dropped, often one atom, the share is 0.74.
    """
    shares = []
    for seed in (11, 12, 13):
        model, library, molecules, train = two_classes(seed)
        assert isinstance(model.method, GraphMethod)
        encoder = model.method.ready().network.encoder

        def states(batch: GraphBatch, encoder: Any = encoder) -> np.ndarray:
            with torch.no_grad():
                return np.asarray(encoder(batch).graphs.numpy(), dtype=float)

        store = featurize(train)
        known = states(collate(store, np.arange(len(store))))
        scale = np.maximum(known.std(axis=0), 1e-6)
        wins, rng = [], np.random.default_rng(seed)
        for text, _ in molecules:
            evidence = Evidence(model, text, "library", library, 0, 1)
            mask = rng.random(len(evidence.sizes)) < 0.5
            mask[rng.integers(len(mask))] = True
            own = featurize([text])
            blank = states(_without(collate(own, np.array([0])), [evidence._atoms(mask)]))
            made = evidence.filled(mask, 1)[0]
            filled = blank if off or made is None else states(collate(featurize([made]), np.array([0])))
            near = [float(np.sqrt((((known - each) / scale) ** 2).sum(1)).min()) for each in (filled, blank)]
            wins.append(near[0] < near[1])
        shares.append(float(np.mean(wins)))
    effect("share of filled molecules nearer to training than blanked ones", shares, at_least=0.8)

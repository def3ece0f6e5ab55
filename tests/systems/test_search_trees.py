"""Searches by tree and by Q-learning: enumerated games with known optima, and what they gain on molecules."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import BRICS

from molgraph.chem.brics_assembly import attach, binds, closed, open_labels
from molgraph.chem.graph_edits import mutate
from molgraph.chem.quality import measure
from molgraph.chem.smiles import why_unreadable
from molgraph.data.sources import builtin
from molgraph.generate.edit_tree import C2, EditTree
from molgraph.generate.fragment_q import QNetwork, Transition
from molgraph.generate.searches.search import make_search
from molgraph.generate.searches.tree_search import TreeSearch
from tests.systems.effect import Effect

LETTERS = "CNOS"
ACTIVES = [str(text) for text in builtin.chembl2321810().smiles[:150]]
#: covalent inhibitors of kinases without stereo: ibrutinib, osimertinib, zanubrutinib, rociletinib, spebrutinib,
#: olmutinib, canertinib, futibatinib
COVALENT = (
    "C=CC(=O)N1CCCC(C1)n1nc(-c2ccc(Oc3ccccc3)cc2)c2c(N)ncnc12",
    "C=CC(=O)Nc1cc(Nc2nccc(n2)-c2cn(C)c3ccccc23)c(OC)cc1N(C)CCN(C)C",
    "C=CC(=O)N1CCC(CC1)C1CCNc2c(C(N)=O)c(nn12)-c1ccc(Oc2ccccc2)cc1",
    "C=CC(=O)Nc1cccc(Nc2nc(Nc3ccc(cc3OC)N3CCN(CC3)C(C)=O)ncc2C(F)(F)F)c1",
    "C=CC(=O)Nc1cccc(Nc2nc(Nc3ccc(OCCOC)cc3)ncc2F)c1",
    "C=CC(=O)Nc1cccc(Oc2nc(Nc3ccc(cc3)N3CCN(C)CC3)nc3ccsc23)c1",
    "C=CC(=O)Nc1cc2c(Nc3ccc(F)c(Cl)c3)ncnc2cc1OCCCN1CCOCC1",
    "C=CC(=O)N1CCC(C1)n1nc(C#Cc2cc(OC)cc(OC)c2)c2c(N)ncnc12",
)
WARHEAD = Chem.MolFromSmarts("C=CC(=O)[NX3]")


class ChainGame(TreeSearch):
    """Four atoms are appended, one after another: 340 molecules."""

    def edits(self, smiles: str) -> list[str]:
        return [] if len(smiles) == 5 else [smiles + letter for letter in LETTERS]


def chain_score(seed: int) -> Callable[[str], float]:
    """A random number of each atom at each place, and of each pair of neighbours."""
    rng = np.random.default_rng(seed)
    single, pair = rng.normal(size=(4, 4)), rng.normal(size=(3, 4, 4))

    def score(smiles: str) -> float:
        atoms = [LETTERS.index(letter) for letter in smiles[1:]]
        alone = sum(single[i, a] for i, a in enumerate(atoms))
        return float(alone + sum(pair[i, a, b] for i, (a, b) in enumerate(pairwise(atoms))))

    return score


CHAINS = ["C" + "".join(letters) for k in range(5) for letters in product(LETTERS, repeat=k)]


def play(
    seed: int, start: str = "C", *, batches: int = 20, n: int = 10, **params: Any
) -> tuple[dict[str, float], ChainGame]:
    """The scores of a run of the game, and the search."""
    score = chain_score(seed)
    search = ChainGame(simulations=n, **params)
    search.begin(starts=[start], seed=seed)
    scores = {start: score(start)}
    search.tell([start], np.array([scores[start]]))
    for step in range(batches):
        smiles = search.ask(n, step).smiles[:n]
        scores.update((text, score(text)) for text in smiles)
        search.tell(smiles, np.array([scores[text] for text in smiles]))
    return scores, search


@pytest.mark.system("muzero", rung="exact")
def test_visits_add_up_and_the_choice_is_that_of_the_equation(off: str) -> None:
    """Schrittwieser et al. 2020, equations 2 and 5; the twin's constant is another."""
    score = chain_score(3)
    tree = EditTree(lambda text: [] if len(text) == 5 else [text + letter for letter in LETTERS], score)
    tree.exploration = 0.3 if off else 1.25
    tree.add_roots(["C", "N"])
    for n in range(1, 201):
        tree.simulate()
        assert tree.root.children is not None
        assert tree.root.visits == n == sum(child.visits for child in tree.root.children)
    nodes = [node for found in tree.nodes.values() for node in found]
    values = [node.value for node in nodes]
    assert all(node.value == score(node.smiles) for node in nodes)
    for node in nodes:
        children = node.children or []
        assert node.visits == node.ends + sum(child.visits for child in children)
        assert node.total == pytest.approx(node.ends * node.value + sum(child.total for child in children))
        bounds = {}
        for child in children:
            q = (child.total / child.visits - min(values)) / (max(values) - min(values)) if child.visits else 0.0
            c = 1.25 + math.log((node.visits + C2 + 1) / C2)
            bounds[child.smiles] = q + 1 / len(children) * math.sqrt(node.visits) / (1 + child.visits) * c
        left = {child.smiles: bounds[child.smiles] for child in children if not child.closed}
        if left:
            assert tree.choose(node).smiles == max(left, key=lambda text: left[text])


@pytest.mark.system("muzero", rung="exact")
def test_a_score_replaces_the_value_on_all_paths(off: str) -> None:
    """The twin learns nothing of the scores."""
    tree = EditTree(lambda text: [text + "C", text + "CC"], lambda text: 0.5, depth=3)
    tree.add_roots(["C"])
    while tree.simulate() is not tree.root:
        pass
    rng, scores = np.random.default_rng(0), {}
    for text in tree.nodes:
        scores[text] = float(rng.random())
        if not off:
            tree.learn(text, scores[text])
    ends = [(node, scores[text]) for text, nodes in tree.nodes.items() for node in nodes]
    assert len(tree.nodes) < len(ends), "a molecule is reached by several paths"
    assert tree.root.total == pytest.approx(sum(node.ends * score for node, score in ends))


@pytest.mark.system("muzero", rung="works")
def test_the_optimum_of_a_game_of_four_edits(off: str, effect: Effect) -> None:
    """200 scores of 340 molecules, in 20 games; the twin explores nothing."""

    def reached(**params: Any) -> list[float]:
        games = [(play(seed, **params)[0], max(map(chain_score(seed), CHAINS))) for seed in range(20)]
        return [float(max(scores.values()) >= best - 1e-9) for scores, best in games]

    found = reached(exploration=0.0) if off else reached()
    draws = [np.random.default_rng(seed).choice(CHAINS, 200, replace=False) for seed in range(20)]
    random = [
        float(max(map(chain_score(seed), texts)) >= max(map(chain_score(seed), CHAINS)) - 1e-9)
        for seed, texts in enumerate(draws)
    ]
    effect("share of games whose optimum is reached", found, at_least=0.95, beside={"random": random})


@pytest.mark.system("muzero", rung="works")
def test_no_start_ends_below_its_greedy_path(off: str, effect: Effect) -> None:
    """From five starts in each of five games; the twin scores 20 molecules alone."""
    gaps = []
    for seed in range(5):
        score = chain_score(seed)
        for start in ("C", *(f"C{letter}" for letter in LETTERS)):
            text, best = start, score(start)
            while len(text) < 5:
                text = max((text + letter for letter in LETTERS), key=score)
                best = max(best, score(text))
            batches = 2 if off else 20 if start == "C" else 8
            scores, _ = play(seed, start, batches=batches, n=10)
            gaps.append(max(scores.values()) - best)
    effect(
        "smallest gain over the greedy path of 25", [min(gaps)], at_least=0.0, beside={"mean": [float(np.mean(gaps))]}
    )


def random_edits(seed: int, calls: int, starts: list[str]) -> dict[str, float]:
    """As many edits of molecules that were reached, without learning."""
    rng, reached = np.random.default_rng(seed), [*starts]
    while len({*reached}) < calls:
        text = mutate(reached[rng.integers(len(reached))], rng)
        reached += [text] if text else []
    texts = [*dict.fromkeys(reached)]
    return dict(zip(texts, measure("qed", texts).value.tolist(), strict=True))


@pytest.mark.system("muzero", rung="works")
def test_drug_likeness_exceeds_that_of_random_edits(off: str, effect: Effect) -> None:
    """The mean of the best ten of 160 molecules; the twin is told shuffled scores."""
    starts, gains, tops, others = ["CCOc1ccccc1"], [], [], []
    for seed in range(3):
        search, rng = make_search("mcts", simulations=60, width=8), np.random.default_rng(seed)
        search.begin(starts=starts, seed=seed)
        scores = {starts[0]: float(measure("qed", starts).value[0])}
        search.tell(starts, np.array([*scores.values()]))
        for step in range(8):
            texts = search.ask(20, step).smiles[:20]
            y = measure("qed", texts).value
            scores.update(zip(texts, y.tolist(), strict=True))
            search.tell(texts, rng.permutation(y) if off else y)
        random = random_edits(seed, len(scores), starts)
        top, other = (float(np.mean(sorted(each.values())[-10:])) for each in (scores, random))
        gains.append(top - other)
        tops.append(top)
        others.append(other)
    beside = {"search": tops, "random edits": others}
    effect("QED of the best ten of 160 above random edits", gains, at_least=0.1, beside=beside)


@pytest.mark.system("adqn-fbdd", rung="exact")
def test_values_are_those_of_an_enumerated_game(off: str) -> None:
    """Ten states in a row, of which each leads to the next or to the end: ``V(i) = max(r_i, gamma V(i + 1))``."""
    n, gamma, rng = 6, 0.9, np.random.default_rng(0)
    reward = rng.random(n)
    states = np.eye(2 * n, dtype=np.uint8)  # going on at i, stopping at i
    known: list[Transition] = []
    for i in range(n):
        after = states[[i + 1, n + i + 1]] if i + 1 < n else states[:0]
        known += [Transition(states[i], 0.0, after), Transition(states[n + i], float(reward[i]), states[:0])]
    network = QNetwork(2 * n, gamma=0.0 if off else gamma, width=32)
    network.add(known)
    network.learn(1500, 0)
    going = np.zeros(n)
    for i in reversed(range(n - 1)):
        going[i] = gamma * max(going[i + 1], reward[i + 1])
    np.testing.assert_allclose(network.values(states), [*going, *reward], atol=0.03)


@pytest.mark.system("adqn-fbdd", rung="exact")
def test_assembly_is_the_inverse_of_brics(off: str) -> None:
    """Each BRICS bond of some molecules is cut and bound again; the twin closes both ends with hydrogen."""
    n = 0
    for text in ACTIVES:
        mol = Chem.MolFromSmiles(text)
        for bond in BRICS.FindBRICSBonds(mol):
            parts = [
                Chem.MolToSmiles(part) for part in Chem.GetMolFrags(BRICS.BreakBRICSBonds(mol, [bond]), asMols=True)
            ]
            if len(parts) != 2 or any(7 in open_labels(part) for part in parts):
                continue
            a, b = parts
            assert binds(open_labels(a)[0], open_labels(b)[0])
            whole = closed(a) if off else attach(a, b, 0)
            assert Chem.CanonSmiles(whole) == Chem.CanonSmiles(text)
            assert not why_unreadable(closed(a)) and not why_unreadable(closed(b))
            n += 1
    assert n > 50


@cache
def random_assembly(folder: Path, seed: int) -> float:
    """The mean QED of the last 50 molecules without learning."""
    return float(assembled(folder, qed, seed, updates=0, choices=6)[1][-50:].mean())


def assembled(
    folder: Path,
    score: Callable[[list[str]], np.ndarray],
    seed: int,
    actives: Sequence[str] = ACTIVES,
    **params: Any,
) -> tuple[list[str], np.ndarray]:
    """The last molecules of 200 episodes of eight steps, with their scores."""
    file = folder / "actives.smi"
    file.write_text("".join(f"{text}\n" for text in actives), encoding="utf-8")
    search = make_search("fragment_dqn", fragments=str(file), most=60, **params)
    search.begin(starts=["CC(=O)Nc1ccc(CN)cc1"], seed=seed)
    texts, scores = list[str](), list[float]()
    for step in range(20):
        batch = search.ask(10, step).smiles
        scores += score(batch).tolist()
        search.tell(batch, np.array(scores[-10:]))
        texts += batch
    assert not any(map(why_unreadable, texts))
    return texts, np.array(scores)


def qed(smiles: list[str]) -> np.ndarray:
    """Drug-likeness."""
    return measure("qed", smiles).value


def acrylamide(smiles: list[str]) -> np.ndarray:
    """1 where a molecule has an acrylamide."""
    return np.array([float(Chem.MolFromSmiles(text).HasSubstructMatch(WARHEAD)) for text in smiles])


@pytest.mark.system("adqn-fbdd", rung="works")
def test_drug_likeness_exceeds_that_of_random_assembly(off: str, effect: Effect, tmp_path: Path) -> None:
    """The mean of the last 50 of 200 episodes; the twin does not learn."""
    gains, trained, random = [], [], []
    for seed in range(3):
        trained.append(float(assembled(tmp_path, qed, seed, updates=0 if off else 4, choices=6)[1][-50:].mean()))
        random.append(random_assembly(tmp_path.parent, seed + 10))
        gains.append(trained[-1] - random[-1])
    beside = {"trained": trained, "random assembly": random}
    effect("mean QED above random assembly", gains, at_least=0.05, beside=beside)


@pytest.mark.system("adqn-fbdd", rung="works", null="the share is below 0.8 after 200 episodes; learning is too slow")
def test_a_reward_for_an_acrylamide_is_reached(off: str, effect: Effect, tmp_path: Path) -> None:
    """The share of the last 50 of 200 episodes, with fragments of eight covalent inhibitors."""
    shares = [float(assembled(tmp_path, acrylamide, seed, COVALENT)[1][-50:].mean()) for seed in range(3)]
    effect("share of molecules with an acrylamide", shares, at_least=0.8)

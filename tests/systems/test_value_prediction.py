"""The value prediction network: its plans by brute force, its edits by RDKit, and changes of held-out molecules."""

from __future__ import annotations

from functools import cache
from itertools import product

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem
from rdkit.Chem.Crippen import MolLogP

from molgraph.chem.graph_edits import draft_edits, finished
from molgraph.chem.pair_edit import read_edit
from molgraph.chem.smiles import quiet
from molgraph.data.featurize_edit import Edits
from molgraph.data.read import read_table
from molgraph.generate.edit_plan import Planner
from molgraph.generate.searches.search import builtin_molecules
from molgraph.train.method import GraphMethod
from tests.systems.effect import Effect

STATES, ACTIONS, GAMMA = 12, 3, 0.9


class Game:
    """A random Markov decision process of 12 states and 3 actions with known transitions."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.reward, self.after = rng.normal(size=(STATES, ACTIONS)), rng.integers(STATES, size=(STATES, ACTIONS))
        self.value = rng.normal(size=STATES)
        self.optimal = np.zeros(STATES)
        for _ in range(500):
            self.optimal = (self.reward + GAMMA * self.optimal[self.after]).max(axis=1)

    def planner(self, value: np.ndarray, gamma: float = GAMMA, width: int = ACTIONS) -> Planner:
        """The plan with exact rewards and transitions."""
        every = range(ACTIONS)
        return Planner(
            lambda s: value[s],
            lambda s: every,
            lambda s, o: self.reward[s],
            lambda s, o: self.after[s, o],
            gamma,
            width,
        )


@pytest.mark.system("vpn", rung="exact")
def test_a_plan_of_one_step_is_the_value_and_one_of_three_is_that_of_all_paths(off: str) -> None:
    """Oh et al. 2017, equations 2 and 3, written out for d = 3 over pairs of actions; the twin's gamma is 1."""
    for seed in range(5):
        game = Game(seed)
        plan = game.planner(game.value, 1.0 if off else GAMMA)
        for s in range(STATES):
            assert plan.value_of(s, 1) == game.value[s]
            paths = []
            for a, b in product(range(ACTIONS), repeat=2):
                t = game.after[s, a]
                last = game.reward[t, b] + GAMMA * game.value[game.after[t, b]]
                paths.append(game.reward[s, a] + GAMMA * (game.value[t] / 2 + last / 2))
            assert plan.value_of(s, 3) == pytest.approx(game.value[s] / 3 + 2 / 3 * max(paths), abs=1e-6)


@pytest.mark.system("vpn", rung="exact")
def test_plans_with_the_optimal_value_are_optimal_at_every_depth(off: str) -> None:
    """The twin looks at one action a state."""
    game = Game(7)
    plan = game.planner(game.optimal, width=1 if off else ACTIONS)
    for s, depth in product(range(STATES), (1, 2, 3, 4)):
        assert plan.value_of(s, depth) == pytest.approx(game.optimal[s], abs=1e-6)


def edits(n: int, seed: int) -> pd.DataFrame:
    """Single random edits of n built-in molecules, three each, and the changes of Crippen's logP."""
    rng, rows = np.random.default_rng(seed), list[tuple[str, str, float]]()
    library = builtin_molecules()
    with quiet():
        for i in rng.permutation(len(library))[:n]:
            if (mol := Chem.MolFromSmiles(library[i])) is None:
                continue
            text = Chem.MolToSmiles(mol)
            products = [
                made for _, draft in draft_edits(text, 8, rng) if (made := finished(draft, 50)) and made != text
            ]
            before = MolLogP(Chem.MolFromSmiles(text))
            rows += [(text, made, MolLogP(Chem.MolFromSmiles(made)) - before) for made in products[:3]]
    return pd.DataFrame(rows, columns=["molecule", "product", "change"])


@pytest.mark.system("vpn", rung="exact")
def test_the_edit_of_a_pair_leads_from_the_molecule_to_its_product(off: str) -> None:
    """The marks, carried out on the molecule, make the product; the twin has none."""
    frame = edits(60, 1)
    for before, after in zip(frame.molecule, frame["product"], strict=True):
        marks = read_edit(f"{before}>>{after}")
        assert not isinstance(marks, str)
        mol = marks.mol
        if off:
            marks = marks._replace(elements=[atom.GetAtomicNum() for atom in mol.GetAtoms()], bonds={})
        plain = {tuple(sorted((b.GetBeginAtomIdx(), b.GetEndAtomIdx()))) for b in mol.GetBonds()}
        plain -= {pair for pair, order in marks.bonds.items() if order == 0}
        plain |= {pair for pair, order in marks.bonds.items() if order > 0}
        made = Chem.RWMol()
        place = {i: made.AddAtom(Chem.Atom(number)) for i, number in enumerate(marks.elements) if number >= 0}
        for a, b in plain:
            made.AddBond(place[a], place[b], Chem.BondType.SINGLE)
        assert bare(made) == bare(Chem.MolFromSmiles(after))


def bare(mol: Chem.Mol) -> str:
    """Elements and which of them are bonded."""
    mol = Chem.RWMol(mol)
    for atom in mol.GetAtoms():
        atom.SetIsAromatic(False)
        atom.SetFormalCharge(0)
        atom.SetNoImplicit(True)
        atom.SetNumExplicitHs(0)
        atom.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
    for bond in mol.GetBonds():
        bond.SetIsAromatic(False)
        bond.SetStereo(Chem.BondStereo.STEREONONE)
        bond.SetBondType(Chem.BondType.SINGLE)
    return str(Chem.MolToSmiles(mol))


@pytest.mark.system("vpn", rung="exact")
def test_a_draft_has_the_marks_of_its_pair(off: str) -> None:
    """Elements and bonds of an edit are the same without its product; the twin reads the molecule alone."""
    store, rows = Edits(marked=not off), list[tuple[str, str]]()
    with quiet():
        for text in builtin_molecules()[:40]:
            for draft, graph in draft_edits(text, 4, np.random.default_rng(0)):
                if made := finished(graph, 50):
                    rows.append((draft, f"{text}>>{made}"))
    drafts, pairs = (store.featurise([row[k] for row in rows]) for k in (0, 1))
    alike = 0
    for i in range(len(rows)):
        sums = []
        for each in (drafts, pairs):
            start, end = each.levels["atom"].offsets[i : i + 2]
            marks = each.tables["atom"][each.levels["atom"].arrays["code"][start:end]][:, 72:-1]
            assert np.abs(marks).sum() > 0 or not off
            sums.append(np.sort(marks @ np.arange(1, 39)).tolist())
        alike += sums[0] == sums[1]
    assert alike >= 0.9 * len(rows), "a pair may have another edit that is as small"


@cache
def figures(featuriser: str, shuffled: bool = False) -> float:
    """R2 of changes of logP by edits of 300 held-out molecules."""
    frame = edits(1600, 17)
    molecules = frame.molecule.drop_duplicates().tolist()
    held = frame.molecule.isin(molecules[-300:])
    learn, judge = frame[~held].copy(), frame[held]
    if shuffled:
        learn["change"] = np.random.default_rng(0).permutation(learn.change)
    how = {"epochs": 30, "batch_size": 64, "head_width": 64, "learning_rate": 3e-3, "threads": 1}
    method = GraphMethod("gin", {"depth": 3}, featuriser=featuriser, **how)
    read = {"reaction": "molecule>>product", "targets": "change"}
    method.fit(read_table(learn, **read))
    wrong = judge.change.to_numpy() - method.predict(read_table(judge, **read)).value[:, 0]
    return 1 - float(np.mean(wrong**2) / judge.change.var(ddof=0))


@pytest.mark.system(
    "vpn",
    rung="works",
    twins=("off", "shuffled"),
    null="0.69 on edits of a seed that it was not set up on, 0.80 on another",
)
def test_the_change_of_logp_is_predicted_without_the_product(off: str, effect: Effect) -> None:
    """The twins see the molecule alone, or learn shuffled changes."""
    value = figures("edit(marked=false)" if off == "off" else "edit", off == "shuffled")
    effect("R2 of the change of logP by edits of held-out molecules", [value], at_least=0.7)

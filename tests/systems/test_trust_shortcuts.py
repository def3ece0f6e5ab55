"""The shortcut study: exact drops of columns and of molecules, and a net that takes the size where two blocks tell."""

from __future__ import annotations

import re
from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from rdkit import Chem

import molgraph
from molgraph.base.contracts import Target
from molgraph.chem.recombine import take_apart
from molgraph.data.read import read_table
from molgraph.data.table import Table, make_table
from molgraph.evaluate.metrics import get_metric
from molgraph.study.randomised import measure, planted, randomised
from tests.systems.effect import Effect

AUC = get_metric("roc_auc")


def numbers(n: int, seed: int) -> Table:
    """Rows with two columns, the first of which is the label with noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n).astype(float)
    x = np.column_stack([y + 0.1 * rng.normal(size=n), rng.normal(size=n)])
    targets = (Target("y", "binary"),)
    return make_table(["CCO"] * n, targets=targets, y=y[:, None], features=x, feature_names=("used", "unused"))


@pytest.mark.system("simplicity-bias-randomisation-test", rung="exact")
def test_a_column_of_zero_weight_has_a_drop_of_zero_and_the_only_one_loses_all(off: str) -> None:
    """The weights are 1 and 0; the mean over all permutations of six rows is chance; off: the identity."""
    table = numbers(400, 3)
    drops = {}
    for block in ("used", "unused", "identity"):
        made = randomised("identity" if off else block, table, 3, 7)
        drops[block] = measure(lambda rows: rows.features @ [1.0, 0.0], table, made, AUC, 0)  # type: ignore[operator]
    assert drops["unused"].drop.value == drops["identity"].drop.value == 0.0
    assert abs(drops["used"].randomised - 0.5) < 0.06 and drops["used"].alike > 0.99
    few = np.array([0.0, 0, 0, 1, 1, 1])
    p = few + 1e-3 * np.arange(6)
    scores = [AUC.function(few, p[list(order)]) for order in permutations(range(6))]
    assert abs(np.mean(scores) - 0.5) < 1e-12


@pytest.mark.system("simplicity-bias-randomisation-test", rung="exact")
def test_molecules_keep_all_but_the_block_that_is_drawn_anew(off: str) -> None:
    """Cores and groups are those of the table, elements are the molecule's own; off: the identity."""
    table = read_table("dataset:esol").take(np.arange(200, 320))

    def made(block: str) -> tuple[list[str], list[str]]:
        found = randomised("identity" if off else block, table, 1, 5)
        assert len(found.rows) > 40
        return [Chem.CanonSmiles(str(table.smiles[i])) for i in found.rows], [
            Chem.CanonSmiles(str(text)) for text in found.tables[0].smiles
        ]

    for block, place in (("groups", 1), ("core", 0)):
        before, after = made(block)
        old, new = ([take_apart(text) for text in texts] for texts in (before, after))
        kept = [Counter(bare(each[place]) for each in some if each) for some in (old, new)]
        moved = [Counter(bare(each[1 - place]) for each in some if each) for some in (old, new)]
        assert kept[0] == kept[1] and moved[0] == moved[1], "a permutation draws from the marginal"
        assert before != after
    before, after = made("size")
    assert before != after
    before, after = made("elements")
    for old, new in zip(before, after, strict=True):
        a, b = (Counter(atom.GetSymbol() for atom in Chem.MolFromSmiles(text).GetAtoms()) for text in (old, new))
        assert a == b, (old, new)
        assert skeleton(old) == skeleton(new), (old, new)


def bare(part: str | tuple[str, ...]) -> tuple[str, ...]:
    """Cores and groups without the numbers of their open places."""
    parts = (part,) if isinstance(part, str) else part
    return tuple(sorted(Chem.CanonSmiles(re.sub(r"\[\d+\*\]", "*", each)) for each in parts))


def skeleton(text: str) -> str:
    """The bare graph of bonds."""
    mol = Chem.RWMol(Chem.MolFromSmiles(text))
    bare = Chem.RWMol()
    for _ in mol.GetAtoms():
        bare.AddAtom(Chem.Atom(6))
    for bond in mol.GetBonds():
        bare.AddBond(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), Chem.BondType.SINGLE)
    for atom in bare.GetAtoms():
        atom.SetNoImplicit(True)
    return Chem.MolToSmiles(bare)


@pytest.mark.system("simplicity-bias-randomisation-test", rung="works")
def test_a_net_that_took_the_size_has_chance_without_it_and_all_without_the_rings(off: str, effect: Effect) -> None:
    """Both blocks tell the label of planted molecules; off: blocks stay as they are."""
    size, core, intact = [], [], []
    for seed in (61, 62, 63):
        how = f"shortcuts(epochs=8, draws=4, randomise={'false' if off else 'true'})"
        found = molgraph.study(how, planted(800, seed), model="gin(d_hidden=32, depth=3)", seed=seed)
        assert off or found.sound, found
        rows = found.frame.set_index("block")
        intact.append(float(rows.loc["none", "intact"]))
        size.append(float(rows.loc["size", "randomised"]))
        core.append(float(rows.loc["core", "randomised"]))
    assert min(intact) >= 0.99 and min(core) >= 0.95, (intact, core)
    beside = {"without the rings": core, "as they are": intact}
    effect("ROC AUC with the size randomised", size, at_least=0.45, at_most=0.55, beside=beside)

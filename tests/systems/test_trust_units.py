"""Names of hidden units: planted units, random units, units taken out, and what training on acids makes of units."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import torch
from scipy.stats import binom, entropy

from molgraph.auxiliary.study.units import Units
from molgraph.base.contracts import Target
from molgraph.chem.atom_labels import AtomLabels, atom_labels
from molgraph.chem.functional_groups import GROUPS, functional_groups
from molgraph.chem.smiles import parse_smiles
from molgraph.data.batch import collate
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.study.ablation import atom_states
from molgraph.study.study import Subject
from molgraph.study.unit_names import belief_distance, exemplar_names
from molgraph.train.inputs import input_graphs
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from tests.systems.effect import Effect

ACIDS = ("fr_COO", "fr_COO2", "fr_Al_COO", "fr_Ar_COO")


@cache
def molecules(first: int = 0) -> AtomLabels:
    """Labels of a thousand molecules."""
    mols = [parse_smiles(str(text)).mol for text in builtin.nci().take(np.arange(first, first + 1000)).smiles]
    return atom_labels([mol for mol in mols if mol is not None and mol.GetNumAtoms()])


@pytest.mark.system("milan", rung="exact", twins=("prior", "one label"))
def test_a_planted_acid_is_named_and_random_units_are_at_their_level(off: str) -> None:
    """p < 0.001, and p < 0.05 in 5 +- 2% of 1,000 random units; off: no prior, or a test of the label found alone."""
    labels, rng = molecules(), np.random.default_rng(3)
    acid = labels.has[:, labels.names.index("fr_COO2")]
    values = np.column_stack([acid, rng.normal(size=(len(acid), 1000))])
    found = exemplar_names(values, labels, k=50, prior=0.0 if off == "prior" else 0.2, seed=1)
    assert found["name"][0] == "fr_COO2" and found["p"][0] < 0.001
    p = found["p"][1:]
    if off == "one label":
        hits, usual = found["share"][1:] * 50, found["usual"][1:]
        p = binom.sf(hits - 1, 50, usual)
    assert abs((p < 0.05).mean() - 0.05) <= 0.02


@pytest.mark.system("milan", rung="exact")
def test_without_a_unit_of_nitrogen_only_molecules_with_nitrogen_change(off: str) -> None:
    """A unit of a real network that is 1 in each nitrogen, through the whole study; off: a unit is taken for it."""
    table = builtin.nci().take(np.arange(400))
    table = make_table([str(text) for text in table.smiles], targets=(Target("y"),), y=np.arange(400.0)[:, None] % 7)
    method = GraphMethod("gin", {"depth": 2, "d_hidden": 16}, epochs=1, threads=1).fit(table)
    embed = method.ready().network.encoder.embed
    with torch.no_grad():
        embed.weight[0], embed.bias[0] = 0, 0
        embed.weight[0, nitrogen(method)] = 1
    found = Units(most=300).run(Subject(table, Model(method, targets=table.targets)), seed=2).frame.set_index("unit")
    own = found.loc[20 if off else 0]
    assert own["name"] == "nitrogen" and own["p"] < 0.001 and own["matching"] > 0 and own["others"] == 0


def nitrogen(method: GraphMethod) -> int:
    """The first column of the atoms' features that is 1 in nitrogen, and 0 in carbon and oxygen."""
    batch = collate(method.graph_inputs()[0].featuriser.featurise(["N", "C", "O", "CN(C)C", "C#N"]), np.arange(5))
    h, own = batch.features("atom").numpy(), np.array([*"NCOCNCCCN"]) == "N"
    return int(np.flatnonzero((h[own] == 1).all(axis=0) & (h[~own] == 0).all(axis=0))[0])


@cache
def groups() -> tuple[list[str], np.ndarray]:
    """Molecules, and whether each is a carboxylic acid."""
    texts = [str(text) for text in builtin.nci().smiles[:1900]]
    return texts, functional_groups(texts)[:, GROUPS.index("fr_COO2")]


def acids(seed: int) -> Table:
    """100 carboxylic acids and 300 other molecules."""
    (texts, y), rng = groups(), np.random.default_rng(seed)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == own))[:n] for own, n in ((1, 100), (0, 300))])
    rows = rng.permutation(rows)
    return make_table([texts[i] for i in rows], targets=(Target("acid", "binary"),), y=y[rows, None].astype(float))


@pytest.mark.system("milan", rung="works")
def test_training_on_acids_makes_units_of_acids(off: str, effect: Effect) -> None:
    """Units with an acid's name in the trained network, of 96; off: no prior."""
    found, before = [], []
    for seed in (20, 21, 22):
        table = acids(seed)
        labels = atom_labels([parse_smiles(str(text)).mol for text in table.smiles])
        for into, rate, epochs in ((before, 1e-12, 1), (found, 2e-3, 25)):
            how = {"epochs": epochs, "learning_rate": rate, "batch_size": 32, "threads": 1, "seed": seed}
            method = GraphMethod("gin", {"depth": 2, "d_hidden": 32}, head_width=64, **how).fit(table)
            graphs = input_graphs(table, method.graph_inputs())[0]
            states = atom_states(method.ready().network.encoder, graphs)
            frame = exemplar_names(states, labels, k=20, prior=0.0 if off else 0.2, seed=seed)
            into.append(float((frame["name"].isin(ACIDS) & (frame["q"] < 0.05)).sum()))
    effect("units with an acid's name", found, at_least=5, beside={"untrained": before})


@pytest.mark.system("belief-matching-translation", rung="exact")
def test_the_distance_of_beliefs_is_the_kl_divergence_of_both_distributions(off: str) -> None:
    """Of explicit distributions, to 1e-6; off: co-occurrence."""
    rng = np.random.default_rng(1)
    code, has = rng.random((40, 3)) < 0.3, rng.random((40, 5)) < [0.1, 0.3, 0.5, 0.7, 0.0]
    found = belief_distance(code, has, "overlap" if off else "belief", 0.07)
    for c in range(3):
        for m in range(5):
            listener = np.where(has[:, m], 0.93, 0.07)
            wanted = entropy(code[:, c] / code[:, c].sum(), listener / listener.sum())
            assert abs(found[c, m] - wanted) < 1e-6


@pytest.mark.system("belief-matching-translation", rung="works")
def test_noisy_codes_of_groups_get_their_groups_names(off: str, effect: Effect) -> None:
    """Of 20 groups of RDKit as codes, a tenth of whose bits are turned; off: the label of most molecules (10 at most).

    Groups are those of 1% of the molecules or more.
    """
    labels, named = molecules(2000), []
    has = labels.of_molecules[:, [name.startswith("fr_") for name in labels.names]]
    able = np.flatnonzero((has.mean(axis=0) >= 0.01) & (has.mean(axis=0) <= 0.9))
    other = []
    for seed in (30, 31, 32, 33, 34):
        rng = np.random.default_rng(seed)
        pick = rng.choice(able, 20, replace=False)
        code = has[:, pick] ^ (rng.random((len(has), 20)) < 0.1)
        both = [float((belief_distance(code, has, by).argmin(axis=1) == pick).sum()) for by in ("belief", "overlap")]
        named.append(both[1 if off else 0])
        other.append(both[1])
    effect("names that are right, of 20", named, at_least=18, beside={"the label of most molecules": other})

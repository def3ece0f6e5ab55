"""Complexes in space and the controls of pairs: contexts of atoms, contact maps, one side alone, ranks of poses."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from rdkit.ML.Scoring.Scoring import CalcAUC, CalcEnrichment
from sklearn.metrics import roc_auc_score

from molgraph.base.table import OK, Target
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize_complex import SERINE, Complexes
from molgraph.data.featurize_contacts import CUTOFF, STEP, ContactMap
from molgraph.data.graph_values import Geometry
from molgraph.data.read import read_table
from molgraph.data.sides import Side, sides_of
from molgraph.data.table import Entities, Table
from molgraph.evaluate.measures import roc_auc
from molgraph.evaluate.screening import enrichment, top_rate
from molgraph.evaluate.sides import Gap, gap
from molgraph.models.atom_context import AtomContext
from molgraph.models.contact_map import ContactMapEncoder
from molgraph.study.docking_rank import DOCKING, complexes_of, rank_alone, rank_column
from molgraph.study.pair_bias import PairBias
from molgraph.study.pair_toys import Rule, toy_pairs
from molgraph.study.study import Subject
from molgraph.train.make_method import make_method
from molgraph.train.one_side import method_alone
from tests.systems.effect import Effect

QUICK = {"epochs": 1, "min_steps": 400, "learning_rate": 3e-3, "threads": 1, "head_width": 32}
STOPS = {"epochs": 12, "patience": 4, "batch_size": 32, "learning_rate": 3e-3, "threads": 1, "head_width": 32}
PAIR = {"dmpnn.d_hidden": 16, "deepdta.d_embed": 8, "deepdta.n_filters": 8}
N_TEST = 400


def rows_of(values: list[Any], kind: Any = "geometry") -> Table:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    n = len(values)
    ids, status, reason = np.array([str(i) for i in range(n)], object), np.full(n, OK, object), np.full(n, "", object)
    return Table(ids, (Entities("complex", kind, array),), status, reason)


def toys(rule: Rule, n: int, seed: int) -> Table:
    """Complexes of a chain that ends in N or O with a cysteine or a serine next to it."""
    one = rows_of([SERINE])
    return toy_pairs(one, sides_of(one), rule, n=n, seed=seed)


def drugs(rule: Rule, n: int, seed: int) -> Table:
    """Molecules that end in N or O with proteins of one of two motifs."""
    one = read_table({"drug": ["CCO"], "protein": ["MKT"]}, smiles="drug", sequence="protein")
    return toy_pairs(one, sides_of(one), rule, n=n, seed=seed)


def divided(table: Table, n_test: int = N_TEST) -> tuple[Table, Table]:
    return table.take(np.arange(n_test, len(table))), table.take(np.arange(n_test))


def auc(name: str, table: Table, side: Side | None = None, **params: Any) -> float:
    """ROC AUC on the first 400 rows of a model that learned from the others."""
    train, test = divided(table if side is None else side.of(table))
    made = make_method(name, **{**QUICK, **params}).fit(train).predict(test)
    return float(roc_auc_score(test.y[:, 0], made.value[:, 0]))


def batch_of(*values: Geometry) -> GraphBatch:
    return collate(Complexes().featurise(values), np.arange(len(values)))


def shuffled(value: Geometry, seed: int) -> Geometry:
    order = np.random.default_rng(seed).permutation(len(value.numbers))
    return Geometry(*(None if each is None else each[order] for each in vars(value).values()))


@pytest.mark.system("deepvs", rung="exact")
def test_the_order_of_the_atoms_changes_nothing(off: str) -> None:
    torch.manual_seed(0)
    values = list(toys("xor", 100, 0).entities[0].values)
    encoder = AtomContext(Complexes().featurise(values).spec)
    plain = encoder(batch_of(*values)).graphs
    moved = batch_of(*(shuffled(value, i) for i, value in enumerate(values)))
    if off:  # the first atoms, as they come, in the place of the nearest
        near = {"residue": moved["atom"].arrays["residue"].flip(0)}
        moved = moved.with_level("atom", **near)
    torch.testing.assert_close(encoder(moved).graphs, plain, rtol=0, atol=1e-6)


@pytest.mark.system("deepvs", rung="exact")
def test_without_places_for_the_protein_it_is_blind_to_it(off: str) -> None:
    torch.manual_seed(0)
    values = list(toys("xor", 20, 0).entities[0].values)
    encoder = AtomContext(Complexes().featurise(values).spec, k_p=2 if off else 0)
    plain, rng = encoder(batch_of(*values)).graphs, np.random.default_rng(0)
    for value in values:
        protein = value.residue > 0
        value.positions[protein] = rng.normal(0, 9, (protein.sum(), 3))
        value.numbers[protein] = 6
    torch.testing.assert_close(encoder(batch_of(*values)).graphs, plain, rtol=0, atol=0)


@pytest.mark.system("deepvs", rung="exact")
def test_a_ligand_is_the_maximum_of_its_atoms_contexts(off: str) -> None:
    """Against a plain loop: types, charges, distances and amino acids of the nearest atoms, side by side."""
    torch.manual_seed(0)
    value = SERINE
    value = replace(value, residue=np.array([0, 0, 0, 16, 16, 16, 16], np.uint8))
    k_c, k_p = 2, 3
    encoder = AtomContext(Complexes().featurise([value]).spec, k_c=k_c, k_p=k_p, d_embed=3, n_filters=5).double()
    ligand, protein = (np.flatnonzero((value.residue == 0) == own) for own in (True, False))
    states = []
    for a in ligand:
        z: list[list[torch.Tensor]] = [[], [], [], []]
        for atoms, k in ((ligand, k_c), (protein, k_p)):
            apart = np.linalg.norm((value.positions[atoms] - value.positions[a]).astype(np.float64), axis=1)
            for i in np.argsort(apart, kind="stable")[:k]:
                b, steps = atoms[i], min(apart[i] / 0.3, 17.0)
                low = min(math.floor(steps), 16)
                z[0].append(encoder.types.weight[int(value.numbers[b]) + 1])
                z[1].append(encoder.charges.weight[round((float(value.charge[b]) + 1) / 0.05) + 1])
                grid = encoder.distances.weight
                z[2].append(grid[low + 1] * (1 - steps + low) + grid[low + 2] * (steps - low))
                z[3] += [encoder.residues.weight[int(value.residue[b])]] * (atoms is protein)
        states.append(torch.tanh(encoder.linear(torch.cat([each for part in z for each in part]))))
    whole = torch.stack(states)
    known = whole.mean(0) if off else whole.amax(0)
    wide = batch_of(value)
    wide = wide.with_level("atom", position=wide["atom"].arrays["position"].double())
    torch.testing.assert_close(encoder(wide).graphs[0], known, rtol=0, atol=1e-6)


@pytest.mark.system("deepvs", rung="exact")
def test_enrichment_and_area_are_rdkits(off: str) -> None:
    rng = np.random.default_rng(0)
    for n in (100, 1000, 3000):
        y, score = (rng.random(n) < 0.1).astype(float), rng.normal(size=n)
        order = np.argsort(-score)
        ranked = [[each] for each in y[order]]
        first = math.ceil(n * 0.01)
        assert roc_auc(y, score) == pytest.approx(CalcAUC(ranked, 0), abs=1e-9)
        found = enrichment(y, -score if off else score)
        assert found == pytest.approx(CalcEnrichment(ranked, 0, [0.01])[0], abs=1e-9)
        assert enrichment(y, score) == pytest.approx(y[order][:first].mean() / y.mean(), abs=1e-9)


@pytest.mark.system("deepvs", rung="works")
def test_contacts_with_the_protein_are_learned_where_the_ligand_alone_says_nothing(off: str, effect: Effect) -> None:
    whole, alone = [], []
    for seed in range(2):
        table = toys("second", 1000, seed)
        ligand = sides_of(table)[0]
        whole.append(auc("atom_context", table, k_p=0 if off else 2, d_embed=8, n_filters=32))
        alone.append(auc("atom_context", table, ligand, d_embed=8, n_filters=32))
    assert all(abs(each - 0.5) <= 0.05 for each in alone), alone
    effect("ROC AUC of contacts with a cysteine", whole, at_least=0.9, beside={"ligand alone": alone})


@pytest.mark.system("dual-graph-l-lp-r-network", rung="exact")
def test_contacts_are_the_least_distances_of_residues(off: str) -> None:
    """Against all pairs of atoms of structures whose residues have several."""
    rng = np.random.default_rng(0)
    for n in (1, 5, 40):
        index = np.sort(rng.integers(-3, 12, n)).clip(min=-1).astype(np.int32)
        residue = np.where(index < 0, 0, 1 + index % 20).astype(np.uint8)
        value = Geometry(rng.choice([6, 7, 8], n).astype(np.uint8), rng.normal(0, 5, (n, 3)).astype(np.float32),
                         None, residue, index, np.zeros(n, np.float32))  # fmt: skip
        node = [("atom", i) if index[i] < 0 else ("residue", int(index[i])) for i in range(n)]
        order = [*dict.fromkeys(sorted(node))]
        apart = np.linalg.norm(value.positions[:, None] - value.positions[None], axis=2)
        known = np.full((len(order), len(order)), np.inf)
        for i in range(n):
            for j in range(n):
                a, b = order.index(node[i]), order.index(node[j])
                known[a, b] = min(known[a, b], apart[i, j]) if not off else apart[i, j]
        bond = ContactMap().featurise([value]).levels["bond"].arrays
        found = {(int(a), int(b)): int(c) for a, b, c in zip(bond["source"], bond["target"], bond["code"], strict=True)}
        expected = {
            (a, b): min(int(known[a, b] / STEP), int(CUTOFF / STEP) - 1)
            for a in range(len(order)) for b in range(len(order)) if a != b and known[a, b] < CUTOFF
        }  # fmt: skip
        assert found == expected
        assert all((bond["source"][bond["reverse"]] == bond["target"]).tolist())


@pytest.mark.system("dual-graph-l-lp-r-network", rung="exact")
def test_a_round_adds_what_neighbours_send_through_the_distance(off: str) -> None:
    torch.manual_seed(0)
    store = ContactMap().featurise(list(toys("xor", 3, 0).entities[0].values))
    batch, encoder = collate(store, np.arange(3)), ContactMapEncoder(store.spec, d_hidden=5, depth=2)
    h = encoder.embed(batch.features("atom"))
    for distance, layer in zip(encoder.distance, encoder.layers, strict=True):
        near, weights = torch.zeros_like(h), distance(batch.features("bond"))
        for k in range(batch.n_bonds):
            near[batch.target[k]] += h[batch.source[k]] * (1.0 if off else weights[k])
        h = h + layer(torch.cat([h, near], dim=1)).relu()
    known = torch.stack([h[batch.graph_of("atom") == i].mean(0) for i in range(3)])
    torch.testing.assert_close(encoder(batch).graphs, known, rtol=1e-4, atol=1e-5)


@pytest.mark.system("dual-graph-l-lp-r-network", rung="exact")
def test_the_rank_alone_is_right_as_often_as_the_docking_program(off: str) -> None:
    """Thirty complexes of ten poses each; the program's first pose is right in some of them."""
    rng = np.random.default_rng(0)
    ranks = np.tile(np.arange(1.0, 11.0), 30)
    right = (rng.random(300) < 0.6 / ranks).astype(float)
    table = replace(
        rows_of([f"M{'A' * (i // 10)}" for i in range(300)], "sequence"),
        targets=(Target("right", "binary"),), y=right[:, None], features=ranks[:, None], feature_names=("rank",),
    )  # fmt: skip
    train, test = table.take(np.arange(150)), table.take(np.arange(150, 300))
    program = float(test.y[rank_column(test, "rank") == 1, 0].mean())
    score = rng.random(150) if off else rank_alone(train, test, "rank")
    assert top_rate(test.y[:, 0], score, complexes_of(test)) == program
    assert top_rate(test.y[:, 0], -rank_column(test, "rank"), complexes_of(test)) == program
    made = PairBias(rows=300, seeds=1, epochs=1, rank="rank", split="random")
    drug = Entities("drug", "molecule", np.array(["CCO", "CCN", "CCC"], object)[np.arange(300) // 10 % 3])
    both = replace(table, entities=(drug, *table.entities))
    frame = made.run(Subject(both, "dmpnn(d_hidden=8)+deepdta(d_embed=8, n_filters=8)")).frame.set_index("row")
    assert frame.loc["rank alone", "top1"] == frame.loc[DOCKING, "top1"] and "without the rank" in frame.index


def the_gap(table: Table, seed: int) -> Gap:
    """Of models that stop by validation rows, before they learn the wrong labels by heart."""
    rest, test = divided(table)
    train, valid, side = rest.take(np.arange(300, len(rest))), rest.take(np.arange(300)), sides_of(table)[0]
    method = make_method("dmpnn+deepdta", **STOPS, seed=seed, **PAIR)
    whole = method.fit(train, valid).predict(test)
    alone = method_alone(method, side, table).fit(side.of(train), side.of(valid)).predict(side.of(test))
    return gap(test, table.targets[0], side, [whole], [alone], seed=seed)


@pytest.mark.system("dual-graph-l-lp-r-network", rung="works", twins=("protein's labels",))
def test_labels_of_the_ligand_leave_no_gap_to_the_ligand_alone(off: str, effect: Effect) -> None:
    """The labels are the ligand's, one in five of them wrong, so that no model is right throughout."""
    found = []
    for seed in range(3):
        table = drugs("second" if off else "first", 1600, seed)
        wrong = np.random.default_rng(seed).random(len(table)) < 0.2
        found.append(the_gap(replace(table, y=np.where(wrong[:, None], 1 - table.y, table.y)), seed))
    held = [float(each.holds_zero) for each in found]
    scores = {"whole": [each.whole for each in found], "ligand alone": [each.alone for each in found]}
    effect("intervals of the gap that hold 0", held, at_least=1.0, beside=scores)


@pytest.mark.system("dual-graph-l-lp-r-network", rung="works", twins=("ligand alone",))
def test_labels_of_both_sides_are_learned_by_the_pair_and_by_neither_side(off: str, effect: Effect) -> None:
    """The label is 1 where the bits of ligand and protein differ."""
    scores: dict[str, list[float]] = {"whole": [], "ligand alone": [], "protein alone": []}
    for seed in range(2):
        table = drugs("xor", 2700, seed)
        train, test = divided(table, 1500)
        made = make_method("dmpnn+deepdta", **{**QUICK, **PAIR, "min_steps": 600})
        for side in sides_of(table):
            p = method_alone(made, side, table).set_params(min_steps=300).fit(side.of(train)).predict(side.of(test))
            scores[side.title].append(float(roc_auc_score(test.y[:, 0], p.value[:, 0])))
        p = None if off else made.fit(train).predict(test)
        scores["whole"].append(0.0 if p is None else float(roc_auc_score(test.y[:, 0], p.value[:, 0])))
    found = scores["ligand alone"] if off else scores["whole"]
    alone = {name: each for name, each in scores.items() if name != "whole"}
    assert all(abs(each - 0.5) <= 0.05 for each in alone["ligand alone"]), scores
    effect("ROC AUC of an exclusive or of ligand and protein", found, at_least=0.9, beside=alone)

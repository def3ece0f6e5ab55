"""Paths of single edits between molecules: against networkx on a small universe, and between drug-like molecules."""

from __future__ import annotations

import functools
from contextlib import suppress
from itertools import pairwise

import networkx as nx
import numpy as np
import pytest
from rdkit import Chem

from molgraph.chem.edit_neighbours import edit_neighbours
from molgraph.chem.edit_path import EditPath, edit_path, flat
from molgraph.chem.graph_edits import mutate
from molgraph.data.sources import builtin
from tests.systems.effect import Effect

ELEMENTS, ATOMS = (6, 8), 4  # of the small universe
PAIRS, BUDGET = 18, 100


@functools.cache
def universe() -> nx.DiGraph:
    """All molecules of up to four atoms of carbon and oxygen, and the edits between them."""
    graph, todo = nx.DiGraph(), ["C"]
    while todo:
        text = todo.pop()
        for other in edit_neighbours(text, ELEMENTS, max_atoms=ATOMS):
            if other not in graph:
                todo.append(other)
            graph.add_edge(text, other)
    return graph


@pytest.mark.system("causal-infogan", rung="exact")
def test_without_an_estimate_paths_are_the_shortest_and_with_one_hardly_longer(off: str) -> None:
    """Every edit is one of those that the enumeration lists, and has its inverse."""
    graph = universe()
    assert len(graph) > 100 and all(graph.has_edge(b, a) for a, b in graph.edges)
    names, rng = sorted(graph), np.random.default_rng(0)
    for _ in range(30):
        a, b = rng.choice(names, 2, replace=False)
        shortest = nx.shortest_path_length(graph, a, b)
        for estimate, room in ((False, 0), (True, 2)):
            way = edit_path(a, b, budget=1 if off else 3000, estimate=estimate)
            assert way.reached and way.smiles[0] == a and way.smiles[-1] == b
            assert shortest <= len(way.smiles) - 1 <= shortest + room or max(map(atoms, way.smiles)) > ATOMS
            for one, other in pairwise(way.smiles):
                assert other in edit_neighbours(one, ELEMENTS), f"{one} to {other} is one edit"
                assert Chem.SanitizeMol(Chem.MolFromSmiles(other)) == Chem.SANITIZE_NONE


def atoms(smiles: str) -> int:
    return int(Chem.MolFromSmiles(smiles).GetNumAtoms())


def pairs() -> list[tuple[str, str, int]]:
    """Molecules of the NCI list and what one to six random edits make of them."""
    rng = np.random.default_rng(1)
    texts = [str(text) for text in builtin.nci().smiles]
    found: list[tuple[str, str, int]] = []
    while len(found) < PAIRS:
        n, start = 1 + len(found) % 6, texts[rng.integers(len(texts))]
        with suppress(ValueError):
            way = [flat(start)]
            while way[-1] and len(way) <= n:
                way.append(mutate(way[-1], rng, max_atoms=20))
            if 8 <= atoms(way[0]) <= 16:
                found.append((way[0], flat(way[-1]), n))
    return found


@functools.cache
def ways(estimate: bool) -> list[EditPath]:
    return [edit_path(a, b, budget=BUDGET, estimate=estimate) for a, b, _ in pairs()]


def shares() -> dict[bool, float]:
    """Of the pairs those with a path of at most two edits more than the random ones, with an estimate and without."""
    return {
        estimate: float(
            np.mean(
                [
                    way.reached and len(way.smiles) - 1 <= n + 2
                    for way, (*_, n) in zip(ways(estimate), pairs(), strict=True)
                ]
            )
        )
        for estimate in (True, False)
    }


@pytest.mark.system("causal-infogan", rung="works")
def test_it_finds_more_paths_than_a_search_without_an_estimate(off: str, effect: Effect) -> None:
    found = shares()
    beside = {"with an estimate": [found[True]], "breadth-first": [found[False]]}
    gain = found[not off] - found[False]
    effect("share of pairs with a path - that of breadth-first search", [gain], at_least=0.3, beside=beside)


@pytest.mark.system(
    "causal-infogan", rung="works", null="15 of 18; of six edits two pairs need more than 300 molecules"
)
def test_it_finds_paths_between_nearly_all_molecules_up_to_six_edits_apart(off: str, effect: Effect) -> None:
    expanded = float(np.mean([way.expanded for way in ways(True)]))
    effect("share of pairs with a path", [shares()[True]], at_least=0.9, beside={"molecules expanded": [expanded]})

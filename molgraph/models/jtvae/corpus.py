"""Make the graphs, junction trees, candidate attachments and stereo sites of molecules, packed in one store."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.base.progress import bar
from molgraph.chem.fragments.assembly import Assembly
from molgraph.chem.fragments.junction_tree import JunctionTree
from molgraph.chem.fragments.stereo import Constitution, constitution_of
from molgraph.chem.fragments.vocabulary import Vocabulary
from molgraph.chem.parallel import map_molecules
from molgraph.data.featurize import featurize
from molgraph.data.graph_store import GraphStore, Level
from molgraph.models.jtvae.attachments import AttachmentGraphs

CLUSTER, CANDIDATE, SITE = "cluster", "candidate", "site"


class Candidates(NamedTuple):
    """The attachments that a tree leaves open, node after node: where two or more graphs look different.

    Args:
        node: the node that is attached.
        graph: the number of each candidate's graph.
        true: whether it is the molecule's own.
    """

    node: list[int]
    graph: list[int]
    true: list[bool]


def pack_trees(
    smiles: Sequence[str], trees: Sequence[JunctionTree], vocabulary: Vocabulary, graphs: AttachmentGraphs
) -> GraphStore:
    """A store with the levels ``atom`` and ``bond`` of the constitutions, ``cluster``, ``candidate`` and ``site``.

    Args:
        smiles: one a molecule.
        trees: of the same molecules, all of whose labels are in the vocabulary.
        vocabulary: whose places are the clusters' codes.
        graphs: numbers the graphs of candidates; new ones are added.
    """
    bare = map_molecules(constitution_of, smiles, lambda text, _: Constitution(text, ()), label="stereo")
    candidates = []
    with bar("attachments", len(trees), len(trees) < 1000 or None) as line:
        for tree in trees:
            candidates.append(candidates_of(tree, graphs, vocabulary.longest))
            line.advance()
    store = featurize([entry.smiles for entry in bare])
    levels = {
        **store.levels,
        CLUSTER: _level(
            [len(tree) for tree in trees],
            code=[vocabulary.code[label] for tree in trees for label in tree.labels],
            parent=[max(above, 0) for tree in trees for above in tree.parent],
            index={"parent": CLUSTER},
        ),
        CANDIDATE: _level(
            [len(entry.node) for entry in candidates],
            node=[k for entry in candidates for k in entry.node],
            graph=[k for entry in candidates for k in entry.graph],
            true=[k for entry in candidates for k in entry.true],
            index={"node": CLUSTER},
        ),
        SITE: _level(
            [len(entry.sites) for entry in bare],
            begin=[site.begin for entry in bare for site in entry.sites],
            end=[site.end for entry in bare for site in entry.sites],
            label=[site.label for entry in bare for site in entry.sites],
            index={"begin": "atom", "end": "atom"},
        ),
    }
    return replace(store, levels=levels)


def candidates_of(tree: JunctionTree, graphs: AttachmentGraphs, longest: int) -> Candidates:
    """The open attachments of a tree that is put together by its own overlaps."""
    out = Candidates([], [], [])
    assembly = Assembly(tree.labels[0])
    for node in range(1, len(tree)):
        parent, label, overlap = tree.parent[node], tree.labels[node], tree.overlaps[node]
        ways = assembly.overlaps(parent, label, longest=longest)
        if len(ways) > 1:
            true = graphs.number(assembly, parent, label, overlap)
            numbers = sorted({true, *(graphs.number(assembly, parent, label, way) for way in ways)})
            if len(numbers) > 1:
                out.node.extend([node] * len(numbers))
                out.graph.extend(numbers)
                out.true.extend(number == true for number in numbers)
        assembly.attach(parent, label, overlap)
    return out


def _level(sizes: list[int], *, index: dict[str, str], **arrays: list) -> Level:
    columns = {name: np.array(values, dtype=bool if name == "true" else np.int64) for name, values in arrays.items()}
    return Level(offsets_of(sizes), columns, index)

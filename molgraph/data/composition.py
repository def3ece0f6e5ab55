"""Count the atoms of each element in each graph of a store."""

from __future__ import annotations

import numpy as np
from scipy.sparse import coo_array

from molgraph.data.featuriser import Featuriser
from molgraph.data.graph_store import GraphStore


def compositions(store: GraphStore, featuriser: Featuriser) -> np.ndarray:
    """Atoms of each element in each graph, hydrogens that are not atoms of their own included.

    Args:
        store: whose level ``atom`` the featuriser made.
        featuriser: which says what rows of its features stand for.

    Returns:
        float64 [graphs, elements], in the order of ``featuriser.elements``; zeros for a graph that cannot be read.

    Example:
        >>> from molgraph.data.featurize import Molecules
        >>> counts = compositions(Molecules().featurise(["CO", "not a molecule"]), Molecules())
        >>> {Molecules.elements[i]: int(counts[0, i]) for i in counts[0].nonzero()[0]}, counts[1].sum().item()
        ({'H': 4, 'C': 1, 'O': 1}, 0.0)
    """
    atoms, table = store.levels["atom"], store.tables["atom"]
    graph = np.repeat(np.arange(len(store)), np.diff(atoms.offsets))
    places = graph, atoms.arrays["code"].astype(np.int64)
    rows = coo_array((np.ones(len(graph)), places), shape=(len(store), len(table))).tocsr()  # adds repeats up
    return np.asarray(rows @ featuriser.element_counts(table).astype(np.float64))

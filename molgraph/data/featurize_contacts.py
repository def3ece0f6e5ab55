"""Featurise a structure as a contact map: its residues and the ligand's atoms, joined where they are near."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from scipy.spatial import cKDTree

from molgraph.base.packed import offsets_of
from molgraph.base.registry import register
from molgraph.base.table import OK, UNREADABLE, EntityKind
from molgraph.chem.complexes import OTHER
from molgraph.data.content import value_digest
from molgraph.data.featuriser import Featuriser
from molgraph.data.featurize_complex import SERINE
from molgraph.data.featurize_geometry import METHANE, N_ELEMENTS, WATER, read_geometry
from molgraph.data.graph_store import BOND_INDEX, GraphStore, InputSpec, Level
from molgraph.data.graph_values import Geometry

CUTOFF, STEP = 8.0, 0.5  # angstrom: the longest contact, and the width of a bin of distances
N_BINS = int(CUTOFF / STEP)
MAX_NODES = 2_000


@register("featuriser", "contact_map", summary="residues and ligand atoms, joined by contacts in bins of distance")
class ContactMap(Featuriser):
    """The graph of a protein's residues, or of a complex: a contact is a bond.

    A node is a residue of the protein, or a single atom of what is no protein. Two nodes are in contact where an atom
    of the one is nearer than 8 angstrom to an atom of the other; the least of these distances, in bins of 0.5 angstrom,
    is the contact's feature. Contacts thus need no atom names, and a structure of backbone atoms alone has them too.

    Levels: ``atom`` are the nodes, ``code`` one of 119 elements or 119 plus the kind of residue; ``bond`` the contacts,
    two for each pair, with ``source``, ``target`` and ``reverse``, and ``code`` the bin.
    """

    name = "contact_map"
    kind: ClassVar[EntityKind] = "geometry"
    versions = ("contact_map.1",)
    examples = (SERINE, WATER, METHANE)

    def featurise(self, values: Sequence[Any], *, spec: InputSpec | None = None, workers: int = 1) -> GraphStore:
        """One graph a structure; what makes no geometry, or more than 2,000 nodes, is ``unreadable``."""
        contacts = [_contacts(*read_geometry(value)) for value in values]
        reason = np.array([problem for *_, problem in contacts], dtype=object)
        codes, ends = [code for code, *_ in contacts], [item for _, item, _, _ in contacts]
        source, target = (np.concatenate([np.zeros(0, np.int32), *(item[k] for item in ends)]) for k in (0, 1))
        reverse = np.concatenate([np.zeros(0, np.int32), *(_reverse(*item) for item in ends)])
        bins = np.concatenate([np.zeros(0, np.uint8), *(item for _, _, item, _ in contacts)])
        status = np.where(reason == "", OK, UNREADABLE).astype(object)
        atoms = Level(offsets_of([*map(len, codes)]), {"code": np.concatenate([np.zeros(0, np.uint8), *codes])})
        arrays = {"source": source, "target": target, "reverse": reverse, "code": bins}
        bonds = Level(offsets_of([len(item[0]) for item in ends]), arrays, BOND_INDEX)
        tables = {"atom": np.eye(N_ELEMENTS + OTHER + 1, dtype=np.float32), "bond": np.eye(N_BINS, dtype=np.float32)}
        return GraphStore({"atom": atoms, "bond": bonds}, tables, status, reason, self.versions[0])

    def key(self, value: Any) -> str:
        """A hash of all arrays."""
        return value_digest(value)


Contacts = tuple[np.ndarray, tuple[np.ndarray, np.ndarray], np.ndarray, str]


def _contacts(shape: Geometry, why: str) -> Contacts:
    """Code of each node, source and target of each contact, sorted by target, its bin, and why there is no graph."""
    n, none = len(shape.numbers), np.zeros(0, np.int32)
    single = np.ones(n, bool)
    if shape.residue is not None and shape.residue_index is not None:
        single = (shape.residue == 0) | (shape.residue_index < 0)
    number = np.full(n, -1) if shape.residue_index is None else shape.residue_index
    # atoms of no residue first, in their order; then the residues
    keys, first, node = np.unique(np.where(single, np.arange(n) - n, number), return_index=True, return_inverse=True)
    if len(keys) > MAX_NODES:
        why = f"a contact map of {len(keys):,} residues and atoms, of which {MAX_NODES:,} are read at most"
    if why:
        return none.astype(np.uint8), (none, none), none.astype(np.uint8), why
    residue = np.zeros(n, np.int64) if shape.residue is None else shape.residue
    code = np.where(residue > 0, N_ELEMENTS + residue, shape.numbers)[first].astype(np.uint8)
    pairs = cKDTree(shape.positions).query_pairs(CUTOFF, output_type="ndarray")
    apart = np.linalg.norm(shape.positions[pairs[:, 0]] - shape.positions[pairs[:, 1]], axis=1)
    ends = np.concatenate([node[pairs], node[pairs][:, ::-1]]).astype(np.int64)
    distance, other = np.concatenate([apart, apart]), ends[:, 0] != ends[:, 1]
    joined, distance = (ends[:, 1] * len(keys) + ends[:, 0])[other], distance[other]
    order = np.lexsort((distance, joined))  # the shortest of each pair of nodes comes first
    joined, place = np.unique(joined[order], return_index=True)
    bins = np.minimum(distance[order][place] / STEP, N_BINS - 1).astype(np.uint8)
    source, target = (joined % len(keys)).astype(np.int32), (joined // len(keys)).astype(np.int32)
    return code, (source, target), bins, ""


def _reverse(source: np.ndarray, target: np.ndarray) -> np.ndarray:
    """The number of each contact's opposite; contacts are sorted by target and then by source."""
    n = int(target.max(initial=-1)) + 1
    return np.searchsorted(target.astype(np.int64) * n + source, source.astype(np.int64) * n + target).astype(np.int32)

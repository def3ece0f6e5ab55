"""Directed pairs within a cutoff and the triplets that they form: their index, distances and angles."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.data.batch import GraphBatch
from molgraph.nn import relations
from molgraph.nn.relation import Relation
from molgraph.nn.weighted_sum import OrderedRelation

NEAREST = 0.3  # angstrom: nearer atoms count as so far apart, since the bases divide by distances


@dataclass(frozen=True)
class DirectedPairs:
    """The pairs j->i of atoms nearer than a cutoff, as rows of a network, of some graphs of a batch.

    Args:
        atoms: those of these graphs; relations number them from 0.
        near: from atoms j to atoms i, one pair for each row, sorted by i.
        to_atoms: from rows to the atoms i at which they arrive.
        to_graphs: from rows to these graphs.
        triplets: from rows k->j to rows j->i, i other than k.
    """

    atoms: slice
    near: Relation
    to_atoms: Relation
    to_graphs: Relation
    triplets: OrderedRelation


@relations.once_a_batch
def directed_pairs(batch: GraphBatch, cutoff_angstrom: float, at_once: int) -> tuple[DirectedPairs, ...]:
    """The pairs within the cutoff and their triplets, in parts of whole graphs that fit a processor's cache.

    Args:
        batch: of atoms in space.
        cutoff_angstrom: radius within which atoms see each other.
        at_once: a graph begins another part after so many pairs.
    """
    near, atoms = relations.radius(batch, cutoff_angstrom), batch["atom"].offsets
    pairs = near.offsets.index_select(0, atoms)
    begun = (pairs[:-1] // at_once).numpy(force=True)
    first = [0, *(np.flatnonzero(np.diff(begun)) + 1).tolist()]
    ends = [[of[i] for i in (*first, batch.n_graphs)] for of in (atoms.tolist(), pairs.tolist())]
    spans = zip(*(pairwise(bounds) for bounds in ([*first, batch.n_graphs], *ends)), strict=True)
    return tuple(_part(near, pairs[g0 : g1 + 1] - p0, slice(n0, n1)) for (g0, g1), (n0, n1), (p0, _) in spans)


def _part(near: Relation, graphs: Int[Tensor, " g_1"], atoms: slice) -> DirectedPairs:
    """The pairs of the graphs whose atoms are given."""
    spans = near.offsets[atoms.start : atoms.stop + 1]
    start, end = int(spans[0]), int(spans[-1])
    n, index = atoms.stop - atoms.start, torch.arange(end - start + 1, device=spans.device)
    pairs = Relation(near.source[start:end] - atoms.start, spans - start, n, n)
    to_atoms = Relation(index[:-1], pairs.offsets, pairs.n_pairs, n, (pairs.target, index))
    to_graphs = Relation(index[:-1], graphs, pairs.n_pairs, len(graphs) - 1)
    return DirectedPairs(atoms, pairs, to_atoms, to_graphs, OrderedRelation.of(relations.triplets(pairs)))


def distances(vectors: Float[Tensor, "p 3"]) -> Float[Tensor, " p"]:
    """Lengths in angstrom, ``NEAREST`` at least, with a gradient that is finite everywhere."""
    return vectors.square().sum(1).clamp(min=NEAREST**2).sqrt()


def turns(
    vectors: Float[Tensor, "p 3"], distance: Float[Tensor, " p"], triplets: Relation
) -> Float[Tensor, " {triplets.n_pairs}"]:
    """Cosine of the angle between the directions k->j and j->i of each triplet.

    It is the cosine of 180 degrees less the angle k-j-i.

    Args:
        vectors: ``r_i - r_j`` of each pair j->i.
        distance: their lengths.
        triplets: from pairs k->j to pairs j->i.
    """
    unit = vectors / distance.unsqueeze(1)
    return (unit.index_select(0, triplets.source) * unit.index_select(0, triplets.target)).sum(1)


def end_angles(
    vectors: Float[Tensor, "p 3"], distance: Float[Tensor, " p"], triplets: Relation
) -> Float[Tensor, " {triplets.n_pairs}"]:
    """Cosine of the angle j-i-k at the atom i of each triplet k->j->i; arguments as those of ``turns``."""
    last = vectors.index_select(0, triplets.target)
    whole = last + vectors.index_select(0, triplets.source)
    return (last * whole).sum(1) / (distances(whole) * distance.index_select(0, triplets.target))

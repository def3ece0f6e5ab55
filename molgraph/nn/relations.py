"""The relations that models ask for: bonds, next bonds, members of a graph, pairs within a radius, triplets, hops."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial, wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.packed import offsets_of, ranges
from molgraph.data.batch import GraphBatch
from molgraph.data.color_refinement import acyclic_colors, distinct_rows
from molgraph.nn.near_pairs import near_pairs, opposite_pairs
from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.sweep import Waves, waves_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

P = ParamSpec("P")
T = TypeVar("T")


def once_a_batch(make: Callable[Concatenate[GraphBatch, P], T]) -> Callable[Concatenate[GraphBatch, P], T]:
    """Decorate a function of a batch, so that what it gives is made once and kept with the batch."""

    @wraps(make)
    def kept(batch: GraphBatch, *args: P.args, **options: P.kwargs) -> T:
        return batch.once((make.__name__, args, *sorted(options.items())), lambda: make(batch, *args, **options))

    return kept


@once_a_batch
def bonds(batch: GraphBatch) -> Relation:
    """From atoms to atoms, one pair for each directed bond, in the order of the bond level.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> batch = collate(featurize(["CO", "N"]), np.arange(2))
        >>> bonds(batch).source.tolist(), bonds(batch).target.tolist()
        ([1, 0], [0, 1])
    """
    counts = torch.bincount(batch.target, minlength=batch.n_atoms)
    back = None
    if "reverse" in batch["bond"].arrays:  # bond k's opposite leaves where k arrives, so no sort is needed
        back = batch.source, row_offsets(counts)
    return Relation(batch.source, row_offsets(counts), batch.n_atoms, batch.n_atoms, back)


@once_a_batch
def arriving(batch: GraphBatch) -> Relation:
    """From directed bonds to the atoms at which they arrive."""
    index = torch.arange(batch.n_bonds, device=batch.target.device)
    counts = torch.bincount(batch.target, minlength=batch.n_atoms)
    return Relation(index, row_offsets(counts), batch.n_bonds, batch.n_atoms)


def bonds_before(
    source: np.ndarray, reverse: np.ndarray, offsets: np.ndarray, bonds: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """For directed bonds v->w (all by default), the bonds u->v with u other than w (no U-turn): numbers, and offsets.

    Args:
        source, reverse: int64 [e], the source atom and the opposite of each bond.
        offsets: int64 [n + 1], the bonds that arrive at each atom.
        bonds: int64, the numbers of bonds v->w.
    """
    bonds = np.arange(len(source)) if bonds is None else bonds
    arriving, spans = ranges(offsets[source[bonds]], offsets[source[bonds] + 1])
    sizes = np.diff(spans)
    keep = arriving != np.repeat(reverse[bonds], sizes)
    return arriving[keep], offsets_of(sizes - 1)  # the reverse bond is always among those that arrive


@once_a_batch
def next_bonds(batch: GraphBatch) -> Relation:
    """From directed bonds u->v to the bonds v->w with w other than u (no U-turn)."""
    source, offsets = batch.source.numpy(force=True), arriving(batch).offsets.numpy(force=True)
    pairs, spans = bonds_before(source, batch["bond"].arrays["reverse"].numpy(force=True), offsets)
    put = partial(torch.as_tensor, device=batch.target.device)
    return Relation(put(pairs), put(spans), batch.n_bonds, batch.n_bonds)


@once_a_batch
def members(batch: GraphBatch, level: str = "atom") -> Relation:
    """From the rows of a level to their graphs."""
    batch_level, n = batch[level], len(batch[level])
    index = torch.arange(n, device=batch_level.offsets.device)
    back = batch.graph_of(level), torch.arange(n + 1, device=batch_level.offsets.device)
    return Relation(index, batch_level.offsets, n, batch.n_graphs, back)


@once_a_batch
def all_pairs(batch: GraphBatch, level: str = "atom") -> Relation:
    """From every row of a level to every row of the same graph, itself included."""
    offsets, graph = batch[level].offsets.numpy(force=True), batch.graph_of(level).numpy(force=True)
    source, spans = ranges(offsets[graph], offsets[graph + 1])
    put = partial(torch.as_tensor, device=batch[level].offsets.device)
    return Relation(put(source), put(spans), len(graph), len(graph))


@once_a_batch
def hops(batch: GraphBatch, n: int) -> Relation:
    """From atoms to the other atoms that are at most ``n`` bonds away.

    Raises:
        ValueError: ``n`` below 1.
    """
    if n < 1:
        raise ValueError(f"hops needs n of 1 or more, got {n}")
    reach = step = _adjacency(batch)
    for _ in range(n - 1):
        reach = reach + reach @ step
    coo, size = reach.tocoo(), batch.n_atoms
    rows, columns = coo.coords
    other = rows != columns
    offsets, put = (
        offsets_of(np.bincount(rows[other], minlength=size)),
        partial(torch.as_tensor, device=batch.target.device),
    )
    return Relation(put(columns[other].astype(np.int64)), put(offsets), size, size)


@once_a_batch
def most_hops(batch: GraphBatch, n: int, enough: int) -> Int[Tensor, " g"]:
    """How many pairs ``hops`` finds in each graph at most, counted without forming those of the last step.

    Args:
        batch: of molecules or other graphs.
        n: largest graph distance, 1 or more.
        enough: the count ends at the first distance at which a graph may have more pairs than this; where no graph
            is so large, it is that of all pairs of different atoms.
    """
    sizes, graph = batch["atom"].offsets.diff(), batch.graph_of("atom").numpy(force=True)
    every = sizes * (sizes - 1)
    if not len(every) or int(every.max()) <= enough:
        return every
    others = sizes.numpy(force=True)[graph] - 1
    step = reach = _adjacency(batch)
    degree, paired = np.diff(step.indptr), (step != step.T).nnz == 0
    per_atom = degree.clip(max=others)
    for nearer in range(1, n):
        if np.bincount(graph, per_atom).max() > enough:
            break
        reach = reach + reach @ step if nearer > 1 else step
        # where edges go both ways each atom within reach has a neighbour nearer to the start: its others alone are new
        per_atom = (np.diff(reach.indptr) + reach @ (degree - paired)).clip(max=others)
    counts = np.bincount(graph, per_atom, minlength=batch.n_graphs).astype(np.int64)
    return torch.as_tensor(counts, device=every.device)


@once_a_batch
def radius(batch: GraphBatch, cutoff: float, level: str = "atom", positions: str = "position") -> Relation:
    """From rows to the other rows of the same graph that are nearer than ``cutoff``.

    Args:
        batch: whose level has an array of positions, float [rows, 3].
        cutoff: in the unit of the positions (angstrom).
        level: whose rows.
        positions: the array's name.
    """
    points = batch[level]
    at, n = points.arrays[positions].numpy(force=True).astype(np.float64), len(points)
    source, target = near_pairs(at, points.offsets.numpy(force=True), batch.graph_of(level).numpy(force=True), cutoff)
    put = partial(torch.as_tensor, device=points.offsets.device)
    pairs = put(source), put(offsets_of(np.bincount(target, minlength=n)))
    return Relation(*pairs, n, n, pairs)  # a pair's opposite is a pair too, so those sorted by source look the same


def triplets(relation: Relation) -> Relation:
    """From pairs k->j to pairs j->i of one relation between the rows of one set, i other than k.

    Returns:
        A relation between the pairs, numbered in the relation's order: the angles of DimeNet.

    Raises:
        ValueError: a relation between two different sets.
    """
    if relation.n_source != relation.n_target:
        raise ValueError(f"triplets need one set of rows, got {relation.n_source} sources, {relation.n_target} targets")
    source, target = relation.source.numpy(force=True), relation.target.numpy(force=True)
    offsets, put = relation.offsets.numpy(force=True), partial(torch.as_tensor, device=relation.source.device)
    opposite = opposite_pairs(source, target, relation.n_source)
    if opposite is not None:  # those that arrive at j are all k->j but i->j, which stands somewhere among them
        starts = np.column_stack([offsets[source], opposite + 1]).ravel()
        ends = np.column_stack([opposite, offsets[source + 1]]).ravel()
        pairs, spans = ranges(starts, ends)
        return Relation(put(pairs), put(spans[::2].copy()), len(source), len(source))
    pairs, spans = ranges(offsets[source], offsets[source + 1])
    after = np.repeat(np.arange(len(source)), np.diff(spans))
    keep = source[pairs] != target[after]
    counts = np.bincount(after[keep], minlength=len(source))
    return Relation(put(pairs[keep]), put(offsets_of(counts)), len(source), len(source))


@dataclass(frozen=True)
class Dags:
    """For each atom, as a root, the bonds that lead towards it along shortest ways."""

    atom: Int[Tensor, " r"]  # of each row, which is an atom as it is seen from a root, or from several
    bond: Int[Tensor, " p"]  # int64 [p], the bond of each pair of the waves' relation
    at_root: Int[Tensor, " n"]  # int64 [n_atoms], the row of each atom that is its own root
    waves: Waves  # from the farthest rows to the roots


@once_a_batch
def dags(batch: GraphBatch, reach: int) -> Dags:
    """All bonds directed towards each atom in turn, Lusci et al. 2013: one acyclic graph an atom.

    A bond between two atoms that are equally far from the root belongs to no shortest way and is left out. Atoms with
    the same ways behind them, from whatever root, share a row (decision 0001).

    Args:
        batch: of molecules or other graphs.
        reach: atoms that are farther than this from a root, in bonds, are left out of its graph.
    """
    source, target, n = batch.source.numpy(force=True), batch.target.numpy(force=True), batch.n_atoms
    offsets = offsets_of(np.bincount(target, minlength=n))
    keys = np.arange(n) * (n + 1)  # root * n + atom, wave after wave from the roots outwards
    shells = [keys[:0], keys]
    while len(keys) and len(shells) < reach + 2:
        bonds, spans = ranges(offsets[keys % n], offsets[keys % n + 1])
        near = np.sort(np.repeat(keys // n, np.diff(spans)) * n + source[bonds])
        near = near[np.diff(near, prepend=-1) > 0]
        # a neighbour is one bond nearer to the root, as far from it, or one bond farther
        keys = np.setdiff1d(near, np.concatenate(shells[-2:]), assume_unique=True)
        shells.append(keys)
    far = np.repeat(np.arange(-1, len(shells) - 1), [len(shell) for shell in shells])
    seen = np.concatenate(shells)
    order = np.argsort(seen)
    seen, far = seen[order], far[order]
    root, atom = seen // max(n, 1), seen % max(n, 1)
    bonds, spans = ranges(offsets[atom], offsets[atom + 1])
    after = np.repeat(np.arange(len(seen)), np.diff(spans))
    before = np.searchsorted(seen, root[after] * n + source[bonds]).clip(max=max(len(seen) - 1, 0))
    keep = (seen[before] == root[after] * n + source[bonds]) & (far[before] == far[after] + 1)
    before, after, bonds, at_root = before[keep], after[keep], bonds[keep], np.flatnonzero(far == 0)
    put = partial(torch.as_tensor, device=batch.target.device)
    spans = offsets_of(np.bincount(after, minlength=len(seen)))
    atom_code, bond_code = (batch[level].code.numpy(force=True) for level in ("atom", "bond"))
    row, first = distinct_rows(acyclic_colors(atom_code[atom], before, spans, bond_code[bonds]))
    pairs, spans = ranges(spans[first], spans[first + 1])
    relation = Relation(put(row[before[pairs]]), put(spans), len(first), len(first))
    return Dags(put(atom[first]), put(bonds[pairs]), put(row[at_root]), waves_of(relation))


def pair_vectors(relation: Relation, positions: Float[Tensor, "n 3"]) -> Float[Tensor, "p 3"]:
    """``r_target - r_source`` of each pair."""
    return positions.index_select(0, relation.target) - positions.index_select(0, relation.source)


def _adjacency(batch: GraphBatch) -> csr_array:
    """Bool [n_atoms, n_atoms], sparse: targets by sources."""
    from scipy.sparse import coo_array

    source, target = batch.source.numpy(force=True), batch.target.numpy(force=True)
    return coo_array((np.ones(len(source), bool), (target, source)), shape=(batch.n_atoms,) * 2).tocsr()


@once_a_batch
def before_bonds(batch: GraphBatch) -> Relation:
    """From atoms u to the bonds v->w with u next to v, and other than w."""
    turns = next_bonds(batch)
    return Relation(batch.source.index_select(0, turns.source), turns.offsets, batch.n_atoms, batch.n_bonds)

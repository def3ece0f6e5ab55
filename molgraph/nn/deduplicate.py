"""Rounds of message passing over the rows of a batch that look different, or over all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.base.packed import offsets_of, ranges
from molgraph.data.batch import GraphBatch, ordinary_tensors
from molgraph.data.color_refinement import atom_colors, bond_colors, distinct_rows
from molgraph.nn.joined_linear import CodedRows
from molgraph.nn.relation import Relation
from molgraph.nn.relations import bonds_before, once_a_batch
from molgraph.nn.segment import gather_sum


@dataclass(frozen=True)
class BondRound:
    """One round of messages between directed bonds."""

    relation: Relation  # from the rows before to the rows after, along "next bond, no U-turn"
    start: Relation | None  # from the first round's rows to the row after that each became; None: the same rows

    def initial(self, h0: Float[Tensor, "rows_0 d"]) -> Float[Tensor, "_ d"]:
        """The rows after this round as they were before the first one."""
        return h0 if self.start is None else gather_sum(h0, self.start)


@dataclass(frozen=True)
class BondRounds:
    """Directed-bond message passing, round by round."""

    source_atoms: CodedRows  # features of each first row's source atom
    bonds: CodedRows  # features of each first row's bond
    rounds: tuple[BondRound, ...]  # one for each further level
    arriving: Relation  # from the last rows to the atoms' rows
    atoms: CodedRows  # features of the atoms' rows
    readout: Relation  # from the atoms' rows to graphs, one pair an atom
    atom_row: Int[Tensor, " n"] | None  # int64 [n], the row of each atom; None: the same rows

    def every_atom(self, h: Float[Tensor, "rows d"]) -> Float[Tensor, "n d"]:
        """The state of each atom of the batch, from the states of the atoms' rows."""
        return h if self.atom_row is None else h.index_select(0, self.atom_row)


@dataclass(frozen=True)
class AtomRound:
    """One round of messages between atoms along bonds."""

    sender: Relation  # from the rows before to each distinct (atom, kind of bond) that sends, sorted by kind of bond
    # float [k, d_bond], features of the kinds of bond
    kinds: Float[Tensor, "{len(sizes)} d_bond"]
    sizes: tuple[int, ...]  # how many send along each of the k kinds
    relation: Relation  # from the q senders to the rows after
    before: Relation  # from the rows before to the rows after that they became
    members: Relation  # from the rows after to graphs, one pair an atom

    def senders(self, h: Float[Tensor, "before d"]) -> Float[Tensor, "q d"]:
        """The states that are sent, sorted by kind of bond."""
        return gather_sum(h, self.sender)

    @property
    def bonds(self) -> Float[Tensor, "q d_bond"]:
        """The features of the bond along which each is sent."""
        return self.per_sender(self.kinds)

    def per_sender(self, kinds: Float[Tensor, "k d"]) -> Float[Tensor, "q d"]:
        """For each that is sent, the row of its kind of bond."""
        sizes = torch.tensor(self.sizes, dtype=torch.int64, device=kinds.device)
        return kinds.repeat_interleave(sizes, dim=0, output_size=self.sender.n_target)

    def previous(self, h: Float[Tensor, "before d"]) -> Float[Tensor, "after d"]:
        """The rows after this round as they were before it."""
        return gather_sum(h, self.before)


@dataclass(frozen=True)
class AtomRounds:
    """Message passing between atoms, round by round."""

    atoms: CodedRows  # features of the rows before the first round
    rounds: tuple[AtomRound, ...]  # one a round
    readout: Relation  # from the last rows to graphs, one pair an atom
    atom_row: Int[Tensor, " n"]  # int64 [n], the last row of each atom

    def every_atom(self, h: Float[Tensor, "rows d"]) -> Float[Tensor, "n d"]:
        """The state of each atom of the batch, from the states of the last rows."""
        return h.index_select(0, self.atom_row)

    @cached_property
    def to_last(self) -> tuple[Relation, ...]:
        """From the rows before each round to the last rows that they became."""
        row, links = np.arange(self.readout.n_source), []
        with ordinary_tensors():
            for step in reversed(self.rounds):
                row = step.before.source.numpy(force=True)[row]
                links.append(choice(self.atom_row.device, row, step.before.n_source))
        return tuple(links[::-1])

    def side_by_side(self, layers: Sequence[Float[Tensor, "_ _"]]) -> Float[Tensor, "rows d"]:
        """The states of the last rows in every layer, from those of each layer's own rows, the first layer's first."""
        pieces = [gather_sum(h, link) for h, link in zip(layers[:-1], self.to_last, strict=True)]
        return torch.cat([*pieces, layers[-1]], dim=1)


@once_a_batch
def bond_rounds(batch: GraphBatch, depth: int, *, distinct: bool) -> BondRounds:
    """``depth`` levels of directed bonds, then the atoms at which they arrive; made once a batch.

    Args:
        batch: of molecules, or of graphs with each edge in both directions.
        depth: number of bond levels, 1 or more.
        distinct: compute rows that look alike once (decision 0001); False gives each bond and atom a row of its own.
    """
    return (_distinct_bonds if distinct else _all_bonds)(batch, depth)


def _distinct_bonds(batch: GraphBatch, depth: int) -> BondRounds:
    (atom_code, bond_code, source, offsets), reverse = _arrays(batch), batch.reverse.numpy(force=True)
    colors, color_of_atom = bond_colors(atom_code, bond_code, source, reverse, offsets, depth)
    atom_row, atoms = distinct_rows(color_of_atom)
    pairs, spans = ranges(offsets[atoms], offsets[atoms + 1])
    levels: list[np.ndarray] = []  # one bond for each row of a level, the last level first
    links = []
    for color in colors[:0:-1]:  # only bonds that stand for something above are looked at again
        rows, first = distinct_rows(color[pairs])
        links.append(_relation(batch, rows, spans, len(first)))
        levels.append(pairs[first])
        pairs, spans = bonds_before(source, reverse, offsets, levels[-1])
    seen = np.concatenate([pairs, *levels])
    rows, first = distinct_rows(colors[0][seen])
    rows, *initial = np.split(rows, np.cumsum([len(pairs), *map(len, levels)])[:-1])
    arriving, *between = *links, _relation(batch, rows, spans, len(first))
    device = batch.source.device
    rounds = [BondRound(link, choice(device, row, len(first))) for link, row in zip(between, initial, strict=True)]
    bonds = seen[first]
    return BondRounds(
        _coded(batch, "atom", atom_code[source[bonds]]),
        _coded(batch, "bond", bond_code[bonds]),
        tuple(rounds[::-1]),
        arriving,
        _coded(batch, "atom", atom_code[atoms]),
        _relation(batch, atom_row, batch["atom"].offsets.numpy(force=True), len(atoms)),
        _put(batch, atom_row),
    )


def _all_bonds(batch: GraphBatch, depth: int) -> BondRounds:
    (atom_code, bond_code, source, offsets), reverse = _arrays(batch), batch.reverse.numpy(force=True)
    n_atoms, n_bonds = len(atom_code), len(source)
    step = BondRound(_relation(batch, *bonds_before(source, reverse, offsets), n_bonds), None)
    return BondRounds(
        _coded(batch, "atom", atom_code[source]),
        _coded(batch, "bond", bond_code),
        (step,) * (depth - 1),
        _relation(batch, np.arange(n_bonds), offsets, n_bonds),
        _coded(batch, "atom", atom_code),
        _relation(batch, np.arange(n_atoms), batch["atom"].offsets.numpy(force=True), n_atoms),
        None,
    )


@once_a_batch
def atom_rounds(batch: GraphBatch, rounds: int, *, distinct: bool) -> AtomRounds:
    """``rounds`` of messages between atoms, over atoms that look different or over every atom; made once a batch."""
    atom_code, bond_code, source, offsets = _arrays(batch)
    if distinct:
        colors = atom_colors(atom_code, bond_code, source, offsets, rounds)
    else:
        colors = [np.arange(len(atom_code), dtype=np.uint64)] * (rounds + 1)
    kinds_of_bonds = _table(batch, "bond")
    atom_row, atoms = distinct_rows(colors[-1])
    readout = _relation(batch, atom_row, batch["atom"].offsets.numpy(force=True), len(atoms))
    steps: list[AtomRound] = []
    members = readout
    for color in colors[-2::-1]:
        pairs, spans = ranges(offsets[atoms], offsets[atoms + 1])
        seen = np.concatenate([source[pairs], atoms])
        if distinct:
            rows, first = distinct_rows(color[seen])
        else:  # every atom in order, so that norms and master nodes know its graph
            rows, first = seen, np.arange(len(pairs), len(seen))
        n = max(len(first), 1)
        sent, sender = np.unique(bond_code[pairs] * len(first) + rows[: len(pairs)], return_inverse=True)
        kinds, sizes = np.unique(sent // n, return_counts=True)
        features = kinds_of_bonds.index_select(0, _put(batch, kinds))
        link, previous = _relation(batch, sender, spans, len(sent)), rows[len(pairs) :]
        senders, before = (choice(batch.source.device, row, len(first)) for row in (sent % n, previous))
        steps.append(AtomRound(senders, features, tuple(sizes.tolist()), link, before, members))
        atoms = seen[first]
        members = Relation(before.source[members.source], readout.offsets, len(atoms), readout.n_target)
    return AtomRounds(_coded(batch, "atom", atom_code[atoms]), tuple(steps[::-1]), readout, _put(batch, atom_row))


def _arrays(batch: GraphBatch) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    tensors = batch["atom"].code, batch["bond"].code, batch.source, batch.target
    atom_code, bond_code, source, target = (t.numpy(force=True) for t in tensors)
    return atom_code, bond_code, source, offsets_of(np.bincount(target, minlength=len(atom_code)))


def _put(batch: GraphBatch, values: np.ndarray) -> Tensor:
    return torch.as_tensor(values, device=batch.source.device)


def _table(batch: GraphBatch, level: str) -> Tensor:
    table = batch[level].table
    assert table is not None
    return table


def _coded(batch: GraphBatch, level: str, code: np.ndarray) -> CodedRows:
    return CodedRows(_table(batch, level), _put(batch, code))


def _relation(batch: GraphBatch, source: np.ndarray, offsets: np.ndarray, n_source: int) -> Relation:
    return link(batch.source.device, source, offsets, n_source)


def choice(device: torch.device, row: np.ndarray, n_source: int) -> Relation:
    """From ``n_source`` rows to as many as ``row`` is long, each of which is one of them.

    To gather along it is to select rows, whose gradient adds up along the transpose: faster than ``index_select``'s.
    """
    return link(device, row, np.arange(len(row) + 1), n_source)


def link(device: torch.device, source: np.ndarray, offsets: np.ndarray, n_source: int) -> Relation:
    """Pairs from ``n_source`` rows, sorted by target; with the transpose, which inference never reads, in training."""
    back = None
    if torch.is_grad_enabled():
        small = n_source <= 1 << 16  # numpy sorts 16-bit numbers by radix, an order faster
        order = np.argsort(source.astype(np.uint16) if small else source, kind="stable")
        target = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
        ends, spans = target[order], offsets_of(np.bincount(source, minlength=n_source))
        back = torch.as_tensor(ends, device=device), torch.as_tensor(spans, device=device)
    ahead = torch.as_tensor(source, device=device), torch.as_tensor(offsets, device=device)
    return Relation(*ahead, n_source, len(offsets) - 1, back)

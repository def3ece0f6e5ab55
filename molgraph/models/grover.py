"""GROVER: a graph transformer of two views, of atoms and of directed bonds."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any, Literal

import torch
from torch import nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder, Pooled, SharedStates
from molgraph.nn.encoder import Rows
from molgraph.nn.gtransformer import GTransformer, LongRange
from molgraph.nn.hops import Hops, atom_hops, bond_hops
from molgraph.nn.norms import make_norms
from molgraph.nn.propagate import propagate
from molgraph.nn.removable import Heads, head_counts
from molgraph.nn.size_groups import bond_groups, size_groups

SIZES = {"tiny": 32, "small": 256, "base": 800, "large": 1200}


@register(
    "encoder",
    "grover",
    summary="attention over atoms and over bonds, fed by message passing; made to be pretrained",
    paper="Rong et al. 2020, NeurIPS",
    line=(
        "atoms; directed bonds",
        "bonds, next bond; all rows of the graph",
        "sums into queries, keys, values; attention",
        "long-range residual + perceptron",
        "self-attentive, both views",
        "context of atoms and bonds; functional groups",
    ),
)
class Grover(AtomEncoder):
    """Graph representation from self-supervised message passing transformer.

    Rong et al. 2020, "Self-Supervised Graph Transformer on Large-Scale Molecular Data": one view has a row for each
    atom, the other for each directed bond; each goes through ``depth`` GTransformer blocks (``nn.gtransformer``). Each
    view gives states of atoms and of bonds, four in all: the sum of what arrives at an atom, or at a bond from the
    others that arrive at its source, beside the row's own features (the long-range residual), through a feed-forward
    network. The readout reads the atoms of both views, side by side; the head ``agreement`` gives each a branch.

    Use it from a pretrained file, as ``molgraph pretrain -m grover --objective grover`` writes it. Known limits: twelve
    networks of six hops make the queries, keys and values of each view, so a molecule costs a hundred times as much as
    one of ``dmpnn``; from scratch it is behind smaller models.

    Args:
        spec: what the graphs hold.
        size: width of the published sizes ``base`` (800) and ``large`` (1200), of ``small`` (256) or ``tiny`` (32);
            with the heads of its pretraining 48, 100 and 5 million weights, the encoder of ``base`` alone 35 million.
        d_hidden: another width.
        heads: attention heads, each of that width.
        kept_heads: how many of them each block has left, first those of atoms, as ``compress`` writes it; all if empty.
        depth: blocks of each view.
        hops: mean number of hops of message passing.
        hop_spread: standard deviation of the hops in training; prediction takes the mean.
        dropout: probability of dropping a value while training.
        norm: a registered norm, behind the heads of each block.
        readout: rows to graph, a registered readout, of each view.

    Raises:
        UsageError: an unknown readout.
    """

    needs = ("atom", "bond", "bond.reverse")
    n_views = 2
    small = MappingProxyType({"d_hidden": 8, "heads": 2, "hops": 2, "hop_spread": 0.0, "norm": "none"})

    def __init__(
        self,
        spec: InputSpec,
        *,
        size: Literal["tiny", "small", "base", "large"] = "small",
        d_hidden: Width | None = None,
        heads: Annotated[int, Range(1, 64)] = 4,
        kept_heads: str = "",
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 1,
        hops: Annotated[int, Range(1, INNER_LIMIT)] = 6,
        hop_spread: Annotated[float, Range(0, 10)] = 1.0,
        dropout: Probability = 0.0,
        norm: str = "layer",
        readout: str = "self_attentive",
    ) -> None:
        super().__init__()
        d, d_atom, d_bond = d_hidden or SIZES[size], spec.width("atom"), spec.width("bond")
        self.embed_atoms, self.embed_bonds = nn.Linear(d_atom, d, bias=False), nn.Linear(d_atom + d_bond, d, bias=False)
        counts, rest = head_counts(kept_heads, 2 * depth, heads), (hops, hop_spread, dropout)
        self.atoms = nn.ModuleList(GTransformer(d, d_bond, n, *rest) for n in counts[:depth])
        self.bonds = nn.ModuleList(GTransformer(d, 0, n, *rest) for n in counts[depth:])
        self.norms = make_norms(norm, [d] * 2 * depth)
        self.of_atoms = nn.ModuleList(LongRange(d, d_atom, dropout) for _ in range(2))
        self.hops, self.d_features = hops, d_atom + d_bond  # features of a bond with its source
        self.read_by(readout, d)
        self.d_out, self.d_rows = 2 * self.readout.d_out, 2 * d

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations of both views ahead."""
        super().prepare(batch)
        _ = relations.next_bonds(batch).transpose, relations.arriving(batch).transpose, size_groups(batch)
        _ = bond_groups(batch), relations.before_bonds(batch).transpose
        _ = [hops.level(self.hops) for pair in self._hops(batch) for hops in pair]  # or some more

    def attention_heads(self) -> tuple[Heads, ...]:
        """Those of each block, first those of atoms."""
        views: tuple[tuple[str, str, Any], ...] = (("atom", "atoms", self.atoms), ("bond", "bonds", self.bonds))
        every = [(level, f"{name}.{i}", block) for level, name, blocks in views for i, block in enumerate(blocks)]
        return tuple(Heads(block.units().within(at), f"{at}.w_o", level) for level, at, block in every)

    def _hops(self, batch: GraphBatch) -> list[tuple[Hops, Hops]]:
        """Of each block; rows that look alike are computed once until those of one graph attend to each other."""
        alike = [self.distinct, *[False] * (len(self.atoms) - 1)]
        return [(atom_hops(batch, distinct=flag), bond_hops(batch, distinct=flag)) for flag in alike]

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states of both views side by side, and what arrives at bonds where rows are asked for."""
        bonds, turns, arriving = relations.bonds(batch), relations.next_bonds(batch), relations.arriving(batch)
        in_graph, bonds_in_graph = relations.members(batch), relations.members(batch, "bond")
        atom, bond = batch.features("atom"), batch.features("bond")
        bond_with_source = torch.cat([atom.index_select(0, batch.source), bond], dim=1)
        along = propagate(bond, arriving).to(atom.dtype)
        a, b = self.embed_atoms(atom).relu(), self.embed_bonds(bond_with_source).relu()
        norms = iter(self.norms)
        for over_atoms, over_bonds, (of_atoms, of_bonds) in zip(self.atoms, self.bonds, self._hops(batch), strict=True):
            a = next(norms)(over_atoms(a, of_atoms, along, size_groups(batch)), in_graph)
            b = next(norms)(over_bonds(b, of_bonds, None, bond_groups(batch)), bonds_in_graph)
        h = [out(propagate(x, way), atom) for out, x, way in zip(self.of_atoms, (a, b), (bonds, arriving), strict=True)]

        def at_bonds() -> tuple[Rows, ...]:
            heard = torch.cat([propagate(a, relations.before_bonds(batch)), propagate(b, turns)], dim=1)
            return (Rows("bond", heard, batch.graph_of("bond")),)

        return SharedStates(torch.cat(h, dim=1), in_graph, lambda h: h, others=at_bonds)

    def pool(self, found: SharedStates) -> Pooled:
        """Each view through the same readout, side by side."""
        halves = [found._replace(h=half, read=None) for half in found.h.chunk(2, dim=1)]
        (first, one), (second, two) = (super(Grover, self).pool(half) for half in halves)
        return torch.cat([first, second], dim=1), {name: (one[name] + two[name]) / 2 for name in one}

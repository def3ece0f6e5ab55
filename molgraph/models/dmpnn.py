"""D-MPNN: messages between directed bonds that never turn back."""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType
from typing import Annotated

from torch import nn

from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import relations
from molgraph.nn.atom_encoder import AtomEncoder, SharedStates
from molgraph.nn.deduplicate import BondRounds, bond_rounds
from molgraph.nn.joined_linear import JoinedLinear, SummedRows
from molgraph.nn.norms import make_norms
from molgraph.nn.perceptron import make_activation
from molgraph.nn.removable import Axis, HiddenUnits, Units, vector_axes


@register(
    "encoder",
    "dmpnn",
    system="dmpnn",
    summary="directed message passing along bonds; the default graph network",
    paper="Yang et al. 2019, J. Chem. Inf. Model. 59:3370",
    line=("directed bonds", "next bond, no U-turn", "sum", "skip + ReLU", "incoming sum, sum / 100", "supervised"),
)
class DMPNN(AtomEncoder):
    """Directed message passing network.

    Yang et al. 2019, "Analyzing Learned Molecular Representations for Property Prediction", equations 1 to 5, with
    the sizes of chemprop 2:

    ``h0_vw = W_i [x_v, e_vw]``, ``h_vw = act(h0_vw)``, then ``depth - 1`` times
    ``h_vw = act(h0_vw + W_h sum_{u in N(v) without w} h_uv)``, and
    ``h_v = act(W_o [x_v, sum_{u in N(v)} h_uv] + b)``.

    Use it first among the graph networks; ``molgraph models --why`` tells how it fares beside forests, which lead on a
    few hundred molecules. Known limits: atoms more than ``depth`` bonds apart meet in the readout alone.

    Args:
        spec: what the graphs hold.
        d_hidden: width of all states, and of the output.
        depth: number of bond levels, 1 or more.
        norm: a registered norm, before each activation; the paper has none.
        dropout: probability of dropping a state's value while training.
        activation: a name that ``molgraph.nn.perceptron`` knows.
        readout: rows to graph: ``norm`` (sum / 100, chemprop 2's), ``mean``, ``sum``, or another registered readout.
        bias: a bias in ``W_i`` and ``W_h`` too.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: a depth below 1, an unknown activation.
        UsageError: an unknown norm or readout.
    """

    needs = ("atom", "bond", "bond.reverse")
    small = MappingProxyType({"d_hidden": 8})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 300,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 3,
        norm: str = "none",
        dropout: Probability = 0.0,
        activation: str = "relu",
        readout: str = "norm",
        bias: bool = False,
        distinct: bool = True,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"depth must be 1 or more, got {depth}")
        self.depth, self.distinct = depth, distinct
        d_atom, d_bond = spec.width("atom"), spec.width("bond")
        self.w_i = JoinedLinear(d_atom + d_bond, d_hidden, bias=bias)
        self.w_h = JoinedLinear(d_hidden, d_hidden, bias=bias)
        self.w_o = JoinedLinear(d_atom + d_hidden, d_hidden)
        self.activation, self.dropout = make_activation(activation), nn.Dropout(dropout)
        self.norms = make_norms(norm, [d_hidden] * (depth + 1))  # the last is the atoms'
        self.read_by(readout, d_hidden)

    def hidden_units(self) -> HiddenUnits:
        """Those of bonds, which every round shares, and those of atoms."""
        d, d_atom = self.w_h.in_features, self.w_o.in_features - self.w_h.in_features
        biases = [Axis(f"{name}.bias", 0) for name in ("w_i", "w_h") if getattr(self, name).bias is not None]
        norms = [vector_axes(norm, d, f"norms.{i}") for i, norm in enumerate(self.norms)]
        read = [Axis("w_h.weight", 1), Axis("w_o.weight", 1, d_atom)]
        bonds = [Axis("w_i.weight", 0), Axis("w_h.weight", 0), *read, *biases, *chain(*norms[:-1])]
        atoms = (Axis("w_o.weight", 0), Axis("w_o.bias", 0), *norms[-1])
        return HiddenUnits((Units(d, tuple(bonds)), Units(d, atoms)), rows=(1,))

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations ahead."""
        _ = self.rounds_of(batch), relations.members(batch, "bond")

    def states(self, batch: GraphBatch) -> SharedStates:
        """The atoms' states, from the bonds that arrive at them."""
        rounds, in_graph = self.rounds_of(batch), relations.members(batch, "bond")
        first, *norms, last = self.norms
        h0 = self.w_i(rounds.source_atoms, rounds.bonds)  # equation 1
        h = self.activation(first(h0, in_graph))
        for step, norm in zip(rounds.rounds, norms, strict=True):
            m = self.w_h(SummedRows(h, step.relation))  # equations 2 and 3
            h = self.dropout(self.activation(norm(step.initial(h0) + m, in_graph)))
        h = self.w_o(rounds.atoms, SummedRows(h, rounds.arriving))  # equations 4 and 5
        h = self.dropout(self.activation(last(h, rounds.readout)))
        return SharedStates(h, rounds.readout, rounds.every_atom)

    def rounds_of(self, batch: GraphBatch) -> BondRounds:
        """The rows of each round of messages between directed bonds."""
        return bond_rounds(batch, self.depth, distinct=self.shares_rows)

"""D-MPNN: states live on directed bonds, and no message turns back."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.registry import get, register
from molgraph.data.batch import GraphBatch
from molgraph.nn import readouts  # noqa: F401 - registers the readouts
from molgraph.nn.activations import activation as make_activation
from molgraph.nn.distinct import BondLevels, all_bonds, distinct_bonds
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.passing import propagate
from molgraph.nn.relation import Relation


@register(
    "encoder",
    "dmpnn",
    summary="directed message passing along bonds; the strong default",
    paper="Yang et al. 2019, J. Chem. Inf. Model. 59:3370",
    line=("directed bonds", "next bond, no U-turn", "sum", "skip + ReLU", "incoming sum, mean", "supervised"),
)
class DMPNN(Encoder):
    """Directed message passing network.

    Yang et al. 2019, "Analyzing Learned Molecular Representations for Property Prediction", equations 1 to 5, with
    the sizes of chemprop 2:

    ``h0_vw = W_i [x_v, e_vw]``, ``h_vw = act(h0_vw)``, then ``depth - 1`` times
    ``h_vw = act(h0_vw + W_h sum_{u in N(v) without w} h_uv)``, and
    ``h_v = act(W_o [x_v, sum_{u in N(v)} h_uv] + b)``.

    Bonds that look alike are computed once (``distinct``), which is the same function. Dropout makes rows that
    look alike differ, so while training with dropout every bond is a row.

    Args:
        d_atom, d_bond: widths of the atom and bond features.
        d_hidden: width of all states, and of the output.
        depth: number of bond levels, 1 or more.
        dropout: probability of dropping a state's value while training.
        activation: a name that ``molgraph.nn.activations`` knows.
        readout: rows to graph: ``mean``, ``sum`` or ``norm`` (sum / 100), or another registered readout.
        bias: a bias in ``W_i`` and ``W_h`` too.
        distinct: compute rows that look alike once.

    Raises:
        ValueError: a depth below 1, an unknown activation.
        UsageError: an unknown readout.
    """

    repeats = ("depth",)

    def __init__(
        self,
        d_atom: int,
        d_bond: int,
        *,
        d_hidden: int = 300,
        depth: int = 3,
        dropout: float = 0.0,
        activation: str = "relu",
        readout: str = "mean",
        bias: bool = False,
        distinct: bool = True,
    ) -> None:
        super().__init__()
        if depth < 1:
            raise ValueError(f"depth must be 1 or more, got {depth}")
        self.depth, self.distinct = depth, distinct
        self.w_i = nn.Linear(d_atom + d_bond, d_hidden, bias=bias)
        self.w_h = nn.Linear(d_hidden, d_hidden, bias=bias)
        self.w_o = nn.Linear(d_atom + d_hidden, d_hidden)
        self.activation, self.dropout = make_activation(activation), nn.Dropout(dropout)
        self.readout = get("readout", readout)(d_hidden)
        self.d_out = self.readout.d_out

    def prepare(self, batch: GraphBatch) -> None:
        """Find the distinct rows and their relations ahead."""
        self._levels(batch)

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch; with ``rows``, write out the atoms' states too."""
        levels = self._levels(batch)
        w_atom, w_bond = self.w_i.weight.split([batch.atom_table.shape[1], batch.bond_table.shape[1]], dim=1)
        h0 = _embed(batch.atom_table, w_atom, self.w_i.bias, levels.atom_code)
        h0 = h0 + _embed(batch.bond_table, w_bond, None, levels.bond_code)
        h = self.activation(h0)
        for relation, began in levels.steps:
            start = h0 if began is None else h0.index_select(0, began)
            m = _send(h, relation, self.w_h.weight, self.w_h.bias)
            h = self.dropout(self.activation(start + m))
        w_atom, w_sum = self.w_o.weight.split([batch.atom_table.shape[1], h.shape[1]], dim=1)
        start = _embed(batch.atom_table, w_atom, self.w_o.bias, levels.arrive_code)
        h = self.dropout(self.activation(start + _send(h, levels.arrive, w_sum, None)))
        graphs = self.readout(h, levels.readout)
        if not rows:
            return Encoded(graphs)
        atoms = h if levels.atom_row is None else h.index_select(0, levels.atom_row)
        return Encoded(graphs, (Rows("atom", atoms, batch.graph_of),))

    def _levels(self, batch: GraphBatch) -> BondLevels:
        alike = self.distinct and not (self.training and self.dropout.p > 0)
        return (distinct_bonds if alike else all_bonds)(batch, self.depth)


def _embed(
    table: Float[Tensor, "k d_in"],
    weight: Float[Tensor, "d d_in"],
    bias: Float[Tensor, " d"] | None,
    code: Int[Tensor, " rows"],
) -> Float[Tensor, "rows d"]:
    """``W x + b`` of coded rows, multiplied before the gather where the table is the shorter one.

    In single precision at least: the table is short, and what bfloat16 rounds here every later step adds up.
    """
    with torch.autocast(table.device.type, enabled=False):
        if table.shape[0] <= code.shape[0]:
            return F.linear(table, weight, bias).index_select(0, code)
        return F.linear(table.index_select(0, code), weight, bias)


def _send(
    h: Float[Tensor, "{relation.n_source} d_in"],
    relation: Relation,
    weight: Float[Tensor, "d d_in"],
    bias: Float[Tensor, " d"] | None,
) -> Float[Tensor, "{relation.n_target} d"]:
    """``W sum(h) + b``; the product and the sum commute, so the product is taken on the side with fewer rows.

    Sums are taken in single precision at least: bfloat16 has 8 bits, and would round every one of them.
    """
    if relation.n_source < relation.n_target:
        rows = F.linear(h, weight)
        out = propagate(rows.to(torch.promote_types(rows.dtype, torch.float32)), relation)
        return out if bias is None else out + bias
    return F.linear(propagate(h, relation), weight, bias)

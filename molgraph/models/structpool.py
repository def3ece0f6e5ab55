"""StructPool: a graph network that pools atoms into clusters by a conditional random field."""

from __future__ import annotations

from itertools import pairwise
from types import MappingProxyType
from typing import Annotated, Literal

import torch
from torch import nn

from molgraph.base.parameters import refuse_unread
from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.graph_store import InputSpec
from molgraph.nn.cluster_convolution import ClusterConvolution
from molgraph.nn.matrix_limit import MatrixGB, MatrixLimit
from molgraph.nn.norms import make_norms
from molgraph.nn.pooling_net import PoolingNet
from molgraph.nn.row_graph import MeanConv
from molgraph.nn.structpool import StructPool

RELEASED = (32, 48, 64)  # the widths of the authors' convolutions


@register(
    "encoder",
    "structpool",
    systems=(
        SystemCard(
            "structpool",
            off="-s params.n_iter=0",
            beside=("clusters without the random field",),
            modules=("molgraph.nn.structpool",),
        ),
    ),
    tags=("pooling",),
    summary="clusters by a conditional random field",
    paper="Yuan & Ji 2020, ICLR",
    line=("atoms; clusters", "bonds; pairs of atoms", "sum", "ReLU; mean field", "sum of the clusters", "supervised"),
)
class StructPoolNet(PoolingNet):
    """Convolutions and structured poolings.

    Yuan & Ji 2020, "StructPool: Structured Graph Pooling via Conditional Random Fields": ``depth`` convolutions
    ``X``, the clusters ``X' = M^T X, A' = M^T A M`` whose assignments M are a mean field of ``n_iter`` steps
    (``nn/structpool.py``), a convolution on them, and a readout. With ``levels`` above 1 the clusters are pooled again,
    each time to half as many.

    Use it to look at learned groups of atoms (``molgraph.draw_clusters``), or on large graphs: it grows with nodes and
    edges, not with pairs. Known limits: clusters are a hint and no explanation; the sum of a graph's clusters is that
    of its atoms, so all that pooling adds comes after it; deep convolutions make atoms alike, and fewer clusters are
    used then.

    Args:
        spec: what the graphs hold.
        d_hidden: width of all states.
        depth: convolutions before the first pooling, 1 or more.
        k: clusters of the first pooling; the paper takes a percentile of the graphs' sizes, 10 or more.
        levels: poolings; 1 is the paper's single form.
        n_iter: steps of mean field.
        l_hop: pairs farther than this in bonds do not act on each other at the first level; None for all pairs.
        max_matrix_gb: the largest matrix with a row for each pair of nodes of one graph within ``l_hop``, in GB.
        compat: compatibility of clusters, ``learned`` or ``fixed``.
        assign: ``soft``, or ``hard`` with the gradient of the soft one.
        norm: a registered norm, after each convolution and of the unary logits.
        dropout: probability of dropping a state's value while training.
        readout: clusters to graph, a registered readout.
        released: the network of the authors' released code: mean convolutions of widths 32, 48 and 64 with tanh, fixed
            compatibility, signed weights, DGCNN's head over the k clusters. It reads ``k`` and ``n_iter`` alone.

    Raises:
        ValueError: a depth below 1; fewer than 10 clusters, or an option that it does not read, for the released form.
        UsageError: an unknown norm or readout, or a graph with a larger matrix.
    """

    small = MappingProxyType({"d_hidden": 8, "depth": 1, "k": 4})

    def __init__(
        self,
        spec: InputSpec,
        *,
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 2,
        k: Width = 10,
        levels: Annotated[int, Range(1, 8)] = 1,
        n_iter: Annotated[int, Range(0, 100)] = 5,
        l_hop: Annotated[int, Range(1, 32)] | None = None,
        max_matrix_gb: MatrixGB = 0.25,
        compat: Literal["learned", "fixed"] = "learned",
        assign: Literal["soft", "hard"] = "soft",
        norm: str = "batch",
        dropout: Probability = 0.0,
        readout: str = "sum",
        released: bool = False,
    ) -> None:
        super().__init__()
        if released:
            options = {"d_hidden": d_hidden, "depth": depth, "levels": levels, "l_hop": l_hop, "compat": compat,
                     "assign": assign, "norm": norm, "dropout": dropout, "readout": readout,
                     "max_matrix_gb": max_matrix_gb}  # fmt: skip
            refuse_unread(StructPoolNet, "the released form", options)
            self._as_released(spec, k, n_iter)
            return
        if n_iter == 0:
            refuse_unread(StructPoolNet, "n_iter=0", {"l_hop": l_hop, "compat": compat})
        if l_hop is None:
            refuse_unread(StructPoolNet, "structpool without l_hop", {"max_matrix_gb": max_matrix_gb})
        self.l_hop = l_hop
        if l_hop is not None:
            self.limit = MatrixLimit.near("structpool", d_hidden, max_matrix_gb, l_hop, "l_hop")
        pools = [
            StructPool(d_hidden, max(1, k >> i), n_iter=n_iter, compat=compat, assign=assign, norm=norm)
            for i in range(levels)
        ]
        self.build(spec, pools, d_hidden, depth, norm, dropout, readout)

    def _as_released(self, spec: InputSpec, k: int, n_iter: int) -> None:
        d = RELEASED[-1]
        head = ClusterConvolution(d, k)
        self.convs = nn.ModuleList(MeanConv(a, b) for a, b in pairwise((spec.width("atom"), *RELEASED)))
        self.activation = torch.tanh
        self.pools = nn.ModuleList([StructPool(d, k, n_iter=n_iter, released=True)])
        self.norms = make_norms("none", (*RELEASED, d))
        self.after, self.readouts = nn.ModuleList([nn.Identity()]), nn.ModuleList([head])
        self.dropout, self.d_rows, self.d_out = nn.Identity(), d, head.d_out

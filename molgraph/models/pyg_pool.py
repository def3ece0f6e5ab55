"""Use a pooling of PyTorch Geometric as an encoder: DiffPool, MinCut, SAGPool or TopK."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from molgraph.base.parameters import refuse_unread
from molgraph.base.ranges import INNER_LIMIT, Probability, Range, Share, Width
from molgraph.base.registry import register
from molgraph.data.graph_store import InputSpec
from molgraph.nn.matrix_limit import MatrixGB, MatrixLimit
from molgraph.nn.pooling import PoolingName, make_pool
from molgraph.nn.pooling_net import PoolingNet


@register(
    "encoder",
    "pyg_pool",
    tags=("pooling",),
    summary="DiffPool, MinCut, SAGPool or TopK",
    paper="Ying et al. 2018, NeurIPS; Bianchi et al. 2020, ICML; Lee et al. 2019, ICML; Gao & Ji 2019, ICML",
    line=("atoms; clusters", "bonds", "sum", "ReLU; a pooling of PyG", "sum of the clusters", "supervised"),
)
class PyGPool(PoolingNet):
    """The network of ``structpool`` with another pooling, so that the poolings can be compared.

    ``diffpool`` (Ying et al. 2018) and ``mincut`` (Bianchi et al. 2020) assign atoms to ``k`` clusters by a convolution
    and are penalised for bad ones; ``sagpool`` (Lee et al. 2019) and ``topk`` (Gao & Ji 2019) keep the share ``ratio``
    of the atoms.

    Use it to judge a pooling by others in the same network. Known limits: ``diffpool`` and ``mincut`` form a matrix of
    all pairs of a graph's nodes; of several atoms that look alike ``sagpool`` and ``topk`` keep the first ones of the
    file's order.

    Args:
        spec: what the graphs hold.
        pool: ``diffpool``, ``mincut``, ``sagpool`` or ``topk``.
        d_hidden: width of all states.
        depth: convolutions before the first pooling, 1 or more.
        k: clusters of the first pooling of diffpool or mincut; half as many of each further one.
        ratio: of the atoms that each pooling of sagpool or topk keeps.
        levels: poolings.
        max_matrix_gb: the largest matrix of all pairs of a graph's nodes that diffpool and mincut form, in GB: 0.05 is
            that of 3,535 nodes.
        norm: a registered norm, after each convolution.
        dropout: probability of dropping a state's value while training.
        readout: clusters to graph, a registered readout.

    Raises:
        ValueError: a depth below 1, or an option that the pooling does not read.
        UsageError: an unknown norm or readout, or a graph with a larger matrix.
    """

    small = MappingProxyType({"d_hidden": 8, "depth": 1})

    def __init__(
        self,
        spec: InputSpec,
        *,
        pool: PoolingName = "diffpool",
        d_hidden: Width = 64,
        depth: Annotated[int, Range(1, INNER_LIMIT)] = 2,
        k: Width = 10,
        ratio: Share = 0.5,
        levels: Annotated[int, Range(1, 8)] = 1,
        max_matrix_gb: MatrixGB = 0.05,
        norm: str = "batch",
        dropout: Probability = 0.0,
        readout: str = "sum",
    ) -> None:
        super().__init__()
        assigns = pool in ("diffpool", "mincut")
        unread = {"ratio": ratio} if assigns else {"k": k, "max_matrix_gb": max_matrix_gb}
        refuse_unread(PyGPool, pool, unread)
        if assigns:
            words = "forms matrices of all pairs of nodes", "choose structpool, sagpool or topk, which form none"
            self.limit = MatrixLimit(pool, 1, max_matrix_gb, *words)
        pools = [make_pool(pool, d_hidden, max(1, k >> i), ratio) for i in range(levels)]
        self.build(spec, pools, d_hidden, depth, norm, dropout, readout)

"""Attention along a relation: each target row reads the values of its sources, weighted by a softmax."""

from __future__ import annotations

import math

from jaxtyping import Float
from torch import Tensor

from molgraph.nn.relation import Relation
from molgraph.nn.segment import segment_sum, segment_weights


def attend(
    q: Float[Tensor, "{relation.n_target} heads d"],
    k: Float[Tensor, "{relation.n_source} heads d"],
    v: Float[Tensor, "{relation.n_source} heads d_v"],
    relation: Relation,
    bias: Float[Tensor, "{relation.n_pairs} heads"] | None = None,
) -> Float[Tensor, "{relation.n_target} heads d_v"]:
    """Scaled dot-product attention of each target over its own sources.

    Vaswani et al. 2017, equation 1, with the sum taken along a relation:
    ``out_t = sum_s softmax_s(q_t . k_s / sqrt(d) + b_st) v_s``.

    Args:
        q: float [n_target, heads, d].
        k, v: float [n_source, heads, d] and [n_source, heads, d_v].
        relation: the pairs; ``relations.all_pairs`` for every row of a graph with every other.
        bias: float [p, heads], added to the scores in the relation's order.

    Returns:
        float [n_target, heads, d_v]; zeros for a target without pairs.

    Example:
        >>> import torch
        >>> one = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([0, 0]), 2, 1)
        >>> attend(torch.zeros(1, 1, 4), torch.ones(2, 1, 4), torch.tensor([[[1.0]], [[3.0]]]), one).item()
        2.0
    """
    scores = (q.index_select(0, relation.target) * k.index_select(0, relation.source)).sum(-1) / math.sqrt(q.shape[-1])
    weights = segment_weights(scores if bias is None else scores + bias, relation)
    return segment_sum(weights.unsqueeze(-1) * v.index_select(0, relation.source), relation)

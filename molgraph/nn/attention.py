"""Attention along a relation, or over all rows of a graph: a sum of values, weighted by a softmax of scores."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.relation import Relation
from molgraph.nn.segment import segment_sum, segment_weights
from molgraph.nn.size_groups import SizeGroups

ChangeWeights: TypeAlias = Callable[[Tensor], Tensor]
"""Weights float [p, heads] to those that are used in their place."""


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
        relation: the pairs; over all pairs of each graph's rows, ``attend_all`` is faster.
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
    return weigh(scores if bias is None else scores + bias, v, relation)


def attend_all(
    q: Float[Tensor, "n heads d"],
    k: Float[Tensor, "n heads d"],
    v: Float[Tensor, "n heads d"],
    groups: SizeGroups,
    bias: Sequence[Float[Tensor, "_ _ _ _"]] | None = None,
) -> Float[Tensor, "n heads d"]:
    """Scaled dot-product attention of each row over all rows of its graph, itself included; no matrix of pairs is kept.

    Args:
        q, k, v: float [n, heads, d].
        groups: the rows of each graph.
        bias: float [graphs, heads, n, n] for each of the groups, added to the scores; -inf where one sees no other.

    Example:
        >>> v = torch.tensor([[[1.0]], [[3.0]], [[5.0]]])
        >>> groups = SizeGroups.of(torch.tensor([0, 2, 3]))
        >>> attend_all(torch.zeros(3, 1, 1), torch.ones(3, 1, 1), v, groups).flatten().tolist()
        [2.0, 2.0, 5.0]
    """
    n, heads = q.shape[:2]
    rows = torch.cat([q, k, v], dim=1).flatten(1)
    parts = []
    for i, (padded, index) in enumerate(zip(groups.pad(rows), groups.rows, strict=True)):
        q, k, v = padded.unflatten(2, (3, heads, -1)).permute(2, 0, 3, 1, 4)
        seen = (index < n)[:, None, None, :] if bias is None else bias[i].to(q.dtype)
        out = F.scaled_dot_product_attention(q, k, v, attn_mask=seen)
        parts.append(out.transpose(1, 2).flatten(2))
    return groups.unpad(parts, rows[:, : rows.shape[1] // 3]).unflatten(1, (heads, -1))


def weigh(
    scores: Float[Tensor, " {relation.n_pairs} *heads"],
    v: Float[Tensor, " {relation.n_source} *values"],
    relation: Relation,
    change: ChangeWeights | None = None,
) -> Float[Tensor, " {relation.n_target} *values"]:
    """``out_t = sum_s softmax_s(score_st) v_s``: zeros for a target without pairs.

    Args:
        scores: float [p, heads] beside values float [n_source, heads, d], or [p, 1] beside float [n_source, d].
        v: the values.
        relation: its pairs.
        change: what the weights, of the scores' shape, are replaced by.
    """
    weights = segment_weights(scores, relation)
    weights = weights if change is None else change(weights)
    if v.ndim > scores.ndim:
        weights = weights.unsqueeze(-1)
    return segment_sum(weights * v.index_select(0, relation.source), relation)


class AdditiveAttention(nn.Module):
    """Attention by a sum of scores, of one head.

    Velickovic et al. 2018, equations 1 to 4: ``out_t = b + sum_s softmax_s(leaky_relu(a . W h_s + a' . W h_t)) W h_s``.

    Args:
        d_in, d_out: widths of the rows and of the output.
        slope: of the leaky ReLU.
    """

    def __init__(self, d_in: int, d_out: int, slope: float = 0.01) -> None:
        super().__init__()
        self.slope = slope
        self.w, self.bias = nn.Linear(d_in, d_out, bias=False), nn.Parameter(torch.zeros(d_out))
        self.of_source, self.of_target = nn.Linear(d_out, 1, bias=False), nn.Linear(d_out, 1, bias=False)

    def forward(
        self,
        sources: Float[Tensor, "s d_in"],
        targets: Float[Tensor, "t d_in"],
        relation: Relation,
        change: ChangeWeights | None = None,
    ) -> Float[Tensor, "t d_out"]:
        """float [n_source, d_in] and [n_target, d_in] to [n_target, d_out]; ``change`` as ``weigh`` has it."""
        rows = self.w(sources)
        score = self.of_source(rows).index_select(0, relation.source)
        score = score + self.of_target(self.w(targets)).index_select(0, relation.target)
        return weigh(F.leaky_relu(score, self.slope), rows, relation, change) + self.bias

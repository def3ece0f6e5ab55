"""Contrastive losses of pairs of vectors: InfoNCE with its bound, and its debiased form."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


class Contrast(NamedTuple):
    """Losses of n anchors, and the bound on the mutual information that they give.

    Args:
        losses: float [n], in nats.
        bound: scalar, the mean over the anchors of ``log N - loss``, N being the candidates of each.
        ceiling: scalar, the mean of log N, which the bound never exceeds.
    """

    losses: Float[Tensor, " n"]
    bound: Float[Tensor, ""]
    ceiling: Float[Tensor, ""]


def info_nce(
    scores: Float[Tensor, "n m"],
    positive: Int[Tensor, " n"],
    excluded: Bool[Tensor, "n m"] | None = None,
    more: Float[Tensor, "n k"] | None = None,
) -> Contrast:
    """InfoNCE: the cross-entropy of each anchor's positive among its candidates.

    van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding", equation 4:
    ``-log exp(s_ip) / sum_j exp(s_ij)``, and equation 5: ``I >= log N - L``.

    Args:
        scores: of anchors and candidates.
        positive: the column of each anchor's positive.
        excluded: pairs that are no negatives, such as an anchor with itself or with a duplicate; a positive stays.
        more: scores of further positives of each anchor, whose exponentials are added to that of the first, above and
            below (Kim et al. 2020, "Adversarial Self-Supervised Contrastive Learning", equation 1).

    Example:
        >>> found = info_nce(torch.zeros(2, 4), torch.tensor([0, 1]))
        >>> found.losses, found.bound, found.ceiling
        (tensor([1.3863, 1.3863]), tensor(0.), tensor(1.3863))
    """
    s = without(scores, positive, excluded)
    losses = F.cross_entropy(s, positive, reduction="none")
    ceiling = torch.isfinite(s).sum(dim=1).to(losses.dtype).log().mean()
    bound = ceiling - losses.mean()
    if more is not None:
        positives = torch.cat([s.gather(1, positive[:, None]), more], dim=1)
        losses = torch.cat([s, more], dim=1).logsumexp(dim=1) - positives.logsumexp(dim=1)
    return Contrast(losses, bound, ceiling)


def debiased_info_nce(
    scores: Float[Tensor, "n m"],
    positive: Int[Tensor, " n"],
    prior: float,
    least: float,
    excluded: Bool[Tensor, "n m"] | None = None,
) -> Contrast:
    """InfoNCE with negatives corrected for those that are of the anchor's class by chance.

    Chuang et al. 2020, "Debiased Contrastive Learning", equation 8 with one positive:
    ``g = max((mean_j exp(s_ij) - prior exp(s_ip)) / (1 - prior), exp(least))``, the mean over the N negatives, and the
    loss is ``-log exp(s_ip) / (exp(s_ip) + N g)``. With a prior of 0 it is InfoNCE.

    Args:
        scores, positive, excluded: as for ``info_nce``.
        prior: probability that a random molecule is of the anchor's class.
        least: the smallest score that there is, -1 / temperature for cosines.
    """
    s = without(scores, positive, excluded)
    of_positive = s.gather(1, positive[:, None]).squeeze(1)
    negatives = s.scatter(1, positive[:, None], float("-inf"))
    n = torch.isfinite(negatives).sum(dim=1).to(s.dtype)
    top = s.amax(dim=1).detach()  # exponentials are taken relative to the largest score
    mean = (negatives - top[:, None]).exp().sum(dim=1) / n.clamp(min=1)
    g = (mean - prior * (of_positive - top).exp()) / (1 - prior)
    g = torch.maximum(g, (least - top).exp())
    tiny = torch.finfo(s.dtype).tiny  # an anchor without negatives loses nothing
    losses = F.softplus((n * g).clamp(min=tiny).log() + top - of_positive)
    ceiling = (n + 1).log().mean()
    return Contrast(losses, ceiling - losses.mean(), ceiling)


def without(
    scores: Float[Tensor, "n m"], positive: Int[Tensor, " n"], excluded: Bool[Tensor, "n m"] | None
) -> Float[Tensor, "n m"]:
    """The scores with ``-inf`` for the excluded pairs, positives apart."""
    if excluded is None:
        return scores
    return scores.masked_fill(excluded.scatter(1, positive[:, None], False), float("-inf"))

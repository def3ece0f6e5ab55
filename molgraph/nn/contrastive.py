"""Contrastive losses of pairs of vectors: InfoNCE with its bound, and its debiased form."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.errors import UsageError


class Contrast(NamedTuple):
    """Losses of n anchors, and the bound on the mutual information that they give.

    Args:
        losses: float [n], in nats.
        loss: scalar, their mean; where a molecule comes several times, the mean over molecules.
        bound: scalar, the same mean of ``log N - loss``, N being the candidates of each.
        ceiling: scalar, the same mean of log N, which the bound never exceeds.
    """

    losses: Float[Tensor, " n"]
    loss: Float[Tensor, ""]
    bound: Float[Tensor, ""]
    ceiling: Float[Tensor, ""]


def info_nce(
    scores: Float[Tensor, "n m"],
    positive: Int[Tensor, " n"],
    excluded: Bool[Tensor, "n m"] | None = None,
    more: Float[Tensor, "n k"] | None = None,
    repeats: Int[Tensor, " m"] | None = None,
) -> Contrast:
    """InfoNCE: the cross-entropy of each anchor's positive among its candidates.

    van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding", equation 4:
    ``-log exp(s_ip) / sum_j exp(s_ij)``, and equation 5: ``I >= log N - L``. A candidate whose molecule comes c times
    counts as 1 / c of one, and so does an anchor, so that a repeated molecule changes neither loss nor bound.

    Args:
        scores: of anchors and candidates, over the temperature.
        positive: the column of each anchor's positive.
        excluded: pairs that are no negatives, such as an anchor with itself or with a duplicate; a positive stays.
        more: scores of further positives of each anchor, whose exponentials are added to that of the first, above and
            below (Kim et al. 2020, "Adversarial Self-Supervised Contrastive Learning", equation 1).
        repeats: how often the molecule of each candidate comes in the batch; 1 if not given.

    Raises:
        UsageError: no anchor.

    Example:
        >>> found = info_nce(torch.zeros(2, 4), torch.tensor([0, 1]))
        >>> found.losses, found.bound, found.ceiling
        (tensor([1.3863, 1.3863]), tensor(0.), tensor(1.3863))
    """
    s, n = candidates(scores, positive, excluded, repeats)
    losses = F.cross_entropy(s, positive, reduction="none")
    estimate = of_losses(losses, n.log(), positive, repeats)
    if more is None:
        return estimate
    positives = torch.cat([s.gather(1, positive[:, None]), more], dim=1)
    several = torch.cat([s, more], dim=1).logsumexp(dim=1) - positives.logsumexp(dim=1)
    return of_losses(several, n.log(), positive, repeats)._replace(bound=estimate.bound)


def debiased_info_nce(
    scores: Float[Tensor, "n m"],
    positive: Int[Tensor, " n"],
    prior: float,
    least: float,
    excluded: Bool[Tensor, "n m"] | None = None,
    repeats: Int[Tensor, " m"] | None = None,
) -> Contrast:
    """InfoNCE with negatives corrected for those that are of the anchor's class by chance.

    Chuang et al. 2020, "Debiased Contrastive Learning", equation 8 with one positive:
    ``g = max((mean_j exp(s_ij) - prior exp(s_ip)) / (1 - prior), exp(least))``, the mean over the N negatives, and the
    loss is ``-log exp(s_ip) / (exp(s_ip) + N g)``. With a prior of 0 it is InfoNCE.

    Args:
        scores, positive, excluded, repeats: as for ``info_nce``.
        prior: probability that a random molecule is of the anchor's class.
        least: the smallest score that there is, -1 / temperature for cosines.
    """
    s, n = candidates(scores, positive, excluded, repeats)
    of_positive = s.gather(1, positive[:, None]).squeeze(1)
    negatives = s.scatter(1, positive[:, None], float("-inf"))
    top = s.amax(dim=1).detach()  # exponentials are taken relative to the largest score
    mean = (negatives - top[:, None]).exp().sum(dim=1) / (n - 1).clamp(min=1e-9)
    g = (mean - prior * (of_positive - top).exp()) / (1 - prior)
    g = torch.maximum(g, (least - top).exp())
    tiny = torch.finfo(s.dtype).tiny  # an anchor without negatives loses nothing
    losses = F.softplus(((n - 1) * g).clamp(min=tiny).log() + top - of_positive)
    return of_losses(losses, n.log(), positive, repeats)


def candidates(
    scores: Float[Tensor, "n m"],
    positive: Int[Tensor, " n"],
    excluded: Bool[Tensor, "n m"] | None = None,
    repeats: Int[Tensor, " m"] | None = None,
) -> tuple[Float[Tensor, "n m"], Float[Tensor, " n"]]:
    """Scores that count each candidate once, in single precision or more, and how many candidates each anchor has.

    Excluded pairs have ``-inf``; of a molecule that comes c times, log c is taken off the scores. Positives stay.

    Raises:
        UsageError: no anchor.
    """
    if not len(scores):
        raise UsageError("InfoNCE contrasts the rows of a batch, and it has none", hint="give two rows or more")
    s, column = scores.to(torch.promote_types(scores.dtype, torch.float32)), positive[:, None]
    weights = torch.ones_like(s) if repeats is None else (1 / repeats.to(s)).expand_as(s).clone()
    if excluded is not None:
        weights = weights.masked_fill(excluded, 0.0)
    weights = weights.scatter(1, column, 1.0)
    return (s if repeats is None and excluded is None else s + weights.log()), weights.sum(dim=1)


def of_losses(
    losses: Float[Tensor, " n"],
    ceilings: Float[Tensor, " n"],
    positive: Int[Tensor, " n"],
    repeats: Int[Tensor, " m"] | None,
) -> Contrast:
    """Losses with their means over molecules; ``ceilings`` is the logarithm of the candidates of each anchor."""
    weights = torch.ones_like(losses) if repeats is None else 1 / repeats[positive].to(losses)
    loss, ceiling = ((values * weights).sum() / weights.sum() for values in (losses, ceilings))
    return Contrast(losses, loss, ceiling - loss, ceiling)

"""Supervised contrastive loss (SupCon): the positives of a row are all rows of its class."""

from __future__ import annotations

from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor


def sup_con(
    scores: Float[Tensor, "n n"],
    labels: Int[Tensor, " n"],
    weights: Float[Tensor, "n n"] | None = None,
    mean: Literal["out", "in"] = "out",
) -> Float[Tensor, " n"]:
    """The loss of each row among the others.

    Khosla et al. 2020, "Supervised Contrastive Learning", equation 2: ``L_out = -1 / |P(i)| sum_{p in P(i)} log(
    exp(s_ip) / sum_{a != i} w_ia exp(s_ia))``, P(i) being the other rows of the class of row i; equation 3 has the
    mean inside, ``L_in = -log(1 / |P(i)| sum_{p in P(i)} exp(s_ip) / sum_{a != i} w_ia exp(s_ia))``, which is never
    more (Jensen) and learns worse. The weights ``w``, 1 in the paper, are those of negatives; a positive has 1.

    Args:
        scores: cosines over the temperature.
        labels: class of each row.
        weights: of each pair, above 0; those of one class are not read.
        mean: ``out`` or ``in`` of the logarithm.

    Returns:
        float [n]; 0 for a row that is the only one of its class.

    Example:
        >>> sup_con(torch.zeros(4, 4), torch.tensor([0, 0, 1, 1]))
        tensor([1.0986, 1.0986, 1.0986, 1.0986])
    """
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    positive: Bool[Tensor, "n n"] = (labels[:, None] == labels[None]) & ~itself
    n = positive.sum(dim=1)
    among = scores if weights is None else torch.where(positive, scores, scores + weights.log())
    share = scores - among.masked_fill(itself, float("-inf")).logsumexp(dim=1, keepdim=True)
    if mean == "out":
        losses = -torch.where(positive, share, 0.0).sum(dim=1) / n.clamp(min=1)
    else:
        losses = n.clamp(min=1).to(share.dtype).log() - share.masked_fill(~positive, float("-inf")).logsumexp(dim=1)
    return torch.where(n > 0, losses, torch.zeros_like(losses))

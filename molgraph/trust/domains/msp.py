"""Domain score: the largest probability of a class, the baseline of scores of logits."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, softmax

from molgraph.base.registry import register
from molgraph.trust.domains.max_logit import LogitScore
from molgraph.trust.logits import Logits


@register(
    "domain",
    "msp",
    summary="the largest probability of a class, which is small where a classifier is unsure",
    paper="Hendrycks and Gimpel 2017, ICLR, arXiv:1610.02136",
)
class MaxProbability(LogitScore):
    """``1 - max_c p(c|x)`` over the classes of all targets.

    Hendrycks and Gimpel 2017. A constant that is added to all logits of a target changes nothing.
    """

    def score(self, x: Logits) -> np.ndarray:
        """0 to 1."""
        sure = [expit(np.abs(f[:, 0])) if f.shape[1] == 1 else softmax(f, axis=1).max(axis=1) for f in x]
        return 1 - np.max(sure, axis=0)

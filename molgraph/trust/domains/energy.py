"""Domain score: the energy of a molecule under a classifier that is read as an energy-based model."""

from __future__ import annotations

from typing import Self

import numpy as np
from scipy.special import logsumexp

from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import register
from molgraph.trust.domains.max_logit import LogitScore
from molgraph.trust.logits import Logits


def energy(x: Logits) -> np.ndarray:
    """float64 [n], ``-sum_t log sum_c exp f_tc``; a target of two classes has the logits 0 and f.

    Grathwohl et al. 2020, equation 7; the sum over targets is that of Wang et al. 2021, NeurIPS, equation 6.

    Example:
        >>> energy([np.array([[0.0]])]).round(3).tolist()
        [-0.693]
    """
    parts = [np.logaddexp(0, f[:, 0]) if f.shape[1] == 1 else logsumexp(f, axis=1) for f in x]
    return -np.sum(parts, axis=0)


@register(
    "domain",
    "energy",
    summary="the energy -log sum exp of a classifier's logits, which is high for unusual molecules",
    paper="Grathwohl et al. 2020, ICLR, arXiv:1912.03263; Liu et al. 2020, NeurIPS, arXiv:2010.03759",
)
class Energy(LogitScore):
    """``E(x) = -log sum_c exp f_c(x)``, summed over targets: ``exp(-E)`` is what the logits say of the density of x.

    Grathwohl et al. 2020; as a score of a plain classifier Liu et al. 2020. The classes' probabilities are
    ``exp(E(x) - E(x, c))`` with ``E(x, c) = -f_c(x)``. The callback ``jem`` trains the head for it.

    Known limits: of two classes only molecules of class 0 have an energy near 0, whether they are usual or not; of
    several classes a method without a network has no energy.
    """

    def fit(self, x: Logits) -> Self:
        """Refuse logits that are log-probabilities, whose energy is 0 everywhere."""
        if any(f.shape[1] > 1 and np.abs(logsumexp(f, axis=1)).max(initial=0) < 1e-9 for f in x):
            words = "energy reads the outputs of a network, and the model gives probabilities, whose energy is 0"
            raise UnsupportedError(words, hint="name a graph model, or another score, as in by=msp")
        return self

    def score(self, x: Logits) -> np.ndarray:
        """The energies."""
        return energy(x)

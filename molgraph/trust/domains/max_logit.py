"""Domain score: the largest logit, which is small for molecules of no known class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

import numpy as np

from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.trust.domains.domain import Domain
from molgraph.trust.logits import Logits


class LogitScore(Domain):
    """The base class of scores of logits, which learn nothing."""

    reads = "logits"

    def fit(self, x: Logits) -> Self:
        """Nothing is learned."""
        return self

    def state(self) -> dict[str, np.ndarray]:
        """No arrays."""
        return {}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> Self:
        """As ``Domain.restore``."""
        return self


@register(
    "domain",
    "max_logit",
    summary="the largest logit of a classifier, which is small for molecules of no known class",
    paper="Vaze et al. 2022, ICLR, arXiv:2110.06207",
    systems=(
        SystemCard(
            "mls",
            left_out="the benchmark of pictures; with several targets of two classes the score is the largest |logit|",
            off="-s params.by=msp",
            beside=("the largest probability", "energy", "Tanimoto distance", "heavy atoms"),
            command="molgraph train dataset:tox21 -m 'domain(dmpnn)' -s params.by=max_logit -o model.mgm",
            modules=("molgraph.trust.with_domain", "molgraph.trust.logits", "molgraph.auxiliary.study.open_set"),
        ),
    ),
)
class MaxLogit(LogitScore):
    """``-max_c f_c(x)`` over the logits f of all classes of all targets; of two classes ``-|f(x)|``.

    Vaze et al. 2022, section 4.3: the length of a molecule's features, which says how usual they are, is in the logits
    and not in the probabilities. ``molgraph study open-set`` says what the score is worth for a model.
    """

    def score(self, x: Logits) -> np.ndarray:
        """The largest logit of each molecule, times -1."""
        return -np.max([np.abs(f[:, 0]) if f.shape[1] == 1 else f.max(axis=1) for f in x], axis=0)

"""Fit one method several times: their mean, and their spread as an uncertainty."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.ranges import Range
from molgraph.base.systems import SystemCard
from molgraph.trust.wrapper import LARGEST, Wrapper, register_wrapper


@register_wrapper(
    "ensemble",
    systems=(SystemCard("deep-ensembles"),),
    tags=("uncertainty",),
    summary="fits of one model from several seeds: their mean, and their spread, which is not calibrated",
    paper="Lakshminarayanan et al. 2017, NeurIPS 30",
)
class Ensemble(Wrapper):
    """Fit one method several times, from seeds derived from one seed.

    Lakshminarayanan, Pritzel & Blundell 2017: the prediction is the members' mean (for classes, of their
    probabilities), and its uncertainty their standard deviation (with n in the denominator). That spread is not
    calibrated: members that see the same rows agree far more closely with each other than with a measurement. Members
    that predict a variance (``head=gaussian``) are a mixture, as in the paper: ``s^2 = mean_i(s_i^2 + mu_i^2) - mu^2``.
    Of the paper is left out adversarial training.

    Args:
        method: a registered method or encoder, such as ``dmpnn``.
        n: number of members.
        seed: members' seeds derive from it.
        params: the members' hyper-parameters.
        threads, store: each member's, where it knows them and ``params`` has none.

    Example:
        >>> Ensemble("dmpnn", n=3, params={"epochs": 5}).members[0].epochs
        5
    """

    name = "ensemble"
    small = MappingProxyType(
        {"method": "dmpnn", "n": 2, "params": {"epochs": 2, "head_width": 8, "batch_size": 16, "d_hidden": 8}}
    )

    def __init__(
        self,
        method: str = "dmpnn",
        n: Annotated[int, Range(1, LARGEST)] = 5,
        seed: int = 0,
        params: Mapping[str, Any] | None = None,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        super().__init__(method, params, seed, threads, store)
        self.n = n

    @property
    def title(self) -> str:
        """How many members of which method."""
        return f"ensemble of {len(self.members)} {self.members[0].title}"

    def combine(self, parts: Sequence[Prediction]) -> Prediction:
        """The members' mean, and the standard deviation of their mixture as ``spread``."""
        packed = {}
        for name, first in parts[0].packed.items():
            if name.removesuffix("_spread") in packed:  # a member's own
                continue
            spreads = [p.packed.get(f"{name}_spread") for p in parts]
            pair = mixture([p.packed[name].values for p in parts], [None if s is None else s.values for s in spreads])
            packed[name], packed[f"{name}_spread"] = (replace(first, values=values) for values in pair)
        mean, spread = mixture([p.value for p in parts], [p.spread for p in parts])
        return replace(parts[0], value=mean, spread=spread, packed=packed, interval=None)


def mixture(values: Sequence[np.ndarray], spreads: Sequence[np.ndarray | None]) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of members alike; one without a spread has none of its own."""
    within = np.mean([0.0 if s is None else np.nan_to_num(s) ** 2 for s in spreads], axis=0)
    between = np.std(values, axis=0)
    return np.mean(values, axis=0), np.hypot(between, np.sqrt(within)) if within.any() else between

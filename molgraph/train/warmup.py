"""Raise the weight of a VAE's divergence while it trains: its decoder learns to read the latent vector first."""

from __future__ import annotations

import math

from molgraph.train.objective import StepState


def linear(state: StepState, beta: float, start: float, end: float) -> float:
    """0 until the share ``start`` of the training is done, then rising to ``beta`` at ``end`` (Bowman et al. 2016).

    Like the other schedule it is ``beta`` where a validation part is judged, so that epochs can be compared.

    Example:
        >>> [linear(StepState(step, 100, 0), 0.5, 0.25, 0.75) for step in (0, 25, 50, 90)]
        [0.0, 0.0, 0.25, 0.5]
    """
    if not state.training or state.progress >= end:
        return beta
    return beta * max(state.progress - start, 0.0) / (end - start)


def sigmoid(state: StepState, beta: float, start: float, slope: float) -> float:
    """``beta / (1 + exp(-slope (t - start)))`` at the share t of the training that is done.

    Gomez-Bombarelli et al. 2018 begin at epoch 29 of 120 with 0.51 an epoch: ``start=29/120, slope=0.51 * 120``.

    Example:
        >>> [round(sigmoid(StepState(step, 120, 0), 1.0, 29 / 120, 0.51 * 120), 3) for step in (0, 29, 60)]
        [0.0, 0.5, 1.0]
    """
    return beta / (1 + math.exp(-max(slope * (state.progress - start), -700.0))) if state.training else beta

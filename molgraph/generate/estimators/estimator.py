"""Define ``Estimator``: a policy-gradient loss of a language model, from log-probabilities and rewards."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from molgraph.base.parts import make_part


class Episodes(NamedTuple):
    """Texts that were drawn and scored, with the log-probability of each token under three models.

    Args:
        log_pi: float [n, t], of the model that is trained, with gradient; 0 behind a text's end, as the others.
        log_mu: float [n, t], of the model at the time when it drew the text.
        log_prior: float [n, t], of the model that the search began with.
        mask: bool [n, t], whether a place has a token or an end.
        reward: float [n], from 0 to 1; of a text that is no molecule 0.
        states: float [n, t, d], the trained model's states from which each token was drawn, without gradient.
    """

    log_pi: Float[Tensor, "n t"]
    log_mu: Float[Tensor, "n t"]
    log_prior: Float[Tensor, "n t"]
    mask: Bool[Tensor, "n t"]
    reward: Float[Tensor, " n"]
    states: Float[Tensor, "n t d"]

    @property
    def total(self) -> Float[Tensor, " n"]:
        """float [n], ``log pi`` of each text, with gradient."""
        return self.log_pi.sum(dim=1)


class Estimator(nn.Module):
    """The base class of estimators: ``(episodes) -> loss``, a scalar that a step of the optimiser lowers.

    A subclass is registered with ``@register("estimator", name)``; its hyper-parameters are keyword arguments. One with
    weights of its own, such as a value of states, makes them in ``begin``; the search trains them beside the model.

    ``passes``: steps that are made of each batch of texts. ``distinct``: texts of a group that are drawn without
    replacement; 0 where texts are drawn one by one. ``late``: whether it weighs texts that an older model drew, so that
    their log-probabilities are kept. ``rate``: the step size of its own weights as a multiple of the
    model's. ``small``: parameters for trials.
    """

    passes: int = 1
    distinct: int = 0
    late: bool = False
    rate: float = 1.0
    small: Mapping[str, Any] = MappingProxyType({})

    def begin(self, d_state: int) -> None:
        """Make weights of its own; ``d_state`` is the width of the model's states."""

    def enough(self, episodes: Episodes) -> bool:
        """Whether the passes over a batch end here; asked before each pass but the first."""
        return False

    @abstractmethod
    def forward(self, episodes: Episodes) -> Tensor:
        """The loss of a batch."""


def make_estimator(name: str) -> Estimator:
    """A registered estimator, such as ``reinforce(baseline=ema)``.

    Raises:
        UsageError: no such estimator, or a value that a setting cannot have.
    """
    estimator: Estimator = make_part("estimator", name)
    return estimator


def leave_one_out(reward: Float[Tensor, " n"]) -> Float[Tensor, " n"]:
    """float [n]: each reward less the mean of the others (Kool et al. 2019, equation 8); one alone is 0.

    Example:
        >>> leave_one_out(torch.tensor([1.0, 2.0, 6.0])).tolist()
        [-3.0, -1.5, 4.5]
    """
    n = len(reward)
    return (reward - reward.mean()) * (n / (n - 1)) if n > 1 else torch.zeros_like(reward)

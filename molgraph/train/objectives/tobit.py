"""Learn measured values beside limits such as >8, by the likelihood of a censored normal (Tobit)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.ranges import NotNegative
from molgraph.base.registry import register
from molgraph.nn.censored_normal import censored_normal_loss
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs


@register(
    "objective",
    "tobit",
    summary="measured values beside limits such as >8 (Tobit); --qualifiers learn takes it",
    paper="Tobin 1958, Econometrica 26; Amemiya 1984, J. Econometrics 24",
    command="molgraph train assay.csv -t pIC50 --qualifiers learn",
)
class Tobit(Supervised):
    """The losses of the head, and for numbers the negative log likelihood of a censored normal.

    A value counts ``z^2 / 2 + log sigma``, a limit ``-log Phi``: a prediction beyond it costs next to nothing, one that
    falls short costs about its square. ``sigma`` is learnt, one a target; a head that predicts a variance
    (``gaussian``) gives its own for each row. Targets of other kinds have their usual losses.

    Args:
        outputs: which output columns belong to which target.
        penalties: the weights of the network's penalties by name; 1 if not given.
    """

    learns_limits = True

    def __init__(self, outputs: Outputs, *, penalties: Mapping[str, NotNegative] | None = None) -> None:
        super().__init__(outputs, penalties=penalties)
        self.places = [(j, start) for j, (kind, start, _) in enumerate(self.kinds) if kind == "regression"]
        self.log_sigma = nn.Parameter(torch.zeros(len(self.places)))
        self.unused_parameters = True  # with a head that has its own variance

    def losses(self, network: Any, raw: Tensor, batch: Any) -> Tensor:
        """The loss of each label, [n, t]; of a missing one any finite number."""
        losses = super().losses(network, raw, batch)
        if not self.places:
            return losses
        rows, columns = [j for j, _ in self.places], [start for _, start in self.places]
        values, spread = network.head.values(raw)
        low = high = batch.y[:, rows]
        if batch.limits is not None:
            ends = batch.limits[:, rows]
            known = torch.isnan(ends[..., 0])
            low, high = torch.where(known, low, ends[..., 0]), torch.where(known, high, ends[..., 1])
        mean = values[:, columns].float()
        log_sigma = self.log_sigma.expand_as(mean) if spread is None else spread[:, columns].float().log()
        return losses.index_copy(
            1, torch.tensor(rows, device=raw.device), censored_normal_loss(mean, log_sigma, low, high)
        )

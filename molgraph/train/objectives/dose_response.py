"""Learn dose-response curves from their raw points, through the Hill equation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from molgraph.base.errors import MissingOptionError
from molgraph.base.ranges import NotNegative
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.curves import TARGETS
from molgraph.nn.dose_response import hill_curve
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.outputs import Outputs


@register(
    "objective",
    "dose_response",
    summary="EC50, slope, top and bottom of dose-response curves from their raw points",
    paper="Engel et al. 2020, ICLR (DDSP); Hill 1910, J. Physiol. 40",
    systems=(
        SystemCard(
            "ddsp",
            left_out="the synthesiser, the reverb and the spectral loss of sound: the known law is the Hill equation",
            off="--objective supervised",
            beside=("scipy's fits, then regression", "the fits of whole curves alone, then regression"),
            modules=("molgraph.nn.dose_response", "molgraph.data.curves", "molgraph.data.curve_fit"),
        ),
    ),
    command="molgraph train curves.csv -t response:curve --objective dose_response",
)
class DoseResponse(Objective):
    """``sum_p w_p (response_p - hill(concentration_p; EC50, slope, top, bottom))^2 / s^2`` over the points of a batch.

    A known law stands between the network and the loss, as in Engel et al. 2020 ("DDSP: Differentiable Digital Signal
    Processing"), so that curves without a plateau, and single points, teach what they can: no EC50 is fitted to a
    molecule by itself first. A response that is a limit, such as >80, costs nothing where the curve meets it. ``s`` is
    the mean distance from bottom to top of the fitted curves.

    The network predicts the four parameters, whose scale is that of the curves that determine them
    (``data.curve_fit``); those are what scores and intervals are computed from.

    Args:
        outputs: the four targets of curves.
        penalties: the weights of the network's penalties by name; 1 if not given.
    """

    learns_points = True
    learns_limits = True

    def __init__(self, outputs: Outputs, *, penalties: Mapping[str, NotNegative] | None = None) -> None:
        super().__init__()
        self.whole = [target.name for target in outputs.targets] == [target.name for target in TARGETS]
        self.penalties = penalties or {}
        self.register_buffer("mean", torch.tensor(outputs.mean, dtype=torch.float32), persistent=False)
        self.register_buffer("scale", torch.tensor(outputs.scale, dtype=torch.float32), persistent=False)
        top, bottom = outputs.mean[[-2, -1]] if self.whole else (0.0, 0.0)
        self.window = max(abs(float(top - bottom)), float(outputs.scale[-2:].max(initial=0.0)))

    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        """Sum of the squared errors of a batch's points, as shares of the distance from bottom to top."""
        raw, penalties = network(batch)
        if state.training:
            check_penalties(self.penalties, penalties)
        if batch.points is None or not self.whole:
            words = "dose_response learns curves, and the table has none"
            raise MissingOptionError(words, hint="name the column of responses: --target response:curve")
        errors = self.errors(network.head.values(raw)[0].float(), batch.points, batch.point_row)
        total, count = (errors.square() * batch.points[:, 3]).sum(), int((batch.points[:, 3] > 0).sum())
        return Loss(total, count).with_penalties(penalties, self.penalties)

    def errors(self, values: Tensor, points: Tensor, row: Tensor) -> Tensor:
        """float [p]: how far each point's response lies from its curve, in distances from bottom to top.

        Args:
            values: float [n, 4], scaled parameters of the rows.
            points: float [p, 4]: log10 concentration, lowest and highest response, weight.
            row: int64 [p], the row of each point.
        """
        parameters = values * self.scale.to(values) + self.mean.to(values)  # type: ignore[operator]
        curve = hill_curve(points[:, 0], parameters[row])
        return (curve - torch.clamp(curve, points[:, 1], points[:, 2])) / self.window

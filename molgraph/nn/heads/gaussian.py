"""Predict a mean and a variance of each number, by its Gaussian likelihood."""

from __future__ import annotations

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.registry import register
from molgraph.base.table import Target
from molgraph.nn.head import Head

LEAST = 1e-6  # variance, as in the paper


@register(
    "head",
    "gaussian",
    summary="a mean and a variance of each number; with an ensemble, deep ensembles as in their paper",
    paper="Nix and Weigend 1994, IEEE ICNN; Lakshminarayanan et al. 2017, NeurIPS 30",
)
class GaussianHead(Head):
    """``0.5 (log s^2 + (y - mu)^2 / s^2)`` with ``s^2 = softplus(raw) + 1e-6``, on the scaled target.

    Nix and Weigend 1994; Lakshminarayanan et al. 2017, equation 1. It is the noise of labels like a row's, as far as
    the training part shows it: predictions have it as their spread. Targets of other kinds have their usual losses,
    and no spread.
    """

    @classmethod
    def width(cls, targets: Sequence[Target]) -> int:
        """One more for each number."""
        return super().width(targets) + sum(target.kind == "regression" for target in targets)

    def losses(self, raw: Float[Tensor, "n width"], y: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """The negative log likelihood of numbers, without its constant; the losses of other kinds."""
        losses = super().losses(raw, y).clone()
        places = [j for j, (kind, _, _) in enumerate(self.columns) if kind == "regression"]
        mean = raw[:, self._numbers].float()
        losses[:, places] = F.gaussian_nll_loss(mean, y[:, places], self._variance(raw), reduction="none", eps=LEAST)
        return losses

    def values(
        self, raw: Float[Tensor, "n width"]
    ) -> tuple[Float[Tensor, "n {self.d_out}"], Float[Tensor, "n {self.d_out}"] | None]:
        """Means, and the square roots of the variances."""
        value, _ = super().values(raw)
        spread = value.new_full(value.shape, float("nan"))
        spread[:, self._numbers] = self._variance(raw).sqrt().to(value.dtype)
        return value, spread if self._numbers else None

    @property
    def _numbers(self) -> list[int]:
        """Columns of numbers."""
        return [start for kind, start, _ in self.columns if kind == "regression"]

    def _variance(self, raw: Tensor) -> Tensor:
        return F.softplus(raw[:, self.d_out :].float()) + LEAST

"""Whiten the states of a batch, and the squared distance of whitened views (W-MSE), a loss without negatives."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import ShapeError

RIDGE = 1e-7  # added to the variances, as a share of their mean


class Whitening(nn.Module):
    """Rows with mean 0 and the identity for covariance, by the Cholesky factor of their covariance.

    Ermolov et al. 2021, "Whitening for Self-Supervised Representation Learning": ``W (x - mean)`` with
    ``W^T W = Cov^-1``, taken of each batch in training, and then of running means, as batch norm has them.

    Args:
        d: width of the rows.
        momentum: share of a batch in the running means.
    """

    mean: Float[Tensor, " d"]
    covariance: Float[Tensor, "d d"]

    def __init__(self, d: int, momentum: float = 0.1) -> None:
        super().__init__()
        self.d, self.momentum = d, momentum
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("covariance", torch.eye(d))

    def forward(self, x: Float[Tensor, "n {self.d}"]) -> Float[Tensor, "n {self.d}"]:
        """Float32 or float64, computed in double precision.

        Raises:
            ShapeError: a batch of no more rows than columns, in training.
        """
        dtype, x = torch.promote_types(x.dtype, torch.float32), x.double()
        with torch.autocast(x.device.type, enabled=False):
            mean, covariance = self._of_batch(x) if self.training else (self.mean.to(x), self.covariance.to(x))
            size = covariance.diagonal().mean().detach().clamp(min=1e-12)
            factor = torch.linalg.cholesky(
                covariance + RIDGE * size * torch.eye(self.d, dtype=x.dtype, device=x.device)
            )
            return torch.linalg.solve_triangular(factor, (x - mean).T, upper=False).T.to(dtype)

    def _of_batch(self, x: Float[Tensor, "n d"]) -> tuple[Float[Tensor, " d"], Float[Tensor, "d d"]]:
        n, d = x.shape
        if n <= d:
            words = f"{n} rows of {d} numbers cannot be whitened, which takes more rows than numbers"
            raise ShapeError(words, hint="give larger batches, or a smaller width")
        mean = x.mean(dim=0)
        covariance = (x - mean).T @ (x - mean) / (n - 1)
        with torch.no_grad():
            self.mean.lerp_(mean.to(self.mean), self.momentum)
            self.covariance.lerp_(covariance.to(self.covariance), self.momentum)
        return mean, covariance


def whitening_mse(whitened: Float[Tensor, "m d"]) -> Float[Tensor, " m"]:
    """W-MSE of each of 2 n whitened rows, whose other view is n rows on: the squared distance at length 1.

    Ermolov and Sebe 2020, "Latent World Models For Intrinsically Motivated Exploration": ``2 - 2 cos(v_a, v_b)``. What
    is all alike has no whitening, so that states cannot collapse.
    """
    v = F.normalize(whitened, dim=1)
    return 2 - 2 * (v * v.roll(len(v) // 2, 0)).sum(dim=1)

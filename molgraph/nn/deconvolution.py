"""Whiten what a layer reads by running statistics: mean 0, and the identity for covariance (network deconvolution)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class Deconvolution(nn.Module):
    """``(x - mean) D`` with ``D = (Cov + eps I)^(-1/2)``, by groups of columns.

    Ye et al. 2020, "Network Deconvolution", algorithm 1: a linear layer behind it has the identity for the Hessian of a
    squared error, so that a gradient step of 1 solves least squares, however alike the columns are. Mean and covariance
    are running ones, with the batch in them: 64 rows do not tell the covariance of 200 columns. They are constant in
    the gradient, of which descriptors need none.

    Args:
        d: width of the rows.
        group: columns that are whitened together; the covariance of others is not seen.
        n_iter: Newton-Schulz iterations; 5 in the paper, 15 for columns that are nearly multiples of each other.
        eps: added to the variances, as a share of their mean.
        momentum: share of a batch in the running statistics, once there were as many batches.
    """

    mean: Float[Tensor, " d"]
    covariance: Float[Tensor, "groups w w"]
    seen: Float[Tensor, ""]

    def __init__(self, d: int, group: int = 128, n_iter: int = 5, eps: float = 1e-4, momentum: float = 0.1) -> None:
        super().__init__()
        self.width, self.n_iter, self.eps, self.momentum = min(d, group), n_iter, eps, momentum
        self.pad = -d % self.width
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("covariance", torch.eye(self.width).repeat((d + self.pad) // self.width, 1, 1))
        self.register_buffer("seen", torch.zeros(()))

    def forward(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]; in training the statistics take the batch in."""
        if self.training and len(x) > 1:
            self._take(x.detach().to(self.mean.dtype))
        columns = self._grouped(x - self.mean)
        # the columns that fill the last group have no variance: the identity keeps them 0
        eye = torch.eye(self.width, dtype=columns.dtype, device=columns.device)
        size = self.covariance.diagonal(dim1=1, dim2=2).mean(1).clamp(min=1e-12)[:, None, None]
        root = inverse_root(self.covariance + self.eps * size * eye, self.n_iter)
        out = torch.bmm(columns.transpose(0, 1), root).transpose(0, 1).flatten(1)
        return out[:, : x.shape[1]]

    def _grouped(self, x: Float[Tensor, "n d"]) -> Float[Tensor, "n groups w"]:
        return F.pad(x, (0, self.pad)).unflatten(1, (-1, self.width))

    def _take(self, x: Float[Tensor, "n d"]) -> None:
        self.seen += 1
        share = max(self.momentum, 1 / float(self.seen))
        self.mean.lerp_(x.mean(0), share)
        centred = self._grouped(x - x.mean(0)).transpose(0, 1)
        self.covariance.lerp_(torch.bmm(centred.transpose(1, 2), centred) / len(x), share)


def inverse_root(a: Float[Tensor, "g w w"], n_iter: int) -> Float[Tensor, "g w w"]:
    """``A^(-1/2)`` of symmetric positive matrices by coupled Newton-Schulz iterations.

    Ye et al. 2020, section 3.4, after Higham 2008, equation 6.35: from ``Y = A / |A|`` and ``Z = I``, ``T = (3 I -
    Z Y) / 2``, ``Y' = Y T``, ``Z' = T Z``. An eigenvalue of ``|A| / c`` takes about ``log(c) / log(2.25)`` of them.

    Example:
        >>> inverse_root(torch.diag(torch.tensor([4.0, 0.25]))[None], 20)[0].diagonal().tolist()
        [0.5, 2.0]
    """
    norm = a.flatten(1).norm(dim=1)[:, None, None].clamp(min=1e-30)
    eye = torch.eye(a.shape[1], dtype=a.dtype, device=a.device)
    y, z = a / norm, eye.expand_as(a)
    for _ in range(n_iter):
        t = (3 * eye - z @ y) / 2
        y, z = y @ t, t @ z
    return z * norm.rsqrt()

"""Estimate the gradient of mutual information, by scores of samples from a spectral Stein estimator (SSGE, MIGE)."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn


def stein_score(x: Float[Tensor, "m d"], share: float = 0.99) -> Float[Tensor, "m d"]:
    """The score of a density, grad log q, at its samples.

    Shi, Sun and Zhu 2018, "A Spectral Approach to Gradient Estimation for Implicit Distributions", equations 12 to 15:
    ``g(x) = sum_j beta_j psi_j(x)`` with ``beta_j = -1/m sum_n grad psi_j(x_n)``, ``psi_j`` being the eigenfunctions of
    an RBF kernel by Nystrom's formula, ``psi_j(x) = sqrt(m) / lambda_j sum_n u_jn k(x, x_n)``. The kernel's width is
    the median distance.

    Args:
        x: samples.
        share: of the sum of the kernel's eigenvalues, by how many of the largest ones it is reached.

    Returns:
        float [m, d]; no gradient flows through it. 0 where all samples are equal.
    """
    with torch.no_grad(), torch.autocast(x.device.type, enabled=False):
        x = x.to(torch.promote_types(x.dtype, torch.float32))
        distance = torch.cdist(x, x)
        width = distance.median().clamp(min=torch.finfo(x.dtype).tiny ** 0.25)
        kernel = torch.exp(-0.5 * (distance / width).square())
        values, vectors = torch.linalg.eigh(kernel)
        values, vectors = values.flip(0).clamp(min=0), vectors.flip(1)
        n = int((values.cumsum(0) < share * values.sum()).sum()) + 1
        values, vectors = values[:n], vectors[:, :n]
        pull = kernel @ x - kernel.sum(dim=1, keepdim=True) * x  # sum_n k(x_n, x_m) (x_n - x_m)
        return vectors @ ((vectors.T @ pull) / values[:, None]) / width**2


def mige_loss(x: Float[Tensor, "m d_x"], z: Float[Tensor, "m d_z"], share: float = 0.99) -> Float[Tensor, ""]:
    """A number whose gradient is that of minus the mutual information of x and z.

    Wen et al. 2020, "Mutual Information Gradient Estimation for Representation Learning", equations 7 to 10: ``I = H(x)
    + H(z) - H(x, z)``, and the gradient of an entropy is ``-E[grad log q(z) dz]`` where samples are functions of
    parameters. The value says nothing: by Stein's identity it is near 0.
    """
    joint = torch.cat([x, z], dim=1)
    of_x, of_z, of_both = (stein_score(sample.detach(), share) for sample in (x, z, joint))
    return (of_x * x).sum(dim=1).mean() + (of_z * z).sum(dim=1).mean() - (of_both * joint).sum(dim=1).mean()


def gaussian_information(x: Float[Tensor, "m d_x"], z: Float[Tensor, "m d_z"]) -> Float[Tensor, ""]:
    """Mutual information in nats of normal variables with the covariances of the samples, a thousandth on the diagonal.

    Example:
        >>> x = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]])
        >>> gaussian_information(x, torch.tensor([[1.0], [1.0], [-1.0], [-1.0]]))
        tensor(0.)
    """
    c = torch.cat([x, z], dim=1).T.cov()
    c, d = c + 1e-3 * torch.eye(len(c), dtype=c.dtype, device=c.device), x.shape[1]
    return 0.5 * (c[:d, :d].logdet() + c[d:, d:].logdet() - c.logdet())


class Mige(nn.Module):
    """Minus the mutual information of one random row of each graph with the graph's vector, to be minimised.

    Both are brought to ``d`` dimensions by fixed random matrices, since a kernel tells little in many, and divided by
    their spread in the batch. The gradient is that of ``mige_loss``; the value is ``-gaussian_information``.

    Args:
        d_local, d_global: widths of the states of rows and of graphs.
        d: dimensions that are left.
    """

    of_local: Float[Tensor, "d_local d"]
    of_global: Float[Tensor, "d_global d"]

    def __init__(self, d_local: int, d_global: int, d: int = 16) -> None:
        super().__init__()
        self.register_buffer("of_local", torch.randn(d_local, d) / d_local**0.5)
        self.register_buffer("of_global", torch.randn(d_global, d) / d_global**0.5)

    def forward(self, local: Float[Tensor, "g d_local"], global_: Float[Tensor, "g d_global"]) -> Float[Tensor, ""]:
        """Of a row of each graph and the graphs' vectors, in the same order."""
        x, z = local.float() @ self.of_local, global_.float() @ self.of_global
        x, z = (sample / sample.std(dim=0).mean().clamp(min=1e-6) for sample in (x, z))
        loss = mige_loss(x, z)
        return loss - loss.detach() - gaussian_information(x, z).detach()

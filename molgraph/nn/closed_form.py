"""Compute linear layers in closed form, differentiable (prototypes, ridge), and the axes in which classes differ."""

from __future__ import annotations

from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

Linear: TypeAlias = tuple[Float[Tensor, "k d"], Float[Tensor, " k"]]  # weight and bias of a linear layer
LEAST = 1e-8  # of a spread, where all rows are one
KEPT = 0.99  # of the sums of covariances, when those of another task are added


def prototype_head(
    h: Float[Tensor, "n d"], one_hot: Float[Tensor, "n k"], mahalanobis: float = 0.0, *, spread: bool = True
) -> Linear:
    """The linear layer whose outputs are negative squared distances from the means of classes, up to a constant.

    Snell et al. 2017, "Prototypical Networks for Few-shot Learning", equation 8: ``-|f - c_k|^2 = 2 c_k f - |c_k|^2 -
    |f|^2``. With ``mahalanobis`` distances are by the inverse of ``(1 - m) s I + m S``, S being the covariance within
    classes, which all share, and s its mean variance (Stanley et al. 2021 shrink each class's own).

    Args:
        h: states of the support.
        one_hot: their classes; a row of zeros is left out.
        mahalanobis: m, from 0, Euclidean distances, to 1.
        spread: whether distances are divided by their mean from the mean of all rows, which makes them free of the
            states' scale; the paper learns the scale with the encoder.

    Returns:
        Weight and bias; a class without rows has zeros.
    """
    counts = one_hot.sum(dim=0)
    means = one_hot.T @ h / counts.clamp(min=1)[:, None]
    known = one_hot.sum(dim=1, keepdim=True)
    rows = known.sum().clamp(min=1)
    centred = (h - (h * known).sum(dim=0) / rows) * known
    weight = means
    if mahalanobis:
        within = (h - one_hot @ means) * known
        covariance = within.T @ within / rows
        size = covariance.diagonal().mean() + LEAST
        eye = torch.eye(h.shape[1], dtype=h.dtype, device=h.device)
        metric = (1 - mahalanobis) * eye + mahalanobis * covariance / size
        solved = torch.linalg.solve(metric, torch.cat([means, centred]).T).T
        weight, other = solved[: len(means)], solved[len(means) :]
    else:
        other = centred
    scale = (centred * other).sum() / rows + LEAST if spread else 1.0
    some = (counts > 0).to(h.dtype)
    return 2 * weight * some[:, None] / scale, -(weight * means).sum(dim=1) * some / scale


def ridge_head(h: Float[Tensor, "n d"], y: Float[Tensor, "n k"], penalty: float | Float[Tensor, ""]) -> Linear:
    """Ridge regression with an intercept that is not penalised, by the smaller of its two systems of equations.

    Bertinetto et al. 2019, "Meta-learning with differentiable closed-form solvers", equations 4 to 6.

    Args:
        h: states.
        y: values.
        penalty: on the squared weights, beside the sum of squared errors.
    """
    x, mean = h - h.mean(dim=0), y.mean(dim=0)
    n, d = x.shape
    if n < d:
        gram = x @ x.T + penalty * torch.eye(n, dtype=x.dtype, device=x.device)
        weight = (x.T @ torch.linalg.solve(gram, y - mean)).T
    else:
        gram = x.T @ x + penalty * torch.eye(d, dtype=x.dtype, device=x.device)
        weight = torch.linalg.solve(gram, x.T @ (y - mean)).T
    return weight, mean - weight @ h.mean(dim=0)


class ClassSpread(nn.Module):
    """Covariance of class means and covariance within classes, over tasks, and the axes in which classes differ most.

    Cao et al. 2020, "A Theoretical Analysis of the Number of Shots in Few-Shot Learning", section 4: the more a state
    varies within classes, the more shots a prototype needs. The embedding space transformation projects states on the
    leading eigenvectors of ``Sigma_mu - rho Sigma_s``, between the class means and within classes.

    Args:
        d: width of the states.
    """

    between: Float[Tensor, "d d"]
    within: Float[Tensor, "d d"]

    def __init__(self, d: int) -> None:
        super().__init__()
        self.register_buffer("between", torch.zeros(d, d))
        self.register_buffer("within", torch.zeros(d, d))

    @torch.no_grad()
    def add(self, h: Float[Tensor, "n d"], one_hot: Float[Tensor, "n k"]) -> None:
        """Add a task, whose classes of two rows or more count; those of earlier tasks fade."""
        counts = one_hot.sum(dim=0)
        one_hot, counts = one_hot[:, counts > 1], counts[counts > 1]
        if len(counts) < 2:
            return
        means = one_hot.T @ h / counts[:, None]
        rest = (h - one_hot @ means) * (one_hot / (counts - 1).sqrt()).sum(dim=1, keepdim=True)
        means = means - means.mean(dim=0)
        for total, new in (
            (self.between, means.T @ means / (len(counts) - 1)),
            (self.within, rest.T @ rest / len(counts)),
        ):
            total.mul_(KEPT).add_(new)

    def axes(self, n: int, rho: float) -> Float[Tensor, "d n"]:
        """The n leading eigenvectors of the difference."""
        return torch.linalg.eigh(self.between - rho * self.within).eigenvectors[:, -n:]

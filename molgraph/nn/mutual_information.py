"""Estimate the mutual information of node and graph states by the Jensen-Shannon bound."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

from molgraph.base.errors import UsageError
from molgraph.nn.perceptron import Perceptron

BLOCK = 1 << 18  # scores that are held at once: a megabyte in single precision


class JensenShannon(nn.Module):
    """Jensen-Shannon bound with a learned score of a row and a graph.

    Sun et al. 2020, "InfoGraph", equation 4: ``T(h_u, H) = phi(h_u) . psi(H)``, where ``phi`` and ``psi`` are
    perceptrons of three linear layers, each followed by a ReLU, beside a linear shortcut.

    Args:
        d_local: width of the rows' states.
        d_global: width of the graphs' states.
        d: width of ``phi`` and ``psi``.
    """

    def __init__(self, d_local: int, d_global: int, d: int) -> None:
        super().__init__()
        self.phi, self.psi = _Projection(d_local, d), _Projection(d_global, d)

    def forward(
        self, local: Float[Tensor, "n d_local"], global_: Float[Tensor, "g d_global"], graph_of: Int[Tensor, " n"]
    ) -> Float[Tensor, " g"]:
        """The loss of each graph, as ``jsd_local_global`` has it."""
        return jsd_local_global(self.phi(local), self.psi(global_), graph_of)


class _Projection(nn.Module):
    def __init__(self, d_in: int, d: int) -> None:
        super().__init__()
        self.layers, self.shortcut = Perceptron(d_in, d, d, n_layers=3), nn.Linear(d_in, d)

    def forward(self, x: Float[Tensor, "n d_in"]) -> Float[Tensor, "n d"]:
        return self.layers(x).relu() + self.shortcut(x)


def jsd_local_global(
    local: Float[Tensor, "n d"], global_: Float[Tensor, "g d"], graph_of: Int[Tensor, " n"], *, block: int = BLOCK
) -> Float[Tensor, " g"]:
    """Negative Jensen-Shannon bound on the mutual information of each graph's rows with the graph.

    Sun et al. 2020, "InfoGraph", equations 3 and 4, with ``T_uk = local_u . global_k`` and the other graphs of the
    batch as negatives: the loss of graph ``i`` is the mean over its rows ``u`` of
    ``softplus(-T_ui) + sum_{k != i} softplus(T_uk) / (g - 1)``.

    Scores are computed by blocks of rows, again in the backward pass, so that memory does not grow as rows x graphs.

    Args:
        local: states of the rows.
        global_: states of the graphs, of the same width.
        graph_of: the graph of each row.
        block: scores that are held at once, but for those of one row, which are held together.

    Returns:
        float32 or float64: the loss of each graph, 2 log 2 where all scores are 0; 0 for a graph without rows.

    Raises:
        UsageError: fewer than two graphs, which leave no negatives.

    Example:
        >>> jsd_local_global(torch.zeros(3, 4), torch.zeros(2, 4), torch.tensor([0, 0, 1]))
        tensor([1.3863, 1.3863])
    """
    g = len(global_)
    if g < 2:
        raise UsageError(
            f"mutual information of rows and graphs is learned by contrast with other graphs, and the batch has {g}",
            hint="give two graphs or more in each batch",
        )
    dtype = torch.promote_types(local.dtype, torch.float32)
    with torch.autocast(local.device.type, enabled=False):
        local, global_ = local.to(dtype), global_.to(dtype)
        losses = _RowLosses.apply(local, global_, graph_of, max(block // g, 1))
        counts = torch.bincount(graph_of, minlength=g).clamp(min=1)
        return losses.new_zeros(g).index_add(0, graph_of, losses) / counts


class _RowLosses(torch.autograd.Function):
    """The loss of each row, ``size`` rows at a time; the backward pass computes their scores again."""

    @staticmethod
    def forward(
        local: Float[Tensor, "n d"], global_: Float[Tensor, "g d"], own: Int[Tensor, " n"], size: int
    ) -> Float[Tensor, " n"]:
        losses = local.new_empty(len(local))
        for start in range(0, len(local), size):
            rows = slice(start, start + size)
            scores, column = local[rows] @ global_.T, own[rows, None]
            losses[rows] = F.softplus(-scores.gather(1, column)[:, 0])
            losses[rows] += F.softplus(scores).scatter_(1, column, 0.0).sum(dim=1) / (len(global_) - 1)
        return losses

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        *tensors, ctx.size = inputs
        ctx.save_for_backward(*tensors)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Float[Tensor, " n"]) -> tuple[Tensor, Tensor, None, None]:
        local, global_, graph_of = ctx.saved_tensors
        of_local, of_global = torch.empty_like(local), torch.zeros_like(global_)
        for start in range(0, len(local), ctx.size):
            rows = slice(start, start + ctx.size)
            scores, column = local[rows] @ global_.T, graph_of[rows, None]
            positive = -scores.gather(1, column).neg_().sigmoid_()  # the derivative of softplus(-t)
            slope = scores.sigmoid_().div_(len(global_) - 1).scatter_(1, column, positive).mul_(grad[rows, None])
            of_local[rows] = slope @ global_
            of_global.addmm_(slope.T, local[rows])
        return of_local, of_global, None, None

"""Audit attention: whether weights agree with importance, and whether quite other weights give the same prediction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

import numpy as np
import torch
from scipy.stats import kendalltau
from torch import Tensor

from molgraph.base.seeds import generator
from molgraph.nn.segment import softmax_by_graph

PERMUTED, STEPS, STARTS, RATE = 20, 60, 3, 0.3  # permutations; steps, starts and rate of the search for other weights
TOP = 3  # atoms of the largest weights

Answers: TypeAlias = Callable[[Tensor], Tensor]
"""Weights float [atoms, channels] to float [n, k]: probabilities of k classes, or one number in deviations."""


class Audit(NamedTuple):
    """The audit of a molecule.

    Args:
        tau_gradient, tau_leave_one_out: Kendall's tau of the weights with the size of gradients, and with the change of
            the answer without each atom; NaN where either is constant.
        tau_reference: that of the gradients with the changes, which is what a good agreement is on this model.
        permuted: the median distance of the answer under permuted weights from the model's own.
        jsd: the Jensen-Shannon divergence of the most different weights that were found with an answer within ``eps``.
        distance: of that answer.
        moved: the part of the weights of the three largest atoms that those weights take away.
    """

    tau_gradient: float
    tau_leave_one_out: float
    tau_reference: float
    permuted: float
    jsd: float
    distance: float
    moved: float


def divergence(a: Tensor, b: Tensor, graph_of: Tensor, n: int) -> Tensor:
    """float [n]: the Jensen-Shannon divergence of two weightings of each molecule's atoms, mean over channels.

    Natural logarithms: 0 to ln 2.

    Example:
        >>> one, other = torch.tensor([[1.0], [0.0]]), torch.tensor([[0.0], [1.0]])
        >>> round(divergence(one, other, torch.zeros(2, dtype=torch.int64), 1).item(), 6)
        0.693147
    """
    middle = (a + b) / 2
    terms = (_entropy(middle) - (_entropy(a) + _entropy(b)) / 2).mean(dim=1)
    return terms.new_zeros(n).index_add(0, graph_of, terms).clamp(min=0)


def _entropy(a: Tensor) -> Tensor:
    return -(a * a.clamp(min=1e-12).log())


def distances(a: Tensor, b: Tensor) -> Tensor:
    """float [n]: the total variation distance of probabilities [n, k], or the difference of one number.

    Example:
        >>> distances(torch.tensor([[0.5, 0.5]]), torch.tensor([[0.75, 0.25]])).item()
        0.25
    """
    return (a - b).abs().sum(dim=1) / (2 if a.shape[1] > 1 else 1)


def audit(
    answers: Answers,
    weights: Tensor,
    graph_of: Tensor,
    gradients: np.ndarray,
    changes: np.ndarray,
    *,
    eps: float = 0.01,
    seed: int = 0,
) -> list[Audit]:
    """Audit the weights of molecules.

    Jain and Wallace 2019, "Attention is not Explanation", sections 4.1 (agreement with importance) and 4.2 (permuted
    and adversarial weights, equations 1 to 3: the largest divergence from the model's own weights of which the answer
    is within ``eps``). Wiegreffe and Pinter 2019 object that no training need lead to such weights, and a state of an
    atom holds what it heard of others.

    Args:
        answers: of the model for any weights, differentiable.
        weights: float [atoms, channels], the model's own; each channel sums to 1 in each molecule.
        graph_of: int64 [atoms].
        gradients, changes: float [atoms], importance of atoms, larger for more.
        eps: the distance that an answer may have.
        seed: of the permutations and the starts.
    """
    n, attention = int(graph_of.max()) + 1 if len(graph_of) else 0, weights.detach()
    with torch.no_grad():
        plain = answers(attention)
    rng, graph = generator(seed, "attention"), graph_of.numpy()
    places = [np.flatnonzero(graph == i) for i in range(n)]
    permuted = [distances(answers(attention[_shuffled(places, rng)]).detach(), plain) for _ in range(PERMUTED)]
    best, jsd, far = _farthest(answers, attention, graph_of, plain, eps, rng)
    mean, other = attention.mean(dim=1).numpy(), best.mean(dim=1).numpy()
    audits = []
    for i, rows in enumerate(places):
        taus = [_tau(a[rows], b[rows]) for a, b in ((mean, gradients), (mean, changes), (gradients, changes))]
        top = rows[np.argsort(-mean[rows], kind="stable")[:TOP]]
        middle = float(torch.stack(permuted)[:, i].median())
        moved = float((mean[top] - other[top]).sum())
        audits.append(Audit(taus[0], taus[1], taus[2], middle, float(jsd[i]), float(far[i]), moved))
    return audits


def _shuffled(places: Sequence[np.ndarray], rng: np.random.Generator) -> Tensor:
    """int64 [atoms]: the atoms of each molecule in another order."""
    order = np.concatenate([rng.permutation(rows) for rows in places] or [np.zeros(0, dtype=np.int64)])
    return torch.from_numpy(order)


def _tau(a: np.ndarray, b: np.ndarray) -> float:
    return float(kendalltau(a, b).statistic) if len(a) > 1 and np.ptp(a) > 0 and np.ptp(b) > 0 else float("nan")


def _farthest(
    answers: Answers, own: Tensor, graph_of: Tensor, plain: Tensor, eps: float, rng: np.random.Generator
) -> tuple[Tensor, Tensor, Tensor]:
    """For each molecule the most different weights that were met with an answer within ``eps``: they, JSD, distance."""
    n = len(plain)
    best, jsd, far = own.clone(), torch.zeros(n), torch.zeros(n)
    for _ in range(STARTS):
        logits = torch.from_numpy(rng.normal(size=tuple(own.shape))).to(own.dtype).requires_grad_()
        adam = torch.optim.Adam([logits], RATE)
        for _ in range(STEPS):
            with torch.enable_grad():
                candidate = softmax_by_graph(logits, graph_of, n)
                spread, off = divergence(own, candidate, graph_of, n), distances(answers(candidate), plain)
                loss = ((off - eps / 2).clamp(min=0) / eps - spread).sum()
                (logits.grad,) = torch.autograd.grad(loss, [logits])
            better = (off <= eps) & (spread > jsd)
            rows = better[graph_of]
            best[rows] = candidate.detach()[rows]
            jsd, far = torch.where(better, spread, jsd).detach(), torch.where(better, off, far).detach()
            adam.step()
    return best, jsd, far

"""Adversarial perturbation of atoms' features within a box, by steps along the sign of a gradient (FGSM, PGD)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from molgraph.data.batch import GraphBatch

Loss = Callable[[GraphBatch], Tensor]


def with_features(graphs: GraphBatch, rows: Tensor) -> GraphBatch:
    """The batch with float [n_atoms, width] for the features of its atoms, a row of the table for each atom."""
    return graphs.with_level("atom", table=rows, code=torch.arange(len(rows), device=rows.device))


def attack(loss: Loss, graphs: GraphBatch, steps: int, eps: float) -> Tensor:
    """The change of each atom's features that raises a loss.

    Madry et al. 2018, "Towards Deep Learning Models Resistant to Adversarial Attacks", equation 2, from no change:
    ``delta <- clip(delta + rate sign(grad loss(x + delta)), -eps, eps)``, ``steps`` times; the rate is ``eps`` for one
    step (Goodfellow et al. 2015) and at most ``2 eps / steps`` for more.

    Args:
        loss: scalar of the perturbed batch.
        graphs: whose atoms are moved.
        steps: gradients.
        eps: the largest change of a feature, which is 0 or 1 in most columns.

    Returns:
        float [n_atoms, width], each between ``-eps`` and ``eps``.
    """
    rows = graphs.features("atom").detach()
    delta, rate = torch.zeros_like(rows), eps * min(1.0, 2 / steps)
    for _ in range(steps):
        delta.requires_grad_()
        with torch.enable_grad():
            (gradient,) = torch.autograd.grad(loss(with_features(graphs, rows + delta)), delta)
        delta = (delta.detach() + rate * gradient.sign()).clamp(-eps, eps)
    return delta


@contextmanager
def same_running_means(encoder: Any) -> Iterator[None]:
    """In which an encoder leaves the running means of its batch norms as they are."""
    norms = [(module, module.momentum) for module in encoder.modules() if isinstance(module, _BatchNorm)]
    for module, _ in norms:
        module.momentum = 0.0
    try:
        yield
    finally:
        for module, momentum in norms:
            module.momentum = momentum


@contextmanager
def each_atom(encoders: Iterable[Any]) -> Iterator[None]:
    """In which encoders compute each atom by itself: once their features are moved, no two look alike."""
    kept = [(encoder, encoder.distinct) for encoder in encoders]
    for encoder, _ in kept:
        encoder.distinct = False
    try:
        yield
    finally:
        for encoder, distinct in reversed(kept):  # one may stand there twice
            encoder.distinct = distinct


@contextmanager
def perturbed(encoder: Any) -> Iterator[None]:
    """In which an encoder computes each atom by itself, and leaves the running means of its batch norms as they are.

    Batch norms then normalise perturbed atoms by their own means and variances (Ho and Vasconcelos 2020), and predict
    by those of real molecules alone.
    """
    with each_atom([encoder]), same_running_means(encoder):
        yield


class Changed(NamedTuple):
    """Vectors of molecules whose features are changed to raise a loss.

    Args:
        encoder: of graphs.
        vectors: of the graphs' states.
        steps, eps: as for ``attack``.
    """

    encoder: Any
    vectors: Callable[[Tensor], Tensor]
    steps: int
    eps: float

    def __call__(self, graphs: GraphBatch, loss: Callable[[Tensor], Tensor]) -> Tensor:
        """float [g, d]; ``loss``, of such vectors, is a scalar."""

        def of(changed: GraphBatch) -> Tensor:
            return self.vectors(self.encoder(changed).graphs)

        with perturbed(self.encoder):
            by = attack(lambda changed: loss(of(changed)), graphs, self.steps, self.eps)
            return of(with_features(graphs, graphs.features("atom") + by))

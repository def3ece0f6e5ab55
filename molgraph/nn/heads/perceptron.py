"""Predict a value of each target with a perceptron."""

from __future__ import annotations

from molgraph.base.registry import register
from molgraph.nn.head import Head


@register(
    "head", "perceptron", summary="a value of each target", paper="Yang et al. 2019, J. Chem. Inf. Model. 59:3370"
)
class PerceptronHead(Head):
    """``W_2 dropout(relu(W_1 h + b_1)) + b_2``, with squared errors and cross-entropies: the head of chemprop."""

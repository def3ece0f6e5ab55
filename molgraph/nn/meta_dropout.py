"""Meta-dropout: multiplicative noise on hidden values whose mean depends on the input and is learned over tasks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F

ONE = math.log(math.e - 1)  # whose softplus is 1


class MetaDropout(nn.Module):
    """Noise in a head: ``h_l = sigma((W h_(l-1) + b) o softplus(a))`` with ``a ~ N(mu(h_(l-1)), 1)``.

    Lee et al. 2020, "Meta Dropout: Learning to Perturb Latent Features for Generalization", equations 6 and 7. The mean
    mu is linear in the layer's input, and 1 after the softplus at first.

    Args:
        head: a perceptron, whose hidden layers have noise.
    """

    def __init__(self, head: Any) -> None:
        super().__init__()
        means = [nn.Linear(each.in_features, each.out_features) for each in head.layers[:-1]]
        self.means = nn.ModuleList(means)
        for mean in means:
            nn.init.zeros_(mean.weight)
            nn.init.constant_(mean.bias, ONE)

    @contextmanager
    def on(self, head: Any, *, sample: bool) -> Iterator[None]:
        """Noise on the hidden layers of the head within the block; its mean alone unless it is to be sampled."""
        hooks = [
            layer.register_forward_hook(_noise(mean, sample))
            for layer, mean in zip(head.layers, self.means, strict=False)
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()


def _noise(mean: nn.Module, sample: bool) -> Callable[..., Any]:
    def change(layer: nn.Module, args: Any, raw: Any) -> Any:
        a = mean(args[0])
        return raw * F.softplus(a + torch.randn_like(a) if sample else a)

    return change

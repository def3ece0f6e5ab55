"""Compute the loss of a graph network at any weights: between two models, along directions, and its gradient."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.modules.batchnorm import _BatchNorm

from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError
from molgraph.data.table import Table
from molgraph.train.inputs import graph_of_rows, input_graphs
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.rdkit_features import for_model
from molgraph.train.samples import Samples

Weights = dict[str, Tensor]


class WeightSpace:
    """The loss of a fitted network over the rows of a table, as a function of its weights.

    The loss of a number is the squared error divided by the variance of the labels (1: as good as their mean), that of
    two classes the cross-entropy. Dropout is off.

    Args:
        method: fitted, whose network is copied.
        table: n readable rows with labels, standardised as the network's molecules were.
        target: of the rows, one that the method predicts.

    Raises:
        UnsupportedError: a network without a head, of atoms or bonds, or whose target is neither a number nor binary.
    """

    def __init__(self, method: GraphMethod, table: Table, target: Target) -> None:
        fitted = method.ready()
        place = next((i for i, own in enumerate(fitted.outputs.targets) if own.name == target.name), None)
        network = fitted.network
        plain = network.has_head and network.level == "row" and fitted.outputs.references is None
        if place is None or not plain or target.kind not in ("regression", "binary"):
            words = f"the loss of {method.model_name} for {target.name} ({target.kind}) is not computed along weights"
            raise UnsupportedError(words, hint="name a graph network that predicts numbers or two classes of rows")
        graphs = input_graphs(table, fitted.inputs)
        features = for_model(table, fitted.descriptors.names)
        extra = fitted.descriptors.apply(features.features, features.feature_names)
        self.network: nn.Module = deepcopy(network).eval()
        samples = Samples(tuple(each.store for each in graphs), graph_of_rows(graphs), extra)
        self.sample = samples.sample(np.arange(len(table)))
        network.prepare(self.sample)
        self.column, self.kind = fitted.outputs.slices[place].start, target.kind
        number = target.kind == "regression"
        self.scale = torch.tensor([fitted.outputs.mean[place], fitted.outputs.scale[place]] if number else [0.0, 1.0])
        self.y = torch.from_numpy(np.asarray(table.y)[:, 0].astype(np.float32))
        self.variance = float(self.y.var(unbiased=False)) or 1.0

    @property
    def weights(self) -> Weights:
        """Parameters, and running statistics of norms, as they are now."""
        return {name: value.clone() for name, value in self.network.state_dict().items()}

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Put the network there."""
        self.network.load_state_dict(dict(weights))

    def losses(self, scale: Tensor | None = None) -> Tensor:
        """float32 [n]: the loss of each row where the network is.

        Args:
            scale: float [2], mean and deviation on which the network's output is a number; its own if None.
        """
        mean, deviation = self.scale if scale is None else scale
        out = self.network(self.sample)[0][:, self.column]
        if self.kind == "binary":
            return functional.binary_cross_entropy_with_logits(out, self.y, reduction="none")
        return (out * deviation + mean - self.y).square() / self.variance

    @torch.no_grad()
    def losses_at(self, weights: Mapping[str, Tensor], scale: Tensor | None = None, *, refresh: bool = False) -> Tensor:
        """float32 [n]: the losses at other weights, to which the network goes.

        Args:
            weights: as ``weights`` names them.
            scale: as ``losses`` takes it.
            refresh: whether batch norm's running statistics are computed anew there, from all rows at once.
        """
        self.set_weights(weights)
        if refresh:
            with statistics_learnt(self.network):
                self.network(self.sample)
        return self.losses(scale)


@contextmanager
def statistics_learnt(network: nn.Module) -> Iterator[None]:
    """Within, running statistics of batch norm become those of the last batch; all else is as in prediction."""
    norms = [(module, module.momentum) for module in network.modules() if isinstance(module, _BatchNorm)]
    for module, _ in norms:
        module.train()
        module.momentum = 1.0
    try:
        yield
    finally:
        for module, momentum in norms:
            module.eval()
            module.momentum = momentum


def between(a: Mapping[str, Tensor], b: Mapping[str, Tensor], share: float) -> Weights:
    """``(1 - share) a + share b``; counters, which are whole numbers, are those of a.

    Raises:
        UnsupportedError: weights of other names or shapes.
    """
    if {name: value.shape for name, value in a.items()} != {name: value.shape for name, value in b.items()}:
        words = "the networks have weights of other shapes, so there is no line between them"
        raise UnsupportedError(words, hint="name two fits of one model with the same settings")
    return {name: torch.lerp(x, b[name], share) if x.is_floating_point() else x.clone() for name, x in a.items()}


def graph_method_of(model: Model) -> GraphMethod:
    """The graph method of a model.

    Raises:
        UnsupportedError: another kind of model.
    """
    if not isinstance(model.method, GraphMethod):
        raise UnsupportedError(f"{model.name} is no graph network", hint="name one, such as -m gin, or its file")
    return model.method

"""Measure the spread of a property model's predictions over an ensemble's members or passes of dropout."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.base.contracts import Method, Prediction
from molgraph.base.errors import UnsupportedError
from molgraph.base.seeds import derive
from molgraph.data.standardise import standardise
from molgraph.data.table import make_table
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model


class Doubt(NamedTuple):
    """Predictions with their uncertainty.

    Args:
        prediction: of the whole model.
        spread: float64 [n, columns], a standard deviation.
        members: float64 [passes, n, columns], the predictions that differ; none of a model that gives a spread alone.
    """

    prediction: Prediction
    spread: np.ndarray
    members: np.ndarray


def doubt_of(model: Model, smiles: Sequence[str], passes: int) -> Doubt:
    """A prediction, and how its members differ: those of an ensemble, else ``passes`` of dropout.

    Gal and Ghahramani 2016, ICML 33. Each pass has one thinned network: the same hidden values are dropped for all
    molecules, so that a molecule's score is the same whatever stands beside it.

    Raises:
        UnsupportedError: the model has neither members nor dropout.
    """
    prediction, members = model.predict(list(smiles)), list[np.ndarray]()
    table = standardise(make_table(list(smiles)), model.standardiser)
    method = model.method
    fitted = [member for member in method.members if isinstance(member, Method)]
    if len(fitted) > 1:
        members = [learner.predict(table).value for learner in fitted]
    elif isinstance(method, GraphMethod) and dropouts(method):
        for k in range(passes):
            with thinned(method, k):
                members.append(method.predict(table).value)
    elif prediction.spread is None:
        raise UnsupportedError(
            f"{model.kind} has no members that could differ, and no dropout",
            hint="train several: molgraph train TABLE -m 'ensemble(dmpnn)'; or one with dropout: "
            "-s params.head_dropout=0.2",
        )
    values = np.array(members).reshape(len(members), *prediction.value.shape)
    spread = prediction.spread if prediction.spread is not None else values.std(axis=0)
    return Doubt(prediction, np.nan_to_num(spread), values)


def dropouts(method: GraphMethod) -> list[nn.Dropout]:
    """The layers that drop values in training."""
    return [m for m in method.ready().network.modules() if isinstance(m, nn.Dropout) and m.p > 0]


@contextmanager
def thinned(method: GraphMethod, seed: int) -> Iterator[None]:
    """Drop hidden values of a fitted network, the same ones of every row, scaled as in training."""

    def thin(module: nn.Module, _: tuple[Tensor, ...], rows: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(derive(seed, "dropout", places[module]))
        kept = torch.rand(rows.shape[-1], generator=generator) >= rates[module]
        return rows * kept.to(rows) / (1 - rates[module])

    layers = dropouts(method)
    places = {layer: i for i, layer in enumerate[nn.Module](layers)}
    rates: dict[nn.Module, float] = {layer: layer.p for layer in layers}
    handles = [layer.register_forward_hook(thin) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()

"""Predict each molecule through several views, random SMILES: the mean over the views, and their standard deviation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.errors import UnsupportedError
from molgraph.base.seeds import generator
from molgraph.data.graph_cache import CachedGraphs, graphs_of
from molgraph.data.table import Table
from molgraph.data.views.random_smiles import RandomSmiles
from molgraph.train.inputs import Input, input_column

STD = "view_std"  # the column, after the target's name where there are several


def mean_over_views(
    predict: Callable[[Sequence[CachedGraphs] | None], Prediction],
    graphs: Sequence[CachedGraphs] | None,
    table: Table,
    inputs: Sequence[Input],
    n: int,
    seed: int,
) -> Prediction:
    """The mean of the predictions of ``n`` random SMILES of each molecule, with their standard deviation.

    Kostrikov et al. 2020, "Image augmentation is all you need", equations 2 and 3, whose targets are means over views:
    of n independent views the variance of the mean is 1 / n of that of one. A model of graphs gives one value for all
    views, up to rounding. Statuses are those of the molecules as they are; a view that cannot be read has their value.

    Args:
        predict: the prediction of the table by given graphs, or by its own for None.
        graphs: the table's own, where they are made already.
        table: rows.
        inputs: what the model reads.
        n: views; 1 for the table as it is.
        seed: of the views.

    Raises:
        UnsupportedError: no column of molecules, or values of atoms or bonds.
    """
    if n == 1:
        return predict(graphs)
    if not any(input_.kind == "molecule" for input_ in inputs):
        words = "views of a prediction are random SMILES, and the model reads no molecules"
        raise UnsupportedError(words, hint="leave --views out")
    whole = predict(graphs)
    if whole.packed:
        words = "views of a prediction are of values of molecules, and the model predicts those of atoms or bonds"
        raise UnsupportedError(words, hint="leave --views out")
    values = []
    for k in range(n):
        value = predict(view_graphs(table, inputs, generator(seed, "views of a prediction", k))).value
        values.append(np.where(np.isfinite(value), value, whole.value))
    std = np.std(values, axis=0, ddof=1)
    names = [STD] if len(whole.columns) == 1 else [f"{name}_{STD}" for name in whole.columns]
    extra = {name: np.where(whole.ok, std[:, j], np.nan) for j, name in enumerate(names)}
    return replace(whole, value=np.mean(values, axis=0), extra={**whole.extra, **extra})


def view_graphs(table: Table, inputs: Sequence[Input], rng: np.random.Generator) -> tuple[CachedGraphs, ...]:
    """The graphs of one random SMILES of each molecule, read as it is written."""
    graphs, view = [], RandomSmiles()
    for k, input_ in enumerate(inputs):
        column, featuriser = input_column(table, inputs, k), copy(input_.featuriser)
        if input_.kind == "molecule":
            featuriser.as_written = None if featuriser.as_written is None else True
            column = view(column, rng)
        graphs.append(graphs_of(table, column, featuriser, spec=input_.spec))
    return tuple(graphs)

"""Train a fitted graph network further, on the scales that it has."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import Any

from molgraph.base.seeds import derive
from molgraph.data.limits import refuse_limits
from molgraph.data.table import Table
from molgraph.train.callback import Callback
from molgraph.train.engine import fit_network
from molgraph.train.method import GraphMethod
from molgraph.train.network import Network
from molgraph.train.objective import Objective, make_objective, what_is_read
from molgraph.train.preparation import Prepared, prepare
from molgraph.train.rdkit_features import with_rdkit_features
from molgraph.train.rebuild import with_network
from molgraph.train.runtime import torch_settings
from molgraph.train.samples import Samples


def train_further(
    method: GraphMethod, table: Table, valid: Table | None, callbacks: Sequence[Callback], *, label: str, **how: Any
) -> GraphMethod:
    """A copy of a fitted method whose network has learned more, by its own objective and settings.

    Args:
        method: fitted; it stays as it is.
        table: rows with the method's targets.
        valid: rows that pick the weights; without them those of the last epoch are kept.
        callbacks: go around the objective, in the place of those of the first training.
        label: of the progress bar.
        how: settings of gradient descent that are others now, such as ``epochs``, and ``seed``.

    Raises:
        DataError: nothing can be learned from the table.
    """
    settings = {**method.get_params(), "callback": None, "devices": 1, "strategy": "auto", **how}
    prepared = _prepared(method, table, valid, settings, views=method.views)
    with torch_settings(method.threads, derive(settings["seed"], "weights")):
        network = deepcopy(method.ready().network).train()
        objective = _objective(method, network, prepared)
        where: dict[str, Any] = {"workdir": None, "label": label, "callbacks": callbacks}
        fit = fit_network(network, objective, prepared.train, prepared.valid, settings, prepared.prints, **where)
    further = with_network(method, network, *fit.notes)
    further.curves, further.best_epoch = fit.curves, fit.best_epoch
    return further


def labelled_samples(method: GraphMethod, table: Table) -> tuple[Samples, Objective]:
    """Rows with labels on the scales of a fitted method, and the objective that it was trained by.

    Raises:
        DataError: no row has a label.
    """
    prepared = _prepared(method, table, None, method.get_params(), views=None)
    return prepared.train, _objective(method, method.ready().network, prepared)


def _objective(method: GraphMethod, network: Network, made: Prepared) -> Objective:
    params = dict(method.params or {})
    return make_objective(method.objective, params, network, made.inputs, method.ready().outputs)


def _prepared(
    method: GraphMethod, table: Table, valid: Table | None, settings: dict[str, Any], *, views: str | None
) -> Prepared:
    """Both parts on the scales of a fitted method."""
    fitted, params = method.ready(), dict(method.params or {})
    for part in (table, valid):
        if part is not None and not method.learns_limits:
            refuse_limits(part, method.objective, 'the objective "tobit" learns them')
    if method.descriptors == "rdkit":
        table = with_rdkit_features(table, workers=method.threads)
        valid = None if valid is None else with_rdkit_features(valid, workers=method.threads)
    columns, recipe = tuple(input_.column for input_ in fitted.inputs), {**settings, "params": params}
    how = (method.encoder, columns, method.class_weights, recipe, None, method.threads)
    reads = what_is_read(method.objective, params, views=views, descriptors=method.descriptors)
    reads |= {"specs": {input_.encoder: input_.spec for input_ in fitted.inputs}}
    return prepare(table, valid, *how, **reads, scales=(fitted.outputs, fitted.descriptors))

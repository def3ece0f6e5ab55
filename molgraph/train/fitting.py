"""Fit a graph method: featurise the rows, build the network and the objective, and train."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from molgraph.base.paths import store_folder
from molgraph.base.registry import get
from molgraph.base.seeds import derive
from molgraph.data.levels import level_of
from molgraph.data.limits import refuse_limits
from molgraph.data.observed import observed_notes
from molgraph.data.table import Table
from molgraph.data.target_json import notes_of
from molgraph.evaluate.metrics import columns_of
from molgraph.train.engine import fit_network
from molgraph.train.inference import FittedNetworks
from molgraph.train.large_graphs import refuse_large
from molgraph.train.network import Network
from molgraph.train.objective import make_objective, what_is_read
from molgraph.train.preparation import prepare
from molgraph.train.pretraining import state_outputs
from molgraph.train.rdkit_features import with_rdkit_features
from molgraph.train.restore import stored_defaults
from molgraph.train.runtime import torch_settings

logger = logging.getLogger("molgraph")


def fit_method(method: Any, table: Table, valid: Table | None, workdir: Path | None) -> None:
    """Train a checked ``GraphMethod`` on a table; it has its network, curves, best epoch and notes then.

    Raises:
        DataError: nothing can be learned from the table, or the folder's checkpoint is another fit's.
        Interrupted: Ctrl-C.
    """
    start, params = method.start(), method.params or {}
    recipe = {k: v for k, v in method.get_params().items() if k not in method.run_only}
    recipe |= {"init": None if start is None else start.digest, "defaults": stored_defaults(method)}
    cache = None if method.store is None else store_folder(method.store)
    reads = what_is_read(method.objective, params, views=method.views, descriptors=method.descriptors)
    raw_table = table
    if method.descriptors == "rdkit":
        table = with_rdkit_features(table, workers=method.threads)
        valid = None if valid is None else with_rdkit_features(valid, workers=method.threads)
    for part in (table, valid):
        if part is not None and not method.learns_limits:
            refuse_limits(part, method.objective, 'the objective "tobit" learns them')
    reads |= {"folder": cache or workdir, "specs": None if start is None else start.specs}
    how = (method.encoder, method.inputs, method.class_weights, recipe, cache, method.threads)
    scales = None if start is None else start.scales_for(table, method)
    prepared = prepare(table, valid, *how, **reads, scales=scales)
    heads = get("objective", method.objective).heads(prepared.outputs)
    with torch_settings(method.threads, derive(method.seed, "weights")):
        network = method.build(prepared.inputs, d_extra=len(prepared.descriptors.names), targets=heads.targets)
        refuse_large(network, prepared.inputs, [(prepared.train, table), (prepared.valid, valid)])
        network.measure(prepared.train.stores)
        started = [] if start is None else [start.copy_into(network, prepared.inputs, heads)]
        learns = make_objective(method.objective, params, network, prepared.inputs, prepared.outputs)
        for note in (*prepared.notes, *started):
            if note not in notes_of(prepared.outputs.unlearned):  # said once by the run, not by each method
                logger.info(note)

        def keep(network: Network, curves: pd.DataFrame, best_epoch: int) -> None:
            outputs = heads if heads.targets else state_outputs(network.d_state)
            method.predicts, method.curves, method.best_epoch = learns.labelled, curves, best_epoch
            method.fitted = FittedNetworks(network.eval(), outputs, prepared.descriptors, prepared.inputs)

        def early(weights: Mapping[str, Tensor], curves: pd.DataFrame, best_epoch: int) -> None:
            copy = deepcopy(network).cpu()
            copy.load_state_dict(weights)
            keep(copy, curves, best_epoch)
            if method.early is not None:
                method.early()

        data: Any = (prepared.train, prepared.valid, method.get_params(), prepared.prints)
        label = f"training {method.encoder}"
        asked = None if method.early is None or method.devices > 1 else early
        where: Any = {"workdir": workdir, "label": label, "early": asked, "callbacks": method.extra_callbacks}
        *fitted, notes = fit_network(network, learns, *data, **where)
    keep(network, *fitted)
    if raw_table.gaps != "mark" and learns.labelled and level_of(table.targets) == "row":
        prediction = method.predict(table)
        values = {t.name: columns_of(prediction, t) for t in prediction.targets if t.kind != "multiclass"}
        notes = (*notes, *observed_notes(raw_table.features, values, "predictions"))
    method.notes = (*prepared.notes, *started, *notes)

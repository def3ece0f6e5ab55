"""Decide whether a graph model reads RDKit's descriptors beside the graph."""

from __future__ import annotations

import logging

from molgraph.base.contracts import Method
from molgraph.base.recipe_keys import USUAL_MODEL
from molgraph.base.registry import get
from molgraph.base.run_config import RunConfig
from molgraph.data.table import Table
from molgraph.run.baselines import OF_ROWS, of_molecules
from molgraph.run.method import method_of
from molgraph.run.start import start_of

MOST_DESCRIBED = 10_000  # rows: what descriptors bring is measured on fewer, and they slow prediction
logger = logging.getLogger("molgraph")


def add_descriptors(config: RunConfig, method: Method, table: Table) -> Method:
    """The method, reading RDKit's descriptors where the configuration names none and the model is to read them.

    A model that starts from a file reads those that the file's reads. The usual model reads them of up to
    ``MOST_DESCRIBED`` molecules: on the boards means are lower for a few hundred, and about the same for thousands
    (docs/decisions/0022).
    """
    model, core = config.model, method.innermost[0]
    named = {"descriptors", "init"} & {*model.params} or model.descriptors is not None
    if named or config.training.objective not in OF_ROWS:
        return method
    if (start := start_of(config)) is not None:
        described = getattr(start.method, "descriptors", "none") == "rdkit"
    else:
        described = core.model_name == USUAL_MODEL and of_molecules(table) and len(table) <= MOST_DESCRIBED
    if not described or core.get_params().get("descriptors") != "none":
        return method
    if get("head", core.get_params()["head"]).reads_atoms:  # which reads no descriptors
        return method
    logger.info("%s reads RDKit's descriptors too; to leave them out: -s params.descriptors=none", core.model_name)
    return method.set_params(descriptors="rdkit") if core is method else method_of(config, descriptors="rdkit")

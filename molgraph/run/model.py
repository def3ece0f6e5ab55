"""Build the ``Model`` of a fitted method: its model card, hashes of its training molecules, intervals and domain."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from molgraph.base.errors import MolgraphError
from molgraph.data.splits.split import PARTS
from molgraph.data.table import Table
from molgraph.evaluate.class_counts import class_counts
from molgraph.run.baselines import of_molecules
from molgraph.run.method import is_graph
from molgraph.run.prepare import PreparedRun
from molgraph.run.result import MethodRun
from molgraph.run.split import labelled_sizes, limit_counts
from molgraph.train.card import ModelCard
from molgraph.train.confidence.confidence import Confidence, HeldOut
from molgraph.train.model import Model
from molgraph.train.training_molecules import distinct

logger = logging.getLogger("molgraph")


def model_of(
    run: MethodRun,
    prepared: PreparedRun,
    scores: pd.DataFrame,
    notes: Sequence[str] = (),
    confidence: Confidence | None = None,
) -> Model:
    """The model of a fitted method, with its card and the hashes of the molecules that it was trained on.

    ``scores`` are those of all methods; ``notes`` go to the card; ``confidence`` gives intervals and a domain.
    """
    config, table, split = prepared.config, prepared.table, prepared.split
    learnt = np.concatenate([split.train, split.valid]) if run.method.uses_valid else split.train
    scores = scores[scores["method"] == run.name].drop(columns="method").assign(part="test")
    parts = {part: getattr(split, part) for part in PARTS}
    test_note = "The test part is a table of its own." if "test" in split.params else ""
    sizes = labelled_sizes(split, table)
    hashes = [prepared.hashes[learnt], *([prepared.before] if is_graph(run.method) else [])]
    card = ModelCard(
        name=run.name,
        units={t.name: table.units[t.name] for t in table.row_targets if t.name in table.units},
        n_train=sizes["train"],
        n_valid=sizes["valid"],
        n_test=sizes["test"],
        n_limits=limit_counts(table, parts),
        split=split.splitter,
        split_hash=split.hash,
        classes=tuple(class_counts(table, parts).to_dict("records")),
        scores=tuple(scores.replace({np.nan: None}).to_dict("records")),
        recipe=json.loads(config.to_json()),
        notes=(*table.notes, *run.method.notes, *filter(None, [test_note, split.leak_sentence]), *notes),
    )
    return Model(
        run.method,
        targets=table.targets,
        standardiser=config.data.standardise,
        feature_names=table.feature_names if run.method.reads_features else (),
        card=card,
        trained_on=distinct(np.concatenate(hashes)),
        confidence=confidence,
    )


def confidence_of(run: MethodRun, train: Table, valid: Table, *, private: bool) -> Confidence | None:
    """What is said beside the predictions of a fitted method; None for others than values of single molecules.

    Args:
        run: the fitted method.
        train: the rows that it learnt from.
        valid: rows that it did not learn weights from; a method with out-of-fold predictions of its own has these.
        private: whether the model keeps no training molecules.
    """
    if not of_molecules(train) or not train.row_targets:
        return None
    held = run.method.held_out
    try:
        if held is not None:
            return Confidence.of(held, held.table, private=private)
        if not len(valid):
            return None
        return Confidence.of(
            HeldOut(valid, run.method.predict(valid), np.zeros(len(valid), int)), train, private=private
        )
    except MolgraphError as error:
        logger.info("no intervals for %s: %s", run.name, error.message)
        return None


def extended(run: MethodRun, confidence: Confidence | None, test: Table) -> MethodRun:
    """The run, its predictions of the test part with their intervals and distances."""
    if confidence is None:
        return run
    return replace(run, prediction=confidence.extend(run.prediction, test, refuse=False))

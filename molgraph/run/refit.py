"""Refit trained models on all rows (``train --final``), keeping the test scores of the split that came before."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np

from molgraph.base.contracts import Method
from molgraph.base.errors import UnsupportedError
from molgraph.data.levels import labelled
from molgraph.data.table import concatenate
from molgraph.run.choice import Choice
from molgraph.run.method import is_graph
from molgraph.run.prepare import PreparedRun
from molgraph.run.result import TrainingResult
from molgraph.train.model import Model
from molgraph.train.training_molecules import distinct

logger = logging.getLogger("molgraph")


def check_final(prepared: PreparedRun) -> None:
    """Refuse before the training what could not be trained on all rows after it.

    Raises:
        UnsupportedError: a method whose rows or targets are not those of the table alone.
    """
    if not prepared.one_table:
        words = "all rows of one table are learned from at the end"
        raise UnsupportedError(words, hint="leave out --final, or --unlabelled and --helper")


def refit(result: TrainingResult, prepared: PreparedRun, folder: Path | None) -> TrainingResult:
    """The result with its models trained on the rows of all parts; scores and predictions are those of before.

    A method that stops early has the same validation rows as before, and learns from all others.
    """
    choice = result.choice  # by validation rows that neither model has learned yet
    models: dict[int, Model] = {}
    for model in (result.model, result.baseline, result.floor):
        if model is not None:
            logger.info("training %s on all rows", model.kind)
            workdir = folder / "final" if folder is not None and model is result.model else None
            models[id(model)] = _refitted(model, prepared, workdir)
    return replace(
        result,
        model=models[id(result.model)],
        baseline=None if result.baseline is None else models[id(result.baseline)],
        floor=models[id(result.floor)],
        chosen=Choice(models[id(choice_of(result, choice))].with_note(choice.sentence), choice.sentence),
    )


def choice_of(result: TrainingResult, choice: Choice) -> Model:
    """The result's own model that a choice, which is a copy with a note, is of."""
    models = [model for model in (result.model, result.baseline) if model is not None]
    return next(model for model in models if model.method is choice.model.method)


def _refitted(model: Model, prepared: PreparedRun, workdir: Path | None) -> Model:
    train, valid, test = prepared.parts
    method = type(model.method)(**model.method.get_params())
    stops = method.uses_valid and len(valid) > 0
    table = reduce(concatenate, [part for part in ((train, test) if stops else (train, valid, test)) if len(part)])
    method.fit(table, valid if stops else None, workdir=workdir)
    split, card, n = prepared.split, model.card, int(labelled(table).sum())
    watched = f", and stopped by {int(labelled(valid).sum()):,}" if stops else ""
    source = f"{card.n_test:,} test rows" if card.n_test else "no test rows"
    estimate = (
        f"the scores are those of the same method trained on {card.n_train:,} rows, on {source} of the split "
        f"{card.split}; this model has learned from {n:,} rows{watched}, the test rows among them"
    )
    rows = np.concatenate([split.train, split.valid, split.test])
    before = prepared.before if isinstance(method, Method) and is_graph(method) else prepared.before[:0]
    return Model(
        method,
        targets=model.targets,
        standardiser=model.standardiser,
        feature_names=model.feature_names,
        card=replace(card, estimate=estimate),
        confidence=None if model.confidence is None else model.confidence.with_molecules(table),
        trained_on=distinct(np.concatenate([prepared.hashes[rows], before])),
    )

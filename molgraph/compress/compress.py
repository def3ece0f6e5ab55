"""Compress a trained model by a registered compressor, and measure bytes, molecules/s and error beside the source."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Prediction
from molgraph.base.errors import LabelError, MolgraphError
from molgraph.base.printable import printable
from molgraph.compress.compressor import make_compressor
from molgraph.compress.rows import FEWEST, split_rows
from molgraph.data.levels import labelled
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric
from molgraph.evaluate.statistics import paired_difference
from molgraph.train.class_codes import coded
from molgraph.train.confidence.confidence import Confidence, HeldOut
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.speed import TIMED, seconds_in_turn
from molgraph.train.training_molecules import molecule_hashes


@dataclass(frozen=True, repr=False)
class Compressed:
    """A compressed model, and what it cost; ``predict`` and ``save`` are its own.

    Args:
        model: the new one.
        source: the one that it came from.
        frame: a row a model: ``model``, ``bytes`` of its file, ``molecules_per_second`` of ``predict``, and for each
            target its main metric on the test rows.
        sentences: what the change is, each error with its 95% interval (paired bootstrap of the test rows).
        notes: what to beware of.
    """

    model: Model
    source: Model
    frame: pd.DataFrame
    sentences: tuple[str, ...]
    notes: tuple[str, ...]

    def predict(self, data: Any, **columns: Any) -> Prediction:
        """Predict molecules with the new model (see ``Model.predict``)."""
        return self.model.predict(data, **columns)

    def save(self, path: str | Path) -> Path:
        """Write the new model as one file (see ``Model.save``)."""
        return self.model.save(path)

    def __repr__(self) -> str:
        table = self.frame.set_index("model").T.map(lambda value: f"{value:,.4g}" if value < 1e5 else f"{value:,.0f}")
        return printable("\n".join([table.to_string(), *(f"{line}." for line in (*self.sentences, *self.notes))]))

    def _repr_html_(self) -> str:
        lines = "".join(f"<p>{line}.</p>" for line in (*self.sentences, *self.notes))
        return f"{self.frame.set_index('model').T.to_html(float_format=lambda value: f'{value:,.4g}')}{lines}"


def compress(
    model: Model | str | os.PathLike[str], data: Any, how: str = "born_again", *, seed: int = 0, **columns: Any
) -> Compressed:
    """Make a model smaller or faster, and measure what that costs on rows that it was not compressed with.

    The rows are split by scaffolds (80% to learn from, 10% for early stopping, 10% to measure on; at random where there
    are too few scaffolds). The last two parts are of molecules that the source did not learn, where there are twenty;
    else a note says that both errors are flattered, and the new model has no intervals.

    Args:
        model: of single molecules, or the path of its file.
        data: a path, a frame or a table that has the model's target columns; gaps are allowed.
        how: a registered compressor with its settings, such as ``born_again(student=gin)`` or ``depth(4)``;
            ``molgraph.names("compressor")``.
        seed: of the split and of what is trained.
        columns: which columns are which, as ``Model.evaluate`` takes them.

    A source that keeps no training molecules (``train --private``) makes a model that keeps none.

    Raises:
        LabelError: no row has a label. UnsupportedError: the model cannot be compressed in this way.

    Example:
        >>> import molgraph
        >>> model = molgraph.train("builtin:chembl2321810", model="random_forest", split="random").model
        >>> found = molgraph.compress(model, "builtin:chembl2321810", "born_again(student=linear)")
        >>> found.model.kind, bool(found.frame["bytes"][1] < found.frame["bytes"][0])
        ('linear', True)
    """
    source, compressor = model if isinstance(model, Model) else load_model(model), make_compressor(how)
    source.check_predicts()
    table = source.read(data, **{"targets": source.targets} | columns)
    table = coded(table.with_targets([target.name for target in source.targets]), source.targets)
    clean = standardise(table, source.standardiser)
    clean = clean.take(np.flatnonzero(labelled(clean) & clean.ok))
    if len(clean) < FEWEST:
        words = f"{len(clean)} rows have a readable molecule and a label of {', '.join(t.name for t in source.targets)}"
        raise LabelError(words, hint=f"give a table with {FEWEST} or more")
    known = np.zeros(0, np.uint64) if source.trained_on is None else source.trained_on
    seen = np.isin(molecule_hashes(clean), known)
    parts = split_rows(clean, seen, seed)
    train, valid, test = map(clean.take, parts)
    method = compressor.compress(source, train, valid, seed)
    private = source.confidence is not None and source.confidence.references is None
    try:
        held = HeldOut(valid, method.predict(valid), np.zeros(len(valid), int))
        confidence = None if seen[parts[1]].any() else Confidence.of(held, train, private=private)
    except MolgraphError:
        confidence = None
    new = Model(
        method,
        targets=source.targets,
        standardiser=source.standardiser,
        feature_names=source.feature_names,
        card=replace(source.card, name=method.name, scores=(), notes=(*source.card.notes, f"compressed by {how}")),
        trained_on=np.unique(np.concatenate([molecule_hashes(train), known])),
        confidence=confidence,
    )
    notes = [note for note in method.notes if note not in source.method.notes]
    notes += [] if compressor.trains else ["it learnt nothing from the rows"]
    if n := int(seen[parts[2]].sum()):
        notes.append(
            f"the source learnt from {n:,} of the {len(test):,} test rows, which flatters it, and the new model where "
            "that has its weights; give rows that it did not learn from"
        )
    if confidence is None and seen[parts[1]].any():
        notes.append("the new model has no intervals, as the source learnt from the rows that would give them")
    frame, sentences = measure(source, new, test, clean)
    return Compressed(new, source, frame, sentences, tuple(notes))


def measure(source: Model, new: Model, test: Table, rows: Table) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table of both models, and the changes in words.

    Args:
        source, new: the models.
        test: labelled rows, standardised.
        rows: those that are predicted for the speed.
    """
    timed, methods = rows.take(np.arange(min(len(rows), TIMED))), [source.check_predicts(), new.check_predicts()]
    seconds = seconds_in_turn([partial(item.predict, timed) for item in methods])
    lines: list[dict[str, Any]] = []
    predictions = [item.predict(test) for item in methods]
    for label, item, taken in zip(("source", "compressed"), (source, new), seconds, strict=True):
        lines.append({"model": label, "bytes": _bytes(item), "molecules_per_second": len(timed) / taken})
    sentences = [f"{lines[1]['bytes'] / lines[0]['bytes']:.2f} of the source's bytes, "
                 f"{seconds[0] / seconds[1]:.2f} x its molecules/s"]  # fmt: skip
    assert test.y is not None
    for j, target in enumerate(test.row_targets):
        metric, y = default_metric(target.kind), test.y[:, j]
        values = [columns_of(item, target) for item in predictions]
        use = np.isfinite(y) & np.all([np.isfinite(v.reshape(len(y), -1)).all(axis=1) for v in values], axis=0)
        for line, value in zip(lines, values, strict=True):
            line[f"{target.name} {metric.name}"] = evaluate_metric(metric, y[use], value[use])[0]
        if use.sum() < FEWEST:
            continue
        difference = paired_difference(y[use], values[1][use], values[0][use], metric)
        sentences.append(
            f"{target.name}: {metric.name} {difference.value:+.3g} [{difference.low:.3g}, {difference.high:.3g}]"
            f" on {int(use.sum()):,} test rows"
        )
    return pd.DataFrame(lines), tuple(sentences)


def _bytes(model: Model) -> int:
    """The size of the model's file."""
    with tempfile.TemporaryDirectory() as folder:
        return model.save(Path(folder) / "model.mgm").stat().st_size

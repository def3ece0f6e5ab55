"""Train a model on a table of molecules, beside a baseline and on a split."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.api.baselines import (
    BASELINE,
    TRIVIAL,
    add_descriptors,
    baselines_for,
    controls_for,
    is_graph,
    method_of,
    model_of,
    run_methods,
)
from molgraph.api.check_config import recipe_of, with_start
from molgraph.api.results import TrainingResult
from molgraph.api.run_split import append_test, divide, divide_before, labelled_sizes, with_split
from molgraph.api.training_data import read_for_training, read_test
from molgraph.api.unlabelled import check_unlabelled, read_unlabelled
from molgraph.base.errors import UnsupportedError, UnusedSettingError
from molgraph.base.options import fill, optional, takes
from molgraph.base.paths import store_folder
from molgraph.base.recipe_keys import KEYWORDS
from molgraph.base.registry import get
from molgraph.base.run_config import RunConfig
from molgraph.data.graph_cache import store_for
from molgraph.data.labels import check_targets
from molgraph.data.splits import Split
from molgraph.data.standardise import no_molecule_note
from molgraph.data.standardise import standardise as standardise_table
from molgraph.data.target_json import notes_of
from molgraph.evaluate import metrics
from molgraph.evaluate.sides import gaps
from molgraph.train.modelfile import load_start
from molgraph.train.preparation import workers_for
from molgraph.train.training_molecules import molecule_hashes

SHOWN = 3  # reasons why rows are in no part
TABLES = ("test", "unlabelled")  # a path, which a recipe can name, or a frame
TRAIN_KEYWORDS = {name: each for name, each in KEYWORDS.items() if name not in TABLES}
logger = logging.getLogger("molgraph")


@takes(TRAIN_KEYWORDS)
def train(
    data: Any = None,
    *,
    test: Any = None,
    unlabelled: Any = None,
    params: Mapping[str, Any] | None = None,
    recipe: RunConfig | str | Path | None = None,
    workdir: str | Path | None = None,
    **options: Any,
) -> TrainingResult:
    """Learn from a table of molecules, and say how good that is beside a forest and beside the mean.

    Beside a model of pairs or of complexes the same model is trained on the ligand alone and on the protein alone, and
    the result says whether both were used.

    The table is split; the model learns from the train part and stops early by the valid part; the test part is
    used once, at the end, for the scores. Every option is a key of the recipe, which the model file keeps.
    The defaults are those of a call without a recipe; an option that is left out, or None, leaves a recipe's own value.

    Args:
        data: a path (csv, csv.gz, tsv, parquet, sdf, smi, xyz, npz), a frame, a table, or ``dataset:esol``
            (targets and split as its card says, where not given).
        test: a path, frame or table to test on, with the same columns; all of ``data`` is then train and valid. Rows
            whose molecule is in ``data`` too are counted and named.
        unlabelled: a path, frame, list or table of rows without labels, for an objective that learns from them too.
        params: the model's own parameters, such as ``{"depth": 4}``. The usual model, ``dmpnn``, reads RDKit's
            descriptors beside the graph in tables of up to 10,000 rows unless ``{"descriptors": "none"}`` is given.
        **options
        recipe: a recipe or its TOML file; keywords given beside it override it.
        workdir: a folder for what a resume needs; the same call goes on there after a kill. Remove it once the
            model is saved.

    Returns:
        The trained model with its scores, baseline, split and report.

    Raises:
        DataError: the table cannot be used as asked. UsageError: a name or value that is not known.

    Example:
        >>> import molgraph
        >>> result = molgraph.train("builtin:chembl2321810", model="knn")
        >>> bool(result.scores.loc["knn", "rmse"] < result.scores.loc["mean", "rmse"])
        True
        >>> result.predict(["CCO", "not a molecule"]).status.tolist()
        ['ok', 'unreadable']
    """
    test, unlabelled = (os.fspath(each) if isinstance(each, os.PathLike) else each for each in (test, unlabelled))
    given = fill(optional(TRAIN_KEYWORDS), options) | {"params": params}
    given |= {name: each for name, each in zip(TABLES, (test, unlabelled), strict=True) if isinstance(each, str)}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(data, str) and data.startswith("dataset:"):  # its card may recommend a split
        given["path"] = data
    config = with_start(recipe_of(recipe, given))
    if not get("objective", config.training.objective).labelled:
        raise UnsupportedError(
            f"{config.training.objective} learns no targets, and train does", hint="molgraph pretrain trains by it"
        )
    started = time.perf_counter()
    method = method_of(config)  # what it refuses is refused before an hour of reading
    if unlabelled is not None or config.data.unlabelled is not None:
        check_unlabelled(config, method)
    if config.data.features and not all(part.reads_features for part in method.innermost):
        raise UnusedSettingError(f"{config.model.name} reads no columns of features", hint="leave them out (--feature)")
    table = read_for_training(data if data is not None else config.data.path, config, method)
    config = with_split(config, table)
    # the recipe stays as it was asked for, so that another model can take it
    method = add_descriptors(config, method, table)
    n, tested = len(table), config.data.test if test is None else test
    more = config.data.unlabelled if unlabelled is None else unlabelled
    if tested is not None:
        table = append_test(table, read_test(tested, config, table))
    clean = standardise_table(table, config.data.standardise)
    if note := no_molecule_note(clean, config.data.standardise):
        table = replace(table, notes=(*table.notes, note))
        logger.info(note)
    divided = divide(clean, config, table) if tested is None else divide_before(n, clean, table, config)
    sizes = labelled_sizes(divided, clean)
    logger.info("split %s: %s", divided.splitter, ", ".join(f"{n:,} {part}" for part, n in sizes.items() if n))
    for reason, rows_left in Counter(out.reason for out in divided.left_out).most_common(SHOWN):
        logger.info("left out: %s x %s", f"{rows_left:,}", reason)
    if divided.leaks:
        logger.warning("%s, such as: %s", divided.leak_sentence, divided.leaks[0])
    hashes, before = molecule_hashes(clean), learnt_before(config)
    if known := known_words(hashes, divided, before, config.model.init):
        logger.warning(known)
        table = replace(table, notes=(*table.notes, known))
    parts = [clean.take(rows) for rows in (divided.train, divided.valid, divided.test)]
    for note in notes_of(check_targets(parts[0]).unlearned):  # now, once, and not after hours by each method
        logger.info(note)
    folder = run_folder(workdir, config, divided)
    molecules = "molecule" in [e.kind for e in clean.entities]
    if config.training.store is not None and is_graph(method) and molecules:  # the whole table's serves each part
        threads = config.training.threads
        store_for(clean, cache=store_folder(config.training.store), workers=workers_for(clean, threads))
    runs = run_methods(config, method, parts, folder, None if more is None else read_unlabelled(more, config, parts[0]))
    scores = {run.name: metrics.score(parts[2], run.prediction) if len(parts[2]) else [] for run in runs}
    frame = metrics.scores_frame(scores)
    alone = {run.name: run.prediction for run in runs}
    sides = controls_for(config, method, parts[0])
    how: dict[str, Any] = {"mean": alone.get(TRIVIAL), "seed": config.training.seed}
    found = gaps(parts[2], sides, runs[0].prediction, alone, **how) if len(parts[2]) else ()
    told = [each.sentence for each in found]
    models = {
        run.name: model_of(run, table, config, divided, frame, hashes, before, told * (run is runs[0])) for run in runs
    }
    return TrainingResult(
        model=models[config.model.name],
        baseline=models[BASELINE] if BASELINE in baselines_for(config, method, table) else None,
        floor=models[TRIVIAL],
        runs=tuple(runs),
        score_rows=frame,
        gaps=found,
        split=divided,
        test=replace(parts[2], entities=table.take(divided.test).entities),
        recipe=config,
        table=table,
        seconds=time.perf_counter() - started,
    )


def learnt_before(config: RunConfig) -> np.ndarray:
    """Hashes of the molecules whose labels the model learnt that the training starts from; none without one."""
    start = None if config.model.init is None else load_start(config.model.init)
    known = None if start is None else start.trained_on
    return np.zeros(0, np.uint64) if known is None else known


def known_words(hashes: np.ndarray, divided: Split, before: np.ndarray, init: str | None) -> str:
    """How many valid and test rows the model had learnt that the training starts from; empty where none."""
    counts = {part: int(np.isin(hashes[getattr(divided, part)], before).sum()) for part in ("valid", "test")}
    if not any(counts.values()):
        return ""
    rows = " and ".join(f"{n:,} of {len(getattr(divided, part)):,} {part} rows" for part, n in counts.items() if n)
    return f"{rows} hold molecules whose values {init} learnt from: the scores flatter the model that starts from it"


def run_folder(workdir: str | Path | None, config: RunConfig, divided: Split) -> Path | None:
    """A folder in ``workdir`` for this recipe on these rows, so that another run's checkpoint is never met."""
    if workdir is None:
        return None
    folder = Path(workdir) / hashlib.sha256((config.to_json() + divided.hash).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder

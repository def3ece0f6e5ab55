"""Train a model on a table of molecules, beside a baseline and on a split."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.api.baselines import (
    BASELINE,
    SCRATCH,
    TRIVIAL,
    MethodRun,
    add_descriptors,
    baselines_for,
    controls_for,
    is_graph,
    method_of,
    model_of,
    run_methods,
)
from molgraph.api.censoring import learning_limits
from molgraph.api.check_config import as_its_start, recipe_of, with_start
from molgraph.api.helpers import check_helpers, helped_parts, split_helpers
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
from molgraph.data.table import Table, concatenate
from molgraph.data.target_json import notes_of
from molgraph.evaluate import metrics
from molgraph.evaluate.payoff import Payoff, payoffs
from molgraph.evaluate.sides import Gap, gaps
from molgraph.train.model import Model
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
        data: a path (csv, csv.gz, tsv, parquet, xlsx, sdf, smi, xyz, npz), a frame, a table, or ``dataset:esol``
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
    config = as_its_start(with_start(recipe_of(recipe, given)))
    if not get("objective", config.training.objective).labelled:
        raise UnsupportedError(
            f"{config.training.objective} learns no targets, and train does", hint="molgraph pretrain trains by it"
        )
    started = time.perf_counter()
    method = method_of(config)  # what it refuses is refused before an hour of reading
    if config.data.qualifiers == "learn":
        config, method = learning_limits(config, method)
    if unlabelled is not None or config.data.unlabelled is not None:
        check_unlabelled(config, method)
    if config.data.features and not all(part.reads_features for part in method.innermost):
        raise UnusedSettingError(f"{config.model.name} reads no columns of features", hint="leave them out (--feature)")
    helped = config.data.helpers is not None or get("objective", config.training.objective).helped
    if helped:
        check_helpers(config, method)
    source = data if data is not None else config.data.path
    table = full = read_for_training(source, split_helpers(config)[0] if helped else config, method)
    if helped:
        table = table.with_targets([table.targets[0].name])
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
    if known := known_words(hashes, divided, config.model.init):
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
    own = helped_parts(parts, full, config, (divided.train, divided.valid)) if helped else parts
    if more is not None:
        own = [concatenate(parts[0], read_unlabelled(more, config, parts[0])), *parts[1:]]
    runs = run_methods(config, method, parts, folder, own)
    scores = {run.name: metrics.score(parts[2], run.prediction) if len(parts[2]) else [] for run in runs}
    frame = metrics.scores_frame(scores)
    alone = {run.name: run.prediction for run in runs}
    sides = controls_for(config, method, parts[0])
    how: dict[str, Any] = {"mean": alone.get(TRIVIAL), "seed": config.training.seed}
    found: tuple[Gap | Payoff, ...] = gaps(parts[2], sides, runs[0].prediction, alone, **how) if len(parts[2]) else ()
    found += paid(config, runs, parts[2])
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
        gaps=tuple(found),
        split=divided,
        test=replace(parts[2], entities=table.take(divided.test).entities),
        recipe=config,
        table=table,
        seconds=time.perf_counter() - started,
    )


def paid(config: RunConfig, runs: Sequence[MethodRun], test: Table) -> tuple[Payoff, ...]:
    """Whether a start from a file paid, beside the same model from scratch and a forest."""
    others = {run.name: run.prediction for run in runs[1:] if run.name != TRIVIAL}
    others = {f"training{SCRATCH}" if name.endswith(SCRATCH) else name: each for name, each in others.items()}
    if config.model.init is None or not len(test):
        return ()
    return payoffs(test, runs[0].prediction, others, seed=config.training.seed)


def learnt_before(config: RunConfig) -> np.ndarray:
    """Hashes of the molecules whose labels the model learnt that the training starts from; none without one."""
    start = None if config.model.init is None else load_start(config.model.init)
    known = None if start is None or not knows_values(start) else start.trained_on
    return np.zeros(0, np.uint64) if known is None else known


def knows_values(start: Model) -> bool:
    """Whether a model has learnt values of molecules, and not their structures alone."""
    objective = getattr(start.method, "objective", None)
    return bool(start.targets) or (objective is not None and bool(get("objective", objective).tasks))


def known_words(hashes: np.ndarray, divided: Split, init: str | None) -> str:
    """How many valid and test rows hold molecules of the model that the training starts from; empty where none."""
    start = None if init is None else load_start(init)
    if start is None or start.trained_on is None:
        return ""
    counts = {part: int(np.isin(hashes[getattr(divided, part)], start.trained_on).sum()) for part in ("valid", "test")}
    if not any(counts.values()):
        return ""
    rows = " and ".join(f"{n:,} of {len(getattr(divided, part)):,} {part} rows" for part, n in counts.items() if n)
    if knows_values(start):
        return (
            f"{rows} hold molecules whose values {init} learnt from: the scores flatter the model that starts from it"
        )
    return f"{rows} hold molecules that {init} was pretrained on, without their values"


def run_folder(workdir: str | Path | None, config: RunConfig, divided: Split) -> Path | None:
    """A folder in ``workdir`` for this recipe on these rows, so that another run's checkpoint is never met."""
    if workdir is None:
        return None
    folder = Path(workdir) / hashlib.sha256((config.to_json() + divided.hash).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder

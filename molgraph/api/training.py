"""Train a model on a table of molecules, beside a baseline and on a split."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from molgraph.base.options import takes
from molgraph.base.recipe_keys import FINETUNE_KEYWORDS
from molgraph.base.run_config import RunConfig
from molgraph.run.config import TRAIN_KEYWORDS, train_config
from molgraph.run.fit import learn
from molgraph.run.prepare import prepare
from molgraph.run.result import TrainingResult


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
    started = time.perf_counter()
    config = train_config(recipe, options, params, data, test, unlabelled)
    return learn(prepare(config, data, test=test, unlabelled=unlabelled), workdir, started)


@takes({name: keyword for name, keyword in FINETUNE_KEYWORDS.items() if name != "test"})
def finetune(encoder: str | Path, data: Any = None, **options: Any) -> TrainingResult:
    """Train a model that starts from the weights of a pretrained encoder: ``train(data, init=encoder, ...)``.

    The head is learnt alone first, on an encoder by ridge regression, then all weights are, and the mean of the weights
    before and after is kept (``callback="lp-ft(share=0.05, probe=auto, mix=0.5)"``); ``"none"`` trains all at once. The
    result says whether that paid, beside a forest and, of fewer than 2,000 rows, the same model from scratch.

    Args:
        encoder: the file of a pretrained encoder, or of a graph model; it says the model and its parameters.
        data: what ``train`` takes.
        **options

    Returns:
        The trained model with its scores, baseline, split and report.

    Raises:
        DataError: the table cannot be used as asked. UsageError: a name or value that is not known.
    """
    return train(data, init=str(encoder), **options)

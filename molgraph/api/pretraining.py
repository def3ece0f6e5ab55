"""Pretrain an encoder on molecules without targets, or a whole network on many tasks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from molgraph.base.options import takes
from molgraph.base.recipe_keys import PRETRAIN_KEYWORDS
from molgraph.base.registry import get
from molgraph.base.run_config import RunConfig
from molgraph.run.config import corpus_values
from molgraph.run.corpus import learn_corpus, pretraining_config, pretraining_method
from molgraph.train.model import Model
from molgraph.train.training_molecules import distinct, molecule_hashes


@takes(PRETRAIN_KEYWORDS)
def pretrain(
    data: Any = None,
    *,
    params: Mapping[str, Any] | None = None,
    recipe: RunConfig | str | Path | None = None,
    workdir: str | Path | None = None,
    **options: Any,
) -> Model:
    """Pretrain an encoder on molecules without targets, or by ``maml`` encoder and head on targets that are its tasks.

    A twentieth of the rows, drawn at random, picks the weights and stops the training early. ``train(...,
    init=FILE)`` starts a model from the encoder, ``embed`` gives its vectors.

    Args:
        data: a path (csv, csv.gz, tsv, parquet, sdf, smi), a frame, a list of SMILES, a table, or ``dataset:zinc250k``.
        params: the encoder's own parameters, such as ``{"depth": 4}``, and the objective's:
            ``{"objective.rate": 0.25}``.
        **options
        recipe: a recipe or its TOML file; keywords given beside it override it.
        workdir: a folder for what a resume needs; the same call goes on there after a kill. The encoder as it was
            after the best epoch so far is ``early.mgm`` there, and can be used at once.

    Returns:
        The encoder as a model without targets; ``save`` it. ``model.method.curves`` has the losses by epoch.

    Raises:
        DataError: the table cannot be used as asked. UsageError: a name or value that is not known.

    Example:
        >>> import molgraph
        >>> model = molgraph.pretrain("builtin:chembl2321810", params={"d_hidden": 16}, epochs=2)
        >>> losses = model.method.curves["train_loss"]
        >>> bool(losses.iloc[1] < losses.iloc[0]), molgraph.embed(model, ["CCO"]).value.shape
        (True, (1, 16))
    """
    config = pretraining_config(recipe, corpus_values(PRETRAIN_KEYWORDS, options, data, params))
    method = pretraining_method(config)
    objective = get("objective", method.objective)
    part = "an encoder and head" if objective.tasks and objective.trains_head else "an encoder"
    what = f"{part} pretrained by {method.objective}"
    model, table = learn_corpus(data, config, method, what, workdir)
    model.trained_on = distinct(molecule_hashes(table))  # a model that starts here says which of its own rows these are
    return model

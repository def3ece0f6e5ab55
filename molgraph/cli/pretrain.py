"""``molgraph pretrain``: pretrain an encoder from which ``molgraph finetune`` starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from molgraph.base.errors import UsageError
from molgraph.base.printable import count
from molgraph.base.recipe_keys import PRETRAIN_KEYWORDS
from molgraph.base.run_config import RunConfig
from molgraph.cli.options import argument, check_writable
from molgraph.cli.recipe_options import Assignments, RecipeFile, output, recipe_values, takes_recipe
from molgraph.cli.train import ending, model_file, more_commands, resumable, save

if TYPE_CHECKING:
    from molgraph.train.model import Model


@takes_recipe(PRETRAIN_KEYWORDS)
def pretrain(
    data: Annotated[
        str | None, argument("csv, csv.gz, tsv, parquet, sdf, smi, or dataset:NAME; else the recipe's path.")
    ] = None,
    *,
    recipe: RecipeFile = None,
    set_: Assignments = None,
    out: Annotated[
        Path | None, output("--out", "-o", help="The encoder, written over if it is there.", default="encoder.mgm")
    ] = None,
    **options: Any,
) -> None:
    """Learn an encoder, with or without targets, for models to start from.

    Objectives (molgraph models --kind objective): descriptors learns what RDKit
    computes, contrast matches two views of a molecule, masked-atoms hides atoms
    and predicts their elements, infograph matches atoms with their molecule,
    grover predicts contexts and functional groups. Of targets that are tasks,
    such as assays (-t 'SR-*'), prototypes and ridge learn states from which a
    few molecules of a new assay tell the others; maml and reptile learn weights
    from which a few steps lead to a new one. A random twentieth of the rows picks the best epoch. A
    run that was stopped goes on when the same command is given again; meanwhile
    OUT.work/early.mgm is the encoder so far.

    Examples:
        molgraph pretrain library.smi -o encoder.mgm
        molgraph pretrain dataset:zinc250k -m gin --epochs 5 -o gin.mgm
        molgraph pretrain library.smi --objective descriptors --callback probe
        molgraph pretrain library.smi -m gin --objective contrast --views mask+drop
        molgraph pretrain library.csv --objective "masked-atoms(rate=0.25)"
        molgraph finetune encoder.mgm assay.csv -t pIC50 -o assay.mgm
        molgraph embed encoder.mgm library.smi -o vectors.parquet
        molgraph pretrain assays.csv -t a -t b --objective maml -o init.mgm
        molgraph train new.csv -t c --init init.mgm -o new.mgm
    """
    from molgraph.cli.show import command
    from molgraph.run.corpus import pretraining_config

    values = recipe_values(PRETRAIN_KEYWORDS, {"path": data, **options})
    config = pretraining_config(recipe, values).override(*set_ or [])
    out, model = learn_corpus("pretrain", config, recipe, out, Path("encoder.mgm"))
    graphs, suffix = "graph" in dict(model.columns_read), ending(model, config)  # no file has graphs
    labelled = [config.data.path] if graphs else [f"assay.{suffix}", "--target", "Y"]
    corpus = config.data.path if graphs else f"library.{suffix}"
    command(["molgraph", "finetune", out, *labelled, "-o", "model.mgm"], err=True)
    command(["molgraph", "embed", out, corpus, "-o", "vectors.parquet"], err=True)
    more_commands(model, out, str(corpus))


def learn_corpus(
    verb: str, config: RunConfig, recipe: Path | None, out: Path | None, default: Path
) -> tuple[Path, Model]:
    """Train on a table without targets by a verb of ``molgraph.api``, and write the model; its file and itself."""
    from molgraph import api
    from molgraph.cli.show import say

    fresh, out = out is None, model_file(out or default)
    if fresh and out.exists():
        raise UsageError(f"{out} is there already", hint=f"name another file, or write over it: -o {out}")
    check_writable(out, inputs=(config.data.path, recipe, config.model.init))
    with resumable(out) as workdir:
        model = getattr(api, verb)(recipe=config, workdir=workdir)
        save(model, out)
    curves = model.method.curves
    if curves is not None:
        best = curves.iloc[model.method.best_epoch - 1]
        epochs = f"{count(len(curves), 'epoch')}, the best {int(best['epoch'])}"
        losses = f"train loss {best['train_loss']:.3f}, valid {best['valid_loss']:.3f}"
        say(f"{model.card.what}: {epochs} ({losses})")
    say(f"{default.stem} written to {out}", err=True)
    say("next:", err=True)
    return out, model

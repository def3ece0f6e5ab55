"""``molgraph pretrain``: pretrain an encoder from which ``molgraph finetune`` starts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from molgraph.base.errors import UsageError
from molgraph.base.printable import count
from molgraph.base.recipe_keys import PRETRAIN_KEYWORDS
from molgraph.base.run_config import RunConfig
from molgraph.cli.options import argument, check_writable
from molgraph.cli.recipe_options import Assignments, RecipeFile, given, output, takes_recipe
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

    The objective masked-atoms hides some atoms of each molecule and trains the
    encoder to predict their elements. The objective infograph trains it to tell,
    by the vector of a molecule, its atoms from those of other molecules. The
    objective maml takes each target, such as an assay, as a task, and learns an
    encoder and a head that adapt to a new task in a few steps. A random
    twentieth of the rows picks the best epoch. A run that was stopped goes on
    when the same command is given again.

    Examples:
        molgraph pretrain library.smi -o encoder.mgm
        molgraph pretrain dataset:zinc250k -m gin --epochs 5 -o gin.mgm
        molgraph pretrain library.smi -m gin --objective infograph -o encoder.mgm
        molgraph pretrain library.csv --objective "masked-atoms(rate=0.25)"
        molgraph finetune encoder.mgm assay.csv -t pIC50 -o assay.mgm
        molgraph embed encoder.mgm library.smi -o vectors.parquet
        molgraph pretrain assays.csv -t a -t b --objective maml -o init.mgm
        molgraph train new.csv -t c --init init.mgm -o new.mgm
    """
    from molgraph.api.pretraining import pretraining_recipe
    from molgraph.cli.show import command

    plan = pretraining_recipe(recipe, given(PRETRAIN_KEYWORDS, {"path": data, **options})).override(*set_ or [])
    out, model = learn_corpus("pretrain", plan, recipe, out, Path("encoder.mgm"))
    own, like = "graph" in dict(model.columns_read), ending(model, plan)  # no file has graphs
    labelled = [plan.data.path] if own else [f"assay.{like}", "--target", "Y"]
    corpus = plan.data.path if own else f"library.{like}"
    command(["molgraph", "finetune", out, *labelled, "-o", "model.mgm"], err=True)
    command(["molgraph", "embed", out, corpus, "-o", "vectors.parquet"], err=True)
    more_commands(model, out, str(corpus))


def learn_corpus(
    verb: str, plan: RunConfig, recipe: Path | None, out: Path | None, default: Path
) -> tuple[Path, Model]:
    """Train on a table without targets by a verb of ``molgraph.api``, and write the model; its file and itself."""
    from molgraph import api
    from molgraph.cli.show import say

    fresh, out = out is None, model_file(out or default)
    if fresh and out.exists():
        raise UsageError(f"{out} is there already", hint=f"name another file, or write over it: -o {out}")
    check_writable(out, inputs=(plan.data.path, recipe, plan.model.init))
    with resumable(out) as workdir:
        model = getattr(api, verb)(recipe=plan, workdir=workdir)
        save(model, out)
    curves = model.method.curves
    if curves is not None:
        best = curves.iloc[model.method.best_epoch - 1]
        epochs = f"{count(len(curves), 'epoch')}, the best {int(best['epoch'])}"
        said = f"train loss {best['train_loss']:.3f}, valid {best['valid_loss']:.3f}"
        say(f"{model.card.what}: {epochs} ({said})")
    say(f"{default.stem} written to {out}", err=True)
    say("next:", err=True)
    return out, model

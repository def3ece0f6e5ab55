"""``molgraph finetune``: train a model that starts from a pretrained encoder."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from molgraph.base.errors import ConflictError
from molgraph.base.recipe_keys import FINETUNE_KEYWORDS
from molgraph.cli.options import argument
from molgraph.cli.recipe_options import Assignments, RecipeFile, takes_recipe
from molgraph.cli.train import Data, Keep, Out, Report, SaveRecipe, train


@takes_recipe(FINETUNE_KEYWORDS)
def finetune(
    encoder: Annotated[str, argument("A pretrained encoder, or a graph model (.mgm).")],
    data: Data = None,
    *,
    recipe: RecipeFile = None,
    set_: Assignments = None,
    out: Out = None,
    keep: Keep = "all",
    report: Report = None,
    save_recipe: SaveRecipe = None,
    model: Annotated[str | None, typer.Option("--model", "-m", hidden=True)] = None,
    **options: Any,
) -> None:
    """Train a model that starts from a pretrained encoder.

    This is `molgraph train --init ENCODER`: the model is the encoder's, with
    its parameters and weights, and a new head, or the file's where that learnt
    the same targets. The head is learnt alone first, by ridge regression, then
    all weights are; what is kept is the mean of the weights before and after
    (--callback 'lp-ft(share=0.05, probe=auto, mix=0.5)', the default for an
    encoder). After `pretrain --objective prototypes` or `ridge` the head is set
    in one pass over the rows. Others are in `molgraph models --kind callback`,
    and --callback none trains all at once.
    Beside it a random forest is trained and, of fewer than 2,000 rows, the
    same model from scratch (--compare): a sentence says whether the start
    paid. A pretrained encoder often needs a smaller step size than one with
    random weights: --learning-rate 3e-4.

    Examples:
        molgraph pretrain library.smi -m gin --method infograph -o encoder.mgm
        molgraph finetune encoder.mgm assay.csv -t pIC50 -o assay.mgm
        molgraph finetune encoder.mgm assay.csv -t pIC50 --callback mixout
        molgraph finetune assay.mgm later.csv -t pIC50 -o later.mgm
    """
    if model is not None:
        hint = f"leave -m out; to train {model} without pretraining: molgraph train {data or 'assay.csv'} -m {model}"
        raise ConflictError(f"finetune takes no -m: the model is the one in {encoder}", hint=hint)
    written: dict[str, Any] = {"out": out, "keep": keep, "report": report, "save_recipe": save_recipe}
    train(data, recipe=recipe, set_=set_, init=encoder, **written, **options)

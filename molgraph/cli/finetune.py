"""``molgraph finetune``: train a model that starts from a pretrained encoder."""

from __future__ import annotations

from typing import Annotated, Any

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
    **options: Any,
) -> None:
    """Train a model that starts from a pretrained encoder.

    This is `molgraph train --init ENCODER`: the model is the encoder's, with
    its parameters and weights, and a new head; all of it is trained, beside
    a random forest that no pretraining helps. A pretrained encoder often wants
    a smaller step size than one that starts anew: --learning-rate 3e-4.

    Examples:
        molgraph pretrain library.smi -m gin --method infograph -o encoder.mgm
        molgraph finetune encoder.mgm assay.csv -t pIC50 -o assay.mgm
        molgraph finetune encoder.mgm assay.csv -t pIC50 --learning-rate 3e-4
        molgraph finetune assay.mgm later.csv -t pIC50 -o later.mgm
    """
    written: dict[str, Any] = {"out": out, "keep": keep, "report": report, "save_recipe": save_recipe}
    train(data, recipe=recipe, set_=set_, init=encoder, **written, **options)

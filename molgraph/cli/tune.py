"""``molgraph tune``: search a method's hyper-parameters inside the training part, and train with the best ones."""

from __future__ import annotations

from typing import Annotated, Any

from molgraph.base.errors import BadValueError
from molgraph.base.recipe_keys import TUNE_KEYWORDS
from molgraph.cli.options import check_whole, option
from molgraph.cli.recipe_options import Assignments, RecipeFile, recipe_values, takes_recipe
from molgraph.cli.train import (
    Data,
    Keep,
    Out,
    Report,
    SaveRecipe,
    check_outputs,
    resumable,
    tell_written,
    write_models,
)

SHOWN = 10  # trials that are printed


@takes_recipe(TUNE_KEYWORDS)
def tune(
    data: Data = None,
    *,
    trials: Annotated[int, option("N", "Sets of parameters that are tried, the defaults first.")] = 20,
    budget: Annotated[str | None, option("TIME", "For all trials: 90s, 10m, 2h; no limit if not given.")] = None,
    folds: Annotated[int, option("N", "Inner folds of the training part that score a trial.")] = 3,
    latency: Annotated[
        str | None, option("N/s", "Molecules/s that predict should reach: trials are compared by score and speed.")
    ] = None,
    latency_weight: Annotated[float, option("W", "Of score * (latency / target)^W; 0 leaves the score alone.")] = -0.07,
    recipe: RecipeFile = None,
    set_: Assignments = None,
    out: Out = None,
    keep: Keep = "all",
    report: Report = None,
    save_recipe: SaveRecipe = None,
    **options: Any,
) -> None:
    """Search a method's hyper-parameters, and train with the best ones.

    The table is split as train splits it. Each trial is scored out of fold
    inside the training part, which is divided again as the split divided the
    table (new scaffolds are tried by new scaffolds); no trial sees the valid
    or the test part. Then the model is trained with the best parameters as
    train would, beside its baseline, and the command that repeats that
    training is printed. A parameter that is given (-s params.depth=4) is not
    searched. With --latency the molecules/s of predict are measured in each
    trial, depth, width or trees are searched too, and trials are compared by
    score * (latency / target)^-0.07 (of an error 1 / error): at half the
    speed a score is worth 0.953 of itself. A trial that fails is a row with a reason. After a kill or
    Ctrl-C the same command goes on, and ends as one that was not stopped.

    Examples:
        molgraph tune assay.csv -m random_forest -t pIC50 --trials 20 -o tuned.mgm
        molgraph tune assay.csv -m dmpnn -t pIC50 --budget 2h --report tuned.html -o tuned.mgm
        molgraph tune assay.csv -m dmpnn -t pIC50 --latency 5000/s -o quick.mgm
        molgraph tune assay.csv -m xgboost -t active --split random --folds 5 -o tuned.mgm
        molgraph tune assay.csv -m xgboost -t active -s params.n_estimators=300 -o tuned.mgm
    """
    from molgraph import api
    from molgraph.base.durations import seconds_of
    from molgraph.cli.show import say, show_result, table

    check_whole("--trials", trials)
    if folds < 2:
        raise BadValueError(f"--folds is {folds}, expected 2 or more", hint="as in --folds 3")
    if budget is not None:
        seconds_of(budget)
    values = recipe_values(TUNE_KEYWORDS, {"path": data, **options})
    config, out = check_outputs(values, recipe, set_, out, keep, report, save_recipe)
    with resumable(out) as workdir:
        speed = {"latency": latency, "latency_weight": latency_weight}
        result = api.tune(trials=trials, budget=budget, folds=folds, recipe=config, workdir=workdir, **speed)
        written = write_models(result.training, out, keep)
    shown = (
        result.trials.map(lambda value: f"{value:.4g}" if isinstance(value, float) else value)
        .set_index("trial")
        .drop(columns="reason" if not (result.trials["reason"] != "").any() else [])
    )
    table(shown.head(SHOWN), title=f"The best {min(SHOWN, len(shown))} of {len(shown)} trials, out of fold")
    show_result(result.training, keep)
    say(result.sentence, "bold")
    tell_written(result.training, out, written, keep, save_recipe, report, result.report)
    say("the best parameters:", err=True)
    say(f"  {result.command}", "cyan")

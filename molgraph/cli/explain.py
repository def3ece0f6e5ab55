"""``molgraph explain``: draw molecules with their atoms and bonds coloured by a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.errors import ConflictError
from molgraph.base.paths import check_ending
from molgraph.cli.options import Ids, argument, check_whole, check_writable, option, out_option
from molgraph.cli.predict import source_of


def explain(
    model: Annotated[str, argument("A graph model's file (.mgm).")],
    data: Annotated[list[str], argument("SMILES, or a file of molecules.")],
    by: Annotated[
        str, option("NAME", "An explainer, with its settings; by the model if not given.", "--by", "--how")
    ] = "",
    audit: Annotated[str, option("NAME", "attention: whether its weights explain the predictions.")] = "",
    smooth: Annotated[float | None, option("BETA", "Explain gradients with softplus in the place of ReLU.")] = None,
    fragility: Annotated[
        bool, typer.Option("--fragility", help="How far gradients' map moves at an equal prediction.")
    ] = False,
    faithfulness: Annotated[
        bool, typer.Option("--faithfulness/--no-faithfulness", help="Measure deletion curves.")
    ] = True,
    counterfactuals: Annotated[
        int | None, option("N", "Nearest molecules on the other side: changed in one group, and measured ones.")
    ] = None,
    change: Annotated[
        float | None, option("X", "Difference of a number that is the other side; half its interval if not given.")
    ] = None,
    n: Annotated[int, option("N", "Molecules of a file that are explained.", "-n")] = 50,
    id: Ids = None,
    out: Annotated[Path | None, out_option("A page (.html), one molecule (.svg) or the values (.csv).")] = None,
) -> None:
    """Show what a model holds of the atoms and bonds of molecules.

    Without --by the model chooses: contributions, shap, gradients or infill.
    Where the values explain predictions, each molecule has the area under its
    deletion curve beside that of random orders: lower is more faithful.

    gradients colours atoms by integrated gradients of a network; shap by exact
    Shapley values of Morgan bits (forests, boosted trees, linear models);
    attention by the weights of a readout, which --audit attention tests;
    contributions colours atoms by what each adds to a prediction that is their
    exact sum (additive); infill marks the fragments that a prediction falls
    without, where fragments of a library stand in their place; occlusion hides
    single atoms; clusters colours atoms by the clusters into which structpool or
    pyg_pool put them; salience colours bonds by the states that rfm gives them;
    bits shows the fragments that a bit of a neural_fingerprint stands for.

    --counterfactuals adds, of each molecule, the most similar ones that are
    predicted, or were measured, on the other side of its prediction.

    Examples:
        molgraph explain model.mgm "CC(=O)Nc1ccc(O)cc1" -o page.html
        molgraph explain model.mgm "CC(=O)Nc1ccc(O)cc1" --counterfactuals 3 -o page.html
        molgraph explain dmpnn.mgm CCO --how gradients --smooth 1 --fragility
        molgraph explain attentive.mgm library.smi --audit attention -o audit.html
        molgraph explain forest.mgm library.smi --by shap -o atoms.csv
        molgraph explain structpool.mgm CCO c1ccccc1O --by clusters -o page.html
        molgraph explain rfm.mgm library.smi --by "salience(block=core)" -o bonds.csv
        molgraph explain nfp.mgm library.smi --by "bits(bit=7, top=4)" -o bit.html
        molgraph explain model.mgm CCOc1ccccc1C(=O)O --by infill -o infill.html
    """
    check_whole("-n", n)
    check_whole("--counterfactuals", counterfactuals)
    check_writable(out, inputs=[model, *data])
    check_ending(out, ".html", ".svg", ".csv")
    from molgraph import api
    from molgraph.cli.show import say
    from molgraph.data.read import read_table
    from molgraph.explain.counterfactuals import with_counterfactuals
    from molgraph.explain.named import with_ids

    if audit and by:
        raise ConflictError("--audit names an explainer, as --by does", hint="leave --by out")
    by, settings = audit or by, ["audit=true"] if audit else []
    settings += [] if smooth is None else [f"smooth={smooth:g}"]
    settings += ["fragility=true"] * fragility
    if settings:  # settings as any other
        name, _, rest = (by or "gradients").partition("(")
        by = f"{name}({', '.join(settings)}{', ' if rest else ')'}{rest}"
    table = read_table(source_of(data), id=id)
    explanations = api.explain(model, table.smiles.tolist()[:n], by=by, faithfulness=faithfulness)
    explanations = with_ids(explanations, table.ids.tolist()[:n])
    if counterfactuals:
        ids = table.ids.tolist()[:n] if explanations.captions and id is not None else ()
        explanations = with_counterfactuals(explanations, api.load(model), counterfactuals, ids, change=change)
    if out is not None:
        explanations.save(out)
    say(repr(explanations))
    if out is not None:
        say(f"written to {out}", err=True)

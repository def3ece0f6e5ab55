"""``molgraph explain``: draw molecules with their atoms and bonds coloured by a trained model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from molgraph.base.paths import check_ending
from molgraph.cli.options import Ids, argument, check_whole, check_writable, option, out_option
from molgraph.cli.predict import source_of


def explain(
    model: Annotated[str, argument("A graph model's file (.mgm).")],
    data: Annotated[list[str], argument("SMILES, or a file of molecules.")],
    by: Annotated[str, option("NAME", "An explainer, with its settings: molgraph models --kind explainer.")],
    n: Annotated[int, option("N", "Molecules of a file that are explained.", "-n")] = 50,
    id: Ids = None,
    out: Annotated[Path | None, out_option("A page (.html), one molecule (.svg) or the values (.csv).")] = None,
) -> None:
    """Show what a model holds of the atoms and bonds of molecules.

    contributions colours atoms by what each adds to a prediction that is their
    exact sum (additive); infill marks the fragments that a prediction falls
    without, where fragments of a library stand in their place; occlusion hides
    single atoms; clusters colours atoms by the clusters into which structpool or
    pyg_pool put them; salience colours bonds by the states that rfm gives them;
    bits shows the fragments that a bit of a neural_fingerprint stands for.

    Examples:
        molgraph explain structpool.mgm CCO c1ccccc1O --by clusters -o page.html
        molgraph explain rfm.mgm library.smi --by "salience(block=core)" -o bonds.csv
        molgraph explain nfp.mgm library.smi --by "bits(bit=7, top=4)" -o bit.html
        molgraph explain model.mgm CCOc1ccccc1C(=O)O --by infill -o infill.html
    """
    check_whole("-n", n)
    check_writable(out, inputs=[model, *data])
    check_ending(out, ".html", ".svg", ".csv")
    from molgraph import api
    from molgraph.cli.show import say
    from molgraph.data.read import read_table
    from molgraph.explain.named import with_ids

    table = read_table(source_of(data), id=id)
    found = with_ids(api.explain(model, table.smiles.tolist()[:n], by=by), table.ids.tolist()[:n])
    if out is not None:
        found.save(out)
    say(repr(found))
    if out is not None:
        say(f"written to {out}", err=True)

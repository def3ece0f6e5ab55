"""``molgraph report``: a page on how good a model file is on measured molecules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from molgraph.cli import options as opt


def report(
    model: opt.ModelFile,
    data: Annotated[str, opt.argument("A table that has the model's target columns; - for standard input.")],
    out: Annotated[Path, opt.out_option("The page (.html).")],
    id: opt.Ids = None,
    smiles: opt.Smiles = None,
    sequence: opt.Sequence = None,
    geometry: opt.Geometry = None,
    reaction: opt.Reaction = None,
    qualifiers: opt.Qualifiers = None,
    decimal: opt.Decimal = None,
    unit: opt.Unit = None,
) -> None:
    """Write the report of a model on any labelled table: the training's page, computed again.

    Scores with 95% intervals, parity plot or ROC, the worst rows drawn with
    your ids (--id, or a column of such a name), the coverage of intervals
    (of conformal models), the error by distance to the training molecules
    (of -m 'domain(MODEL)'), and rows without a prediction with their reason.

    Examples:
        molgraph report model.mgm later.csv -o page.html
        molgraph report model.mgm "book.xlsx::Plate 2" --id "Compound Name" -o page.html
    """
    opt.check_writable(out, inputs=(model, data))
    from molgraph import api
    from molgraph.base.paths import check_ending
    from molgraph.cli.show import say, steps, table

    check_ending(out, ".html")
    columns: dict[str, Any] = {"smiles": smiles, "sequence": sequence, "geometry": geometry, "reaction": reaction}
    columns |= {"id": id, "qualifiers": qualifiers, "decimal": decimal, "unit": unit}
    with steps():
        scores = api.evaluate(model, data, report=out, **{name: value for name, value in columns.items() if value})
    table(scores.set_index("target").drop(columns="note"))
    for note in filter(None, dict.fromkeys(scores["note"])):
        say(f"note: {note}", "yellow", err=True)
    say(f"report written to {out}", err=True)

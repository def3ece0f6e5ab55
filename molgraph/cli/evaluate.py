"""``molgraph evaluate``: score a model file on measured molecules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from molgraph.cli import options as opt


def evaluate(
    model: opt.ModelFile,
    data: Annotated[str, opt.argument("A table that has the model's target columns; - for standard input.")],
    smiles: opt.Smiles = None,
    sequence: opt.Sequence = None,
    geometry: opt.Geometry = None,
    reaction: opt.Reaction = None,
    qualifiers: opt.Qualifiers = None,
    decimal: opt.Decimal = None,
    unit: opt.Unit = None,
    out: Annotated[Path | None, opt.out_option("Write the scores as csv, too.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Write an HTML page: scores with 95% intervals, plots, worst errors.")
    ] = None,
) -> None:
    """Score a model on molecules whose values are known.

    Rows without a measured value, and molecules that cannot be read, are
    not scored; column n says how many were. Values are read as in training
    (decimal commas, qualifiers, units, logarithms), unless said otherwise.
    A score that these rows cannot give is a dash, with the reason below.
    Rows whose molecule the model learnt from are counted in a warning.

    Examples:
        molgraph evaluate model.mgm later.csv
        molgraph evaluate model.mgm later.csv -o scores.csv --report page.html
    """
    opt.check_writable(out, report, inputs=(model, data))
    from molgraph import api
    from molgraph.base.csv_text import write_csv
    from molgraph.base.errors import EmptyError
    from molgraph.cli.show import say, steps, table

    columns: dict[str, Any] = {"smiles": smiles, "sequence": sequence, "geometry": geometry, "reaction": reaction}
    columns |= {"qualifiers": qualifiers, "decimal": decimal, "unit": unit}
    with steps():
        scores = api.evaluate(model, data, report=report, **{name: value for name, value in columns.items() if value})
    table(scores.set_index("target").drop(columns="note"))
    for note in filter(None, dict.fromkeys(scores["note"])):
        say(f"note: {note}", "yellow", err=True)
    if out is not None:
        write_csv(out, scores)
        say(f"scores written to {out}", err=True)
    if report is not None:
        say(f"report written to {report}", err=True)
    if not (scores["n"] > 0).any():
        raise EmptyError("no row could be scored", hint="a row needs a molecule that can be read and a measured value")

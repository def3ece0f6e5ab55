"""``molgraph rank``: rank candidate molecules by a model's predictions and intervals."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from molgraph.cli import options as opt


def rank(
    model: opt.ModelFile,
    data: Annotated[str, opt.argument("Molecules to rank: a file, book.xlsx::Sheet, or - for standard input.")],
    want: Annotated[str, opt.option("high|low|VALUE", "What is better; or a value to be near to.")] = "high",
    target: Annotated[str | None, opt.option("COLUMN", "Which target of several.")] = None,
    n: Annotated[int, typer.Option("-n", metavar="N", help="Molecules to make, and molecules to measure.")] = 10,
    coverage: Annotated[
        float | None, opt.option("SHARE", "Of the intervals; a smaller one takes more risk. 0.9 if not given.")
    ] = None,
    out: Annotated[str, opt.out_option("csv, parquet or xlsx; - for the screen.")] = "-",
    smiles: opt.Smiles = None,
    id: opt.Ids = None,
) -> None:
    """Rank molecules by a model: what to make first, how sure, why, and what to measure.

    The order is by the end of the interval that speaks against a molecule.
    The first within the domain have the advice 'make'; 'measure' have the
    others whose good end is best, which the model cannot tell from them.
    Molecules that the model learnt from, that stand twice, or that have no
    prediction say so. Every row is there, with its id, interval, domain and
    the nearest training molecule with its id and value; logarithms in the
    unit of the values too.

    Examples:
        molgraph rank assay.mgm ideas.csv -n 10 -o list.xlsx
        molgraph rank clearance.mgm "book.xlsx::Ideas" --want low -o list.xlsx
        molgraph rank logd.mgm ideas.csv --want 2.5

    In Python: molgraph.rank("assay.mgm", "ideas.csv", want="low")
    """
    from molgraph import api
    from molgraph.cli.latents import check_out, write_frame
    from molgraph.cli.predict import source_of

    opt.check_whole("-n", n)
    check_out(out, data, str(model), more=(".xlsx",))
    columns: dict[str, Any] = {name: value for name, value in (("smiles", smiles), ("id", id)) if value}
    ranked = api.rank(model, source_of([data]), want=want, target=target, n=n, coverage=coverage, **columns)
    counts = ranked["advice"].value_counts()
    lost = int((ranked["status"] != "ok").sum())
    words = f"{len(ranked):,} rows: {counts.get('make', 0)} to make, {counts.get('measure', 0)} to measure"
    write_frame(ranked, out, words + (f"; {lost:,} without a prediction, with the reason" if lost else ""))

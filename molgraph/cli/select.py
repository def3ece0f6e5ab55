"""``molgraph select``: choose the next plate of molecules to measure by the disagreement of an ensemble's members."""

from __future__ import annotations

from typing import Annotated, Any

from molgraph.cli import options as opt


def select(
    model: opt.ModelFile,
    pool: Annotated[str, opt.argument("Molecules that could be measured: a file, book.xlsx::Sheet, or -.")],
    batch: Annotated[int, opt.option("N", "Molecules of the plate.")] = 96,
    score: Annotated[
        str | None, opt.option("jsd|jrd|variance|random", "jsd of classes and jrd of numbers if not given.")
    ] = None,
    among: Annotated[
        float, opt.option("X", "Spread the plate over X times as many of the highest scores; 1: the highest alone.")
    ] = 2.0,
    target: Annotated[str | None, opt.option("COLUMN", "Which target of several.")] = None,
    out: Annotated[str, opt.out_option("csv, parquet or xlsx; - for the screen.")] = "-",
    smiles: opt.Smiles = None,
    id: opt.Ids = None,
    seed: Annotated[int, opt.option("N", "Of --score random, and of the order of equal scores.")] = 0,
) -> None:
    """Choose the next plate to measure, by what an ensemble would learn from it.

    MODEL is an ensemble (`molgraph train ... --ensemble 5`). Where its members
    disagree, the measured molecules do not decide, and a new value teaches
    most; where all say that they are unsure, the assay is noisy, and a value
    teaches little. The score is the Jensen-Shannon divergence of classes
    (jsd), the Jensen-Renyi divergence of numbers (jrd; members trained with
    -s params.head=gaussian have a variance of their own), or the variance of
    the members' values. Of the rows with the highest scores, twice as many as
    the plate has places, those are taken that are least alike (--among).

    Columns: rank, id, input, score, the mean and spread of the members,
    reason. Rows that cannot be read, that the model learnt from, or that
    stand in the pool twice are left out, and counted with their reasons.

    Examples:
        molgraph train assay.csv -t pIC50 -m dmpnn --ensemble 5 -s params.head=gaussian -o assay.mgm
        molgraph select assay.mgm pool.smi --batch 96 -o plate.csv
        molgraph select assay.mgm pool.smi --score variance --among 1 -o plate.csv
        molgraph select assay.mgm "book.xlsx::In stock" --batch 24 -o plate.xlsx

    In Python: molgraph.select("assay.mgm", "pool.smi", batch=96)
    """
    from molgraph import api
    from molgraph.base.printable import count
    from molgraph.cli.latents import check_out, write_frame
    from molgraph.cli.predict import source_of
    from molgraph.cli.show import say

    opt.check_whole("--batch", batch)
    check_out(out, pool, str(model), more=(".xlsx",))
    columns: dict[str, Any] = {name: value for name, value in (("smiles", smiles), ("id", id)) if value}
    options: dict[str, Any] = {"batch": batch, "score": score, "among": among, "target": target, "seed": seed}
    plate = api.select(model, source_of([pool]), **options, **columns)
    write_frame(plate, out, count(len(plate), "molecule") + " to measure")
    for reason, n in plate.attrs["left_out"].items():
        say(f"  left out: {n:,} x {reason}", "dim", err=True)

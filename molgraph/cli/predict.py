"""``molgraph predict``: a model file and molecules in, a file of predictions row for row out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from molgraph.cli.options import PRECISION, check_whole, check_writable


def predict(
    model: Annotated[str, typer.Argument(help="A model file (.mgm).")],
    data: Annotated[str, typer.Argument(help="csv, csv.gz, tsv, parquet, sdf, smi, or - for standard input.")],
    out: Annotated[
        str, typer.Option("--out", "-o", metavar="FILE", help="csv, csv.gz, tsv, tsv.gz or parquet; - for the screen.")
    ] = "-",
    smiles: Annotated[str | None, typer.Option(metavar="COLUMN", help="SMILES; found if not given.")] = None,
    id: Annotated[str | None, typer.Option("--id", metavar="COLUMN", help="Ids, written as they are.")] = None,
    on_error: Annotated[str, typer.Option(metavar="keep|drop|stop", help="Rows that cannot be predicted.")] = "keep",
    device: Annotated[str | None, typer.Option(metavar="NAME", help="cpu, cuda or auto; cpu if not given.")] = None,
    threads: Annotated[int | None, typer.Option(metavar="N", help="CPU threads; all if not given.")] = None,
    precision: Annotated[
        str | None, typer.Option(metavar="TYPE", help=f"{PRECISION}; as trained if not given.")
    ] = None,
) -> None:
    """Predict the molecules of a file of any size, row for row and in order.

    A molecule that cannot be read stays a row, with its reason. Classifiers
    give the probability of class 1, or of each class; ensembles their spread
    too. Output grows in OUT.part: a run that was stopped goes on when the
    same command is given again, and gives the same bytes. Memory does not
    grow with the file. Numbers are written as float32 (7 digits).

    Examples:
        molgraph predict model.mgm new.csv -o predicted.csv
        molgraph predict model.mgm library.smi -o predicted.parquet
        echo CCO | molgraph predict model.mgm -
    """
    from molgraph.base.errors import DataError, UsageError, nearest

    if on_error not in ("keep", "drop", "stop"):
        raise UsageError(f"--on-error {on_error!r} is not known", hint=nearest(on_error, ["keep", "drop", "stop"]))
    check_whole("--threads", threads)
    check_writable(out, inputs=(model, data))
    from molgraph import api
    from molgraph.cli.show import command, say

    columns = {name: value for name, value in {"smiles": smiles, "id": id}.items() if value is not None}
    running: dict[str, Any] = {"device": device, "threads": threads, "precision": precision}
    running = {name: value for name, value in running.items() if value is not None}
    try:
        done = api.predict_file(model, data, out, on_error=cast(Any, on_error), running=running, **columns)
    except DataError as error:
        raise DataError(error.message, hint="\n".join(filter(None, (error.hint, _left(out, on_error))))) from error
    if done.note:
        say(f"note: {done.note}", "yellow", err=True)
    rate = (done.rows - done.resumed) / max(done.seconds, 1e-9)
    resumed = f", {done.resumed:,} of them by the run before" if done.resumed else ""
    where = "" if out == "-" else f" to {out}"
    speed = f" ({rate:,.0f} rows/s)" if done.rows - done.resumed > 1000 else ""
    say(f"{done.rows:,} rows{resumed}{where}, {done.seconds:.1f} s{speed}", err=True)
    if done.failed:
        fate = "left out" if on_error == "drop" else "kept, with the reason"
        say(f"{done.failed:,} without a prediction ({fate}):", "yellow", err=True)
        for reason, n in list(done.reasons.items())[:3]:
            say(f"  {n:,} x {reason}", "dim", err=True)
    if done.rows and done.failed == done.rows:
        say("No molecule could be read: is the SMILES column the right one? See also:", err=True)
        command(["molgraph", "data", "audit", data], err=True)


def _left(out: str, on_error: str) -> str:
    """What a run that data stopped leaves beside its output, in words."""
    part = Path(f"{os.path.realpath(out)}.part")
    if out == "-" or not part.is_file():
        return ""
    again = "; --on-error keep goes on from there" if on_error == "stop" else ""
    return f"what came before is kept in {part.name}{again}"

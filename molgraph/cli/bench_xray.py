"""``molgraph bench xray``: compare the splits of a table before any training."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from molgraph.cli.options import Fractions, argument, check_writable, labels, numbers, option, out_option


def xray(
    data: Annotated[str, argument("A file of molecules, dataset:NAME or builtin:NAME.")],
    target: Annotated[list[str] | None, labels("Labels, for shifts and classes; more than one may be.")] = None,
    split: Annotated[
        list[str] | None,
        option("SPLITTER", "A splitter, or a file or folder of row numbers; all if not given.", "--split"),
    ] = None,
    fractions: Fractions = "0.8,0.1,0.1",
    seed: Annotated[int, typer.Option(metavar="N")] = 0,
    smiles: Annotated[str | None, option("COLUMN", "SMILES; found if not given.")] = None,
    split_column: Annotated[str | None, option("COLUMN", "What the splits time, group and column read.")] = None,
    out: Annotated[Path | None, out_option("A page (.html), picture (.png, .svg) or .csv.")] = None,
) -> None:
    """Show what each split of a table asks, before any training.

    How far tested molecules lie from training ones, how labels shift, which
    molecules are on both sides, and which targets have one class in the test.

    Examples:
        molgraph bench xray assay.csv --target pIC50
        molgraph bench xray dataset:bbbp -o bbbp.html
        molgraph bench xray assay.csv -t pIC50 --split random --split lists.json -o xray.png
    """
    from molgraph.base.csv_text import write_csv
    from molgraph.base.paths import check_ending
    from molgraph.base.printable import printable
    from molgraph.base.registry import full_name
    from molgraph.cli.show import command, say
    from molgraph.cli.show import table as show
    from molgraph.data.read import read_table
    from molgraph.evaluate.split_report import SPLITTERS
    from molgraph.evaluate.split_report import xray as look

    check_writable(out, inputs=[data])
    check_ending(out, ".html", ".png", ".svg", ".csv")
    shares = numbers("--fractions", fractions)
    table = read_table(data, smiles=smiles, targets=target, split=split_column)
    names = list(split or [*SPLITTERS, *(["column"] if table.split is not None else [])])
    chosen = {full_name("split", name): _split(table, name) for name in names}
    result = look(table, chosen, fractions=shares, seed=seed, title=printable(Path(data).name))
    if out is not None:  # written before a word is said: the reader of a pipe may leave
        if out.suffix == ".csv":
            write_csv(out, result.to_frame())
        else:
            result.save(out)
    frame = result.to_frame().set_index("split")
    counts = ["train", "valid", "test", "left_out", "groups", "leaking_rows"]
    shown = frame[[*counts, "distance", "near", "far", "shift"]].astype(dict.fromkeys(counts, object))
    shown[counts] = shown[counts].map(lambda v: "-" if v is None or v != v else f"{int(v):,}")
    shown = shown.rename(columns={"left_out": "left out", "leaking_rows": "leaking", "near": "close", "far": "unlike"})
    show(shown, title=f"{result.title}, {result.rows}")
    say("")
    for part in result.parts:
        say(part.name, "bold")
        for line in filter(None, (part.asks, part.verdict(), result.unlike(part))):
            say(f"  {line}")
    if out is not None:
        say(f"written to {out}", err=True)
    else:
        words = ["molgraph", "bench", "xray", data, *(w for t in target or () for w in ("-t", t)), "-o", "xray.html"]
        command(words, "the same as a page with pictures", err=True)


def _split(table: Any, name: str) -> Any:
    """A splitter's name as it is; a file or folder of row numbers as the split that it makes."""
    from molgraph.data.splits import split_table
    from molgraph.data.splits.files import splitter_or_file

    splitter, params = splitter_or_file(name)
    return split_table(table, splitter, quiet=True, **params) if params else name

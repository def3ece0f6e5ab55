"""``molgraph data field``: compute the electrostatic potential of molecules at points around them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.printable import count
from molgraph.cli import options as opt


def field(
    data: Annotated[str, opt.argument("Molecules: csv, csv.gz, tsv, parquet, sdf, smi, - or dataset:NAME.")],
    out: Annotated[Path, opt.out_option("The points, as csv.")],
    points: Annotated[int, opt.option("N", "Points around each molecule.")] = 20,
    seed: Annotated[int, typer.Option(metavar="N")] = 0,
    smiles: opt.Smiles = None,
) -> None:
    """Compute the electrostatic potential at points around molecules; write csv.

    A row for each point: geometry (an XYZ text: one ETKDG conformer with
    hydrogens, and the point as an atom of the symbol *), potential (kcal/mol
    of a unit charge, from Gasteiger charges), and the molecule's SMILES as
    name. Points are drawn at random between 1.4 and 2 van der Waals radii.
    All points of a molecule stay on one side of --split random.

    Examples:
        molgraph data field library.smi -o points.csv
        molgraph data field dataset:esol --points 10 -o points.csv
        molgraph train points.csv --geometry geometry -t potential -m field --split random
    """
    import pandas as pd

    from molgraph.base.csv_text import write_csv
    from molgraph.base.errors import CellError, EmptyError
    from molgraph.base.paths import check_ending
    from molgraph.base.progress import bar
    from molgraph.chem.field import potential_of
    from molgraph.cli.data import named
    from molgraph.cli.show import say, steps
    from molgraph.data.read import read_table

    opt.check_whole("--points", points)
    check_ending(out, ".csv", ".csv.gz")
    opt.check_writable(out, inputs=[data])
    table = read_table(named(data), smiles=smiles)
    texts = [*dict.fromkeys(map(str, table.smiles[table.ok]))]
    rows, reasons = [], Counter[str]()
    with steps(), bar("potentials", len(texts)) as line:
        for text in texts:
            try:
                result = potential_of(text, points, seed=seed)
                rows += [(frame, value, text) for frame, value in zip(result.frames(), result.values, strict=True)]
            except CellError as error:
                reasons[str(error).splitlines()[0].rpartition("': ")[2]] += 1  # without the molecule and the hint
            line.advance()
    for reason, times in reasons.most_common(3):
        say(f"left out: {times:,} x {reason}", "yellow", err=True)
    if not rows:
        raise EmptyError("no molecule of this library has a potential", hint="look at it: molgraph data audit")
    write_csv(out, pd.DataFrame(rows, columns=["geometry", "potential", "name"]))
    sizes = f"{count(len(rows), 'point')} around {count(len(rows) // points, 'molecule')}"
    say(f"{sizes} written to {out}", err=True)

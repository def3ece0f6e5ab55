"""``molgraph data curate``: merge the duplicates of a table, and write it with the user's columns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from molgraph.cli import options as opt

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

    from molgraph.data.curate import Curated
    from molgraph.data.table import Table


def curate(
    data: Annotated[str, opt.argument("csv, csv.gz, tsv, parquet, sdf, smi, or - for standard input.")],
    out: Annotated[Path, opt.out_option("The clean table: .csv or .csv.gz.")],
    target: Annotated[list[str] | None, opt.labels("Labels that duplicates share; again for several.")] = None,
    duplicates: Annotated[
        str, opt.option("mean|median|drop", "Labels of one molecule; drop takes out those that differ.")
    ] = "mean",
    tolerance: Annotated[
        float | None, opt.option("X", "Labels of one molecule that lie further apart are taken out.")
    ] = None,
    removed: Annotated[
        Path | None, opt.option("FILE", "A csv of every row taken out or merged, with the reason.")
    ] = None,
    standardise: opt.Preset = "standard",
    qualifiers: opt.Qualifiers = None,
    decimal: opt.Decimal = None,
    unit: opt.Unit = None,
    smiles: opt.Smiles = None,
    sequence: opt.Sequence = None,
    id: opt.Ids = None,
) -> None:
    """Merge duplicates, take unreadable rows out; write the rest, and a list why.

    Rows of one molecule (largest organic fragment, neutral, stereo kept,
    atom maps off; of one pair, where a second column is named) become one:
    the first, with the mean or median of their labels. Rows without a
    readable molecule or a label are taken out, and what is no molecule: open
    attachment points, no carbon, a metal bound to it. All columns stay; only
    SMILES (by --standardise) and labels change.

    Examples:
        molgraph data curate assay.csv -t pIC50 -o clean.csv
        molgraph data curate assay.csv -t pIC50 -o clean.csv --removed why.csv
        molgraph data curate assay.csv -t pIC50 --tolerance 0.5 -o clean.csv
        molgraph data curate pairs.csv --sequence protein -t Kd -o clean.csv
    """
    import gzip

    from molgraph.base.csv_text import csv_text, write_csv
    from molgraph.base.errors import BadValueError
    from molgraph.base.paths import check_ending, write_whole
    from molgraph.cli.show import command, say
    from molgraph.data.curate import curate as merge
    from molgraph.data.read import read_source
    from molgraph.data.reading.cells import Reading

    check_ending(out, ".csv", ".csv.gz")
    if data.startswith(("dataset:", "builtin:")):
        raise BadValueError(f"{data} is no file", hint="curated editions of datasets: molgraph data info NAME")
    opt.check_writable(out, removed, inputs=[data])
    columns: dict[str, Any] = {"smiles": smiles, "sequence": sequence, "targets": target, "id": id}
    if qualifiers == "learn":
        from molgraph.base.errors import UnsupportedError

        hint = "drop leaves limits out, strip reads them as values; the signs stay in a table that is not curated"
        raise UnsupportedError("a curated table holds numbers, and no limits such as >8", hint=hint)
    read = read_source(data, Reading(decimal, qualifiers or "refuse", unit), keep_columns=True, **columns)
    table = read.table
    merged = merge(table, replicates=duplicates, tolerance=tolerance, standardiser=standardise)
    frame = _clean(read.columns, table, merged)
    notes = [*table.notes, *_follow(frame, table, merged, unit, qualifiers)]
    written = csv_text(frame).encode()
    write_whole(out, gzip.compress(written, mtime=0) if out.suffix == ".gz" else written)
    if removed is not None:
        numbered = all(str(one) == str(row) for row, one in enumerate(table.ids))  # no ids of the source's own
        listed = merged.taken_out.replace({"kept_row": {0: ""}})
        write_csv(removed, listed.drop(columns=["id", "kept_as"] if numbered else []))
    for note in notes:
        say(note, "dim", err=True)
    say(merged.sentence)
    if merged.apart:
        say(merged.apart, "yellow", err=True)
    if not table.targets and (merged.taken_out["action"] == "merged").any():
        say("no --target was named: of duplicates, the first row's cells stay", "yellow", err=True)
    say(f"written to {out}", err=True)
    if removed is not None:
        say(f"what was taken out or merged, and why: {removed}", err=True)
    elif len(merged.taken_out):
        say("the list of what was taken out or merged: --removed why.csv", "dim", err=True)
    if target:
        say("next:", err=True)
        named = [("--smiles", one) for one in smiles or ()] + [("--sequence", one) for one in sequence or ()]
        words = [word for pair in [*named, *(("-t", t) for t in target)] for word in pair]
        command(["molgraph", "train", out, *words], err=True)


def _clean(columns: pa.Table, table: Table, made: Curated) -> pd.DataFrame:
    """The rows that stayed with all columns of the source; cells stand as they were where they mean the same."""
    import numpy as np
    import pandas as pd
    import pyarrow as pa

    from molgraph.data.reading.chunk import as_text

    def cells(column: pa.ChunkedArray) -> Any:
        """As pandas writes fractions, truth and times; the others as they stand, where pandas may change numbers."""
        kept = (pa.types.is_floating, pa.types.is_boolean, pa.types.is_temporal)
        return column.to_pandas() if any(is_kind(column.type) for is_kind in kept) else as_text(column)

    rows = columns.take(pa.array(made.rows))
    frame = pd.DataFrame({name: cells(rows[name]) for name in rows.column_names})
    for entity in made.table.entities:
        if entity.kind == "molecule":
            frame[entity.name] = entity.values
    for j, target in enumerate(table.row_targets):
        before, after = table.y[made.rows, j], made.table.y[:, j]  # type: ignore[index]
        texts_before = as_text(columns[target.name])[made.rows]
        plain = np.array([_says(text, value, target.classes) for text, value in zip(texts_before, before, strict=True)])
        same = plain & ((before == after) | (np.isnan(before) & np.isnan(after)))
        texts = ["" if v != v else target.classes[int(v)] if target.classes else f"{v:.12g}" for v in after]
        frame[target.name] = np.where(same, texts_before, np.array(texts, dtype=object))
    return frame


def _follow(frame: pd.DataFrame, table: Table, made: Curated, unit: str | None, qualifiers: str | None) -> list[str]:
    """Bring the columns of units and relations beside the targets up to the values that are written; notes of it."""
    import numpy as np

    from molgraph.data.reading.cells import read_cell
    from molgraph.data.reading.roles import SideColumns, find_side_columns
    from molgraph.data.reading.units import plain_unit
    from molgraph.data.reading.values import NUMERIC

    notes, targets = [], [t.name for t in table.row_targets]
    valued = [t.name for t in table.row_targets if t.kind in NUMERIC]
    beside = find_side_columns(list(frame), [*(e.name for e in table.entities), *targets], valued)
    for j, target in enumerate(table.row_targets):
        side, known = beside.get(target.name, SideColumns()), ~np.isnan(made.table.y[:, j])  # type: ignore[index]
        if target.classes:
            continue
        if unit not in (None, "none") and side.unit:
            frame.loc[known, side.unit] = plain_unit(str(unit))
            notes.append(f"column {side.unit!r} says {plain_unit(str(unit))} now, as the values do")
        if qualifiers == "drop" and side.relation:
            bound = [bool(read_cell(f"{sign}1").qualifier) for sign in frame[side.relation]]
            frame.loc[known & np.array(bound, dtype=bool), side.relation] = "="
    return notes


def _says(text: str, value: float, classes: tuple[str, ...]) -> bool:
    """Whether a cell, read by anyone, says what it was read as."""
    if value != value:
        return False
    if classes:
        return text.strip() == classes[int(value)]
    try:
        return float(text) == value
    except ValueError:
        return text.strip().isalpha()  # a word for a class

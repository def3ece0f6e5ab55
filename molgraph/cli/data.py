"""``molgraph data audit``, ``split`` and ``featurize``: look at a table, divide it, build its graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from molgraph.base.printable import count
from molgraph.cli import options as opt

Data = Annotated[
    str, typer.Argument(help="csv, csv.gz, tsv, parquet, sdf, smi, xyz, npz, - for standard input, or dataset:NAME.")
]


def audit(
    data: Data,
    target: Annotated[list[str] | None, opt.labels("Labels, for contradictions; NAME:multiclass for classes.")] = None,
    smiles: opt.Smiles = None,
    sequence: opt.Sequence = None,
    feature: Annotated[
        list[str] | None, opt.option("COLUMN", "Numbers beside the molecule; again for several.")
    ] = None,
    id: opt.Ids = None,
    decimal: opt.Decimal = None,
    unit: opt.Unit = None,
    out: Annotated[Path | None, opt.out_option("The whole list, as csv.")] = None,
) -> None:
    """Count and list what is wrong with a table before anything learns from it.

    Unreadable and missing molecules, duplicates, contradictory labels,
    undefined stereo centres, salts and mixtures; of each target its range,
    outliers, activity cliffs and the noise between replicates, and cells
    that are no plain number (>8.0, 251 nM, 4,62). Of --feature columns with
    gaps: whether the share that a row has tells its label. Nothing is changed.
    Rows count from 1, the first one behind the header.

    Examples:
        molgraph data audit assay.csv --target pIC50
        molgraph data audit assay.csv -t pIC50 -o odd.csv
        molgraph data audit pairs.csv --smiles drug --sequence protein -t Kd
        molgraph data audit bbbp  # a dataset that has a card
    """
    opt.check_writable(out, inputs=[data])
    data = named(data)
    if data.startswith("dataset:") and _audited(data.removeprefix("dataset:")):
        return
    import re

    from molgraph.base.csv_text import write_csv
    from molgraph.cli.show import console, say
    from molgraph.data.audit import audit as look

    columns: dict[str, Any] = {"smiles": smiles, "sequence": sequence, "features": feature, "id": id, "targets": target}
    result = look(data, decimal=decimal, unit=unit, **{name: value for name, value in columns.items() if value})
    text = result.text(width=console().width).rstrip()
    say(text)
    if out is not None:
        write_csv(out, result.to_frame())
        say(f"list written to {out}", err=True)
    elif re.search(r"and \d+ more", text):
        say("the whole list, as csv: -o odd.csv", "dim", err=True)


def named(data: str) -> str:
    """``dataset:NAME`` for the bare name of a dataset, where no file has that name; else the words as given."""
    import re

    from molgraph.base.errors import UnknownNameError, nearest
    from molgraph.data.cards import card_names

    word = data.partition("@")[0].lower()
    if Path(data).exists() or re.search(r"[:./\\]|^-$", data):
        return data
    if word in card_names():
        return f"dataset:{data}"
    raise UnknownNameError(f"there is neither a file nor a dataset {data!r}", hint=nearest(word, card_names()))


def _audited(name: str) -> bool:
    """Print the audit on the card of a dataset of graphs, which has no molecules to list; whether it is one."""
    from molgraph.cli.show import say
    from molgraph.data.cards import audit_lines, card

    info = card(name.partition("@")[0])
    if info.entity not in ("graph", "geometry") or "@" in name:
        say(f"the counts as they stand on the card: molgraph data info {info.name}", "dim", err=True)
        return False
    for _, line in [*audit_lines(info)] or [("", f"no audit of {info.name} stands on its card")]:
        say(line)
    return True


def split(
    data: Data,
    splitter: Annotated[
        str,
        opt.option("SPLITTER", "See `molgraph models --kind split`; or a file or folder of row numbers.", "--split"),
    ] = "scaffold/balanced",
    fractions: opt.Fractions = "0.8,0.1,0.1",
    seed: Annotated[int, typer.Option(metavar="N")] = 0,
    folds: Annotated[int, opt.option("N", "Cross-validation: that many splits; of 3 or more, one fold is valid.")] = 0,
    repeats: Annotated[int, opt.option("N", "How often the folds are drawn anew.")] = 1,
    split_column: Annotated[
        str | None,
        opt.option("COLUMN", "Words train, valid, test, or folds 0, 1, ...; or what --split time or group reads."),
    ] = None,
    target: Annotated[
        list[str] | None, opt.labels("Labels, whose classes are balanced, or that are sorted by.")
    ] = None,
    standardise: Annotated[
        str | None,
        opt.option(
            "PRESET",
            "none, desalt, standard or canonical; standard, and none for other people's splitters, if not given.",
        ),
    ] = None,
    smiles: opt.Smiles = None,
    sequence: opt.Sequence = None,
    id: opt.Ids = None,
    out: Annotated[Path | None, opt.out_option(".json (row numbers, hash) or .csv (id, split).")] = None,
) -> None:
    """Divide a table into train, valid and test without leaks; write the lists.

    molgraph's own splitters keep all forms of a molecule (salts, stereo-isomers,
    duplicates) in one part; scaffold/stratified and random/stratified also give
    each part its share of every class. Other people's splitters (scaffold/deepchem,
    scaffold/chemprop) are reproduced exactly, and their leaks are listed. Row
    numbers that somebody published (JSON, npz, csv, or a folder with a file
    for each part) are taken as they are. Both are asked of the molecules as
    they are written, molgraph's own of standardised ones.

    Examples:
        molgraph data split assay.csv -o split.json
        molgraph data split assay.csv --split random --seed 1 -o split.csv
        molgraph train assay.csv -t pIC50 --split split.json
        molgraph data split assay.csv --split random --folds 5 --repeats 5 -o fold.json
        molgraph data split assay.csv -t active --split scaffold/stratified
        molgraph data split assay.csv --split-column fold --folds 5 -o fold.json
        molgraph data split assay.csv --split published.npz -o split.json
        molgraph data split pairs.csv --sequence protein --split cold-both -o split.json
    """
    import pandas as pd

    from molgraph.base.csv_text import write_csv
    from molgraph.base.errors import BadValueError
    from molgraph.base.paths import check_ending
    from molgraph.base.registry import get
    from molgraph.cli.show import say, steps
    from molgraph.data.read import read_table
    from molgraph.data.splits import few_of_a_class, kfold, repeated_kfold, split_table
    from molgraph.data.splits.files import splitter_or_file
    from molgraph.data.standardise import standardise as standardise_table

    if split_column is not None and splitter not in ("time", "group", "column"):
        splitter = "column"
    splitter, params = splitter_or_file(splitter)
    known = get("split", splitter)  # an unknown one is refused before the table is read
    shares = opt.numbers("--fractions", fractions)
    if repeats < 1 or (repeats > 1 and not folds):
        raise BadValueError("--repeats counts how often folds are drawn", hint="as in --folds 5 --repeats 5")
    names = [f"r{r}-{k}" if repeats > 1 else str(k) for r in range(repeats) for k in range(folds or 1)]
    paths = [out.with_name(f"{out.stem}-{name}{out.suffix}") if folds else out for name in names] if out else []
    opt.check_writable(*paths, inputs=[data])
    check_ending(out, ".json", ".csv")
    table = read_table(data, smiles=smiles, sequence=sequence, id=id, targets=target, split=split_column)
    clean = standardise_table(table, standardise or ("none" if known.reproduces else "standard"))
    with steps():
        if repeats > 1:
            splits = repeated_kfold(clean, repeats, folds, splitter, seed, with_valid=folds > 2)
        elif folds:
            splits = kfold(clean, folds, splitter, seed)
        else:
            splits = [split_table(clean, splitter, fractions=shares, seed=seed, **params)]
    for one, path in zip(splits, paths, strict=False):  # written before a word is said: the reader of a pipe may leave
        if path.suffix == ".json":
            one.save(path)
        else:
            write_csv(path, pd.DataFrame({"id": table.ids, "split": one.words}))
    for k, one in enumerate(splits):
        sizes = ", ".join(f"{n:,} {part.replace('_', ' ')}" for part, n in one.sizes.items())
        say(f"{f'fold {names[k]}, ' if folds else ''}{one.splitter}: {sizes}   hash {one.hash[:16]}")
        for leak in one.leaks[:5]:
            say(f"  leak: {leak}", "yellow")
        if len(one.leaks) > 5:
            say(f"  and {len(one.leaks) - 5:,} more leaks", "yellow")
        for note in few_of_a_class(table, one) if k == 0 else ():  # other folds have about as many
            say(f"  {note}", "yellow")
        for left in one.left_out[:5]:
            say(f"  left out: row {left.row + 1}: {left.reason}", "dim")
        if paths:
            say(f"written to {paths[k]}", err=True)
    if out is None:
        say("nothing was written; the lists: -o split.json (for train --split) or -o split.csv", "dim", err=True)


def featurize(
    data: Data,
    out: Annotated[Path, opt.out_option("The store; it must not exist yet.", "FOLDER")],
    workers: Annotated[int, opt.option("N", "Processes; the result does not depend on it.")] = 1,
    standardise: opt.Preset = "standard",
    smiles: Annotated[str | None, opt.option("COLUMN", "SMILES; found if not given.")] = None,
) -> None:
    """Build a table's graphs ahead, once, on disk.

    The store is a folder of plain memory-mapped arrays with checksums, which
    ``molgraph.data.graph_cache.load_store`` opens at once. It is there whole or not at all.
    ``molgraph train --store FOLDER`` uses the stores that lie in FOLDER.

    Examples:
        molgraph data featurize library.csv -o stores/library --workers 2
        molgraph train library.csv -t y --store stores
    """
    import time

    import numpy as np

    from molgraph.cli.show import say
    from molgraph.data.graph_cache import marked, save_store, store_for
    from molgraph.data.graph_io import check_place
    from molgraph.data.read import read_table
    from molgraph.data.standardise import standardise as standardise_table

    opt.check_whole("--workers", workers)
    if not out.is_dir():  # a store may be made again; what is none is refused before the table is read
        opt.check_writable(out, inputs=[data])
    check_place(out)
    started = time.perf_counter()
    table = standardise_table(read_table(data, smiles=smiles), standardise)
    graphs = store_for(table, workers=workers)
    store, first = graphs.store, np.unique(graphs.graph_of_row[table.ok], return_index=True)[1]
    save_store(marked(store, table.smiles[table.ok][first]), out)
    atoms, bonds = (int(store.levels[name].offsets[-1]) for name in ("atom", "bond"))
    good = int((store.status == "ok").sum())
    say(", ".join(map(count, (len(table), good, atoms, bonds), ("row", "different graph", "atom", "directed bond"))))
    bad = int((~table.ok).sum()) + len(store) - good
    if bad:
        say(f"{bad:,} cannot be read: molgraph data audit {data}", "yellow")
    say(f"store written to {out} ({store.featuriser}, {time.perf_counter() - started:.1f} s)", err=True)

"""``molgraph conformers``: place the atoms of molecules in space by the distances that a model predicts."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.printable import count
from molgraph.cli import options as opt
from molgraph.cli.predict import source_of


def conformers(
    model: Annotated[str, opt.argument("A model with a distogram (.mgm).")],
    data: Annotated[list[str], opt.argument("csv, csv.gz, tsv, parquet, sdf, smi, - for standard input; or SMILES.")],
    out: Annotated[Path, opt.out_option("The structures, as an SD file.")],
    restarts: Annotated[int, opt.option("N", "Starts of each molecule, of which the best end is kept.")] = 6,
    seed: Annotated[int, typer.Option(metavar="N")] = 0,
    smiles: opt.Smiles = None,
    id: opt.Ids = None,
    threads: opt.Threads = None,
) -> None:
    """Make a conformer of each molecule by the distances that a model predicts.

    MODEL is pretrained with --objective distogram, or trained with
    --callback distogram. Its atoms are placed where the distances that it
    predicts are likeliest, from several starts; of mirror images that one is
    kept that has the SMILES's stereo centres. Hydrogens are added by RDKit. A
    molecule that cannot be read is a record of no atoms, with its reason.
    RDKit's ETKDG needs no model and knows more of torsions: compare.

    Examples:
        molgraph pretrain library.smi -m dmpnn --objective distogram -o enc.mgm
        molgraph conformers enc.mgm new.smi -o new.sdf
        molgraph conformers enc.mgm CCO c1ccccc1O -o two.sdf --restarts 12
    """
    from molgraph.base.paths import check_ending

    opt.check_whole("--restarts", restarts)
    opt.check_whole("--threads", threads)
    check_ending(out, ".sdf")
    source = source_of(data)
    opt.check_writable(out, inputs=(model, *data))
    from molgraph import api
    from molgraph.cli.show import say

    columns = {name: value for name, value in (("smiles", smiles), ("id", id)) if value}
    result = api.conformers(model, source, restarts=restarts, seed=seed, threads=threads, **columns)
    result.save(out)
    none = f", {len(result) - result.n_placed:,} without one" * (result.n_placed < len(result))
    say(f"{count(result.n_placed, 'conformer')} of {count(len(result), 'row')} written to {out}{none}", err=True)
    for reason, n in Counter(filter(None, result.reason)).most_common(3):
        say(f"  {n:,} x {reason}", "yellow", err=True)

"""``molgraph morph``: structures on the way from one conformer to another, or molecules on the way by single edits."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.cli import options as opt

HOW = ("conformers", "edits")


def morph(
    a: Annotated[str, opt.argument("An SD file, whose first structure is the beginning; of edits a SMILES.")],
    b: Annotated[str, opt.argument("An SD file, whose first structure is the end; of edits a SMILES.")],
    out: Annotated[Path, opt.out_option("The structures on the way, as an SD file; of edits a csv.")],
    how: Annotated[str, opt.option("conformers|edits", "Turn one conformer, or change the molecule.")] = "conformers",
    steps: Annotated[int, opt.option("N", "Structures, both ends among them.")] = 11,
    rigid: Annotated[
        bool, typer.Option("--rigid/--straight", help="Keep bonds and angles; or move atoms along straight lines.")
    ] = True,
    budget: Annotated[int, opt.option("N", "Of edits: molecules whose neighbours are listed, at most.")] = 200,
    estimate: Annotated[
        bool, typer.Option("--estimate/--breadth-first", help="Of edits: try first what is likely near B.")
    ] = True,
) -> None:
    """Morph one conformer of a molecule into another, or one molecule into another by single edits.

    Conformers: both files hold the same molecule in space. Its atoms are
    matched, whatever their order, and B is laid over A. Each neighbourhood of
    atoms turns as a whole (the elastic prior of Nerfies), so that the way goes
    by torsions. It is a picture of a change, no path of least energy. Each
    record has its share of the way, and the largest change of a bond's length.

    Edits: a search by A* adds, removes or changes one atom, bond or ring at a
    time; every molecule on the way is one that RDKit reads. Columns: step,
    smiles, like_a and like_b, the Tanimoto similarity to each end. Where the
    budget ends before B, the way leads to the molecule nearest to it.

    Examples:
        molgraph morph folded.sdf open.sdf -o way.sdf
        molgraph morph a.sdf b.sdf --straight --steps 21 -o way.sdf
        molgraph morph "CCOc1ccccc1" "Cc1ccc(CN)cc1" --how edits -o way.csv
    """
    from molgraph.base.errors import BadValueError, UnknownNameError, nearest
    from molgraph.base.paths import check_ending, write_whole
    from molgraph.chem.conformer_pair import first_structure, pair_of, structure_block
    from molgraph.chem.molfile import write_record
    from molgraph.chem.morph import morph as way_between
    from molgraph.cli.show import say

    if how not in HOW:
        raise UnknownNameError(f"--how {how!r} is not known", hint=nearest(how, HOW))
    if how == "edits":
        _edits(a, b, out, budget, estimate)
        return
    if steps < 2:
        raise BadValueError(f"--steps is {steps}", hint="give 2 or more")
    check_ending(out, ".sdf")
    opt.check_writable(out, inputs=[a, b])
    try:
        both = pair_of(first_structure(a), first_structure(b))
    except ValueError as error:
        raise BadValueError(str(error), hint="give two SD files of one molecule in space") from None
    way = way_between(both.a, both.b, both.bonds, both.stiff, steps=steps, rigid=rigid)
    records = []
    for k, (positions, strain) in enumerate(zip(way.positions, way.strain, strict=True)):
        fields = {"share": f"{k / (steps - 1):.4f}", "bond_change": f"{strain:.4f}"}
        records.append(write_record(f"step {k}", structure_block(both.mol, positions), fields.items()))
    write_whole(out, "".join(records).encode())
    say(f"{steps} structures written to {out}; bonds change by {way.strain.max():.1%} at most", err=True)


def _edits(a: str, b: str, out: Path, budget: int, estimate: bool) -> None:
    """Write the molecules between two SMILES."""
    import pandas as pd

    from molgraph.base.csv_text import csv_text
    from molgraph.base.errors import BadValueError
    from molgraph.base.paths import check_ending, write_whole
    from molgraph.base.printable import count
    from molgraph.chem.edit_path import edit_path
    from molgraph.chem.fingerprints import morgan
    from molgraph.chem.tanimoto import tanimoto
    from molgraph.cli.show import say

    opt.check_whole("--budget", budget)
    check_ending(out, ".csv")
    opt.check_writable(out, inputs=[])
    try:
        way = edit_path(a, b, budget=budget, estimate=estimate)
    except ValueError as error:
        raise BadValueError(str(error), hint="give two neutral molecules of one fragment as SMILES") from None
    like = tanimoto(morgan(list(way.smiles)).x, morgan([a, b]).x).round(4)
    columns = {"step": range(len(way.smiles)), "smiles": way.smiles, "like_a": like[:, 0], "like_b": like[:, 1]}
    write_whole(out, csv_text(pd.DataFrame(columns)))
    words = f"{count(len(way.smiles) - 1, 'edit')}, neighbours of {count(way.expanded, 'molecule')} listed"
    short = "" if way.reached else f"; B was not reached (the last one: similarity {like[-1, 1]:.2f}), raise --budget"
    say(f"{words}{short}; written to {out}", err=True)

"""``molgraph morph``: structures on the way from one conformer of a molecule to another."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.cli import options as opt


def morph(
    a: Annotated[str, opt.argument("An SD file, whose first structure is the beginning.")],
    b: Annotated[str, opt.argument("An SD file, whose first structure is the end.")],
    out: Annotated[Path, opt.out_option("The structures on the way, as an SD file.")],
    steps: Annotated[int, opt.option("N", "Structures, both ends among them.")] = 11,
    rigid: Annotated[
        bool, typer.Option("--rigid/--straight", help="Keep bonds and angles; or move atoms along straight lines.")
    ] = True,
) -> None:
    """Morph one conformer of a molecule into another, bonds keeping their lengths.

    Both files hold the same molecule in space. Its atoms are matched, whatever
    their order, and B is laid over A. Each neighbourhood of atoms turns as a
    whole (the elastic prior of Nerfies), so that the way goes by torsions. It
    is a picture of a change, no path of least energy. Each record has its
    share of the way, and the largest change of a bond's length.

    Examples:
        molgraph morph folded.sdf open.sdf -o way.sdf
        molgraph morph a.sdf b.sdf --straight --steps 21 -o way.sdf
    """
    from molgraph.base.errors import BadValueError
    from molgraph.base.paths import check_ending, write_whole
    from molgraph.chem.conformer_pair import first_structure, pair_of, structure_block
    from molgraph.chem.molfile import write_record
    from molgraph.chem.morph import morph as way_between
    from molgraph.cli.show import say

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

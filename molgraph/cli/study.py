"""``molgraph study``: run an analysis of a data set, a model or a generator, with a table and a figure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from molgraph.base.paths import check_ending
from molgraph.cli import options as opt
from molgraph.cli.options import argument, check_writable, option, out_option


def listing() -> str:
    """The registered studies, a line each."""
    from molgraph.api.catalogue import names
    from molgraph.base.registry import entry

    known = names("study")
    width = max(map(len, known)) + 2
    rows = [f"  {name:<{width}}{entry('study', name).summary}" for name in known]
    return "\n".join(["Studies (settings of one: molgraph models NAME --kind study)", *rows])


def study(
    name: Annotated[str, argument("A study, with its settings: molgraph models --kind study.")],
    data: Annotated[str | None, argument("A table, as molgraph train takes it.")] = None,
    model: Annotated[
        str | None, option("NAME", "A model's name, or a file (.mgm), as it needs.", "--model", "-m")
    ] = None,
    target: Annotated[list[str] | None, option("COLUMN", "Labels; again for several.", "--target", "-t")] = None,
    smiles: Annotated[list[str] | None, option("COLUMN", "SMILES; found if not given.")] = None,
    sequence: Annotated[list[str] | None, option("COLUMN", "Protein sequences.")] = None,
    geometry: opt.Geometry = None,
    feature: Annotated[list[str] | None, option("COLUMN", "Numbers beside the molecule; again for several.")] = None,
    qualifiers: opt.Qualifiers = None,
    decimal: opt.Decimal = None,
    unit: opt.Unit = None,
    seed: Annotated[int, option("N", "The same seed gives the same findings.")] = 0,
    seconds: Annotated[float, option("S", "CPU time; repeats that do not fit are left out.")] = 120.0,
    out: Annotated[Path | None, out_option("A page (.html), a picture (.png, .svg) or a table (.csv).")] = None,
) -> None:
    """Analyse a data set, a model or a generator.

    A study gives a table, a picture, one sentence, and two controls: a case
    with an effect that it has to see, and one without. Where a control does
    not hold, the study says nothing. untrained-prior reads a signal in the
    order of the rows: of a peptide a row for each residue, in the columns
    residue (such as K) and hydropathy.

    Examples:
        molgraph study xray assay.csv -t pIC50 -o splits.html
        molgraph study "xray(splits=random+scaffold/balanced)" dataset:bbbp
        molgraph study "temperature-sweep(n=500)" -m gen.mgm -o frontier.png
        molgraph study pair-bias dataset:davis -m dmpnn+deepdta
        molgraph study units -m encoder.mgm -o units.csv
        molgraph study messages dataset:esol -m dmpnn -o messages.csv
        molgraph study "lr-sensitivity(optimizers=adam+radam)" dataset:esol -m gin
        molgraph study "alignment(other=control.mgm)" dataset:esol -m oracle.mgm
        molgraph study expressivity dataset:esol -m gin -o diameters.png
        molgraph study "layers(other=finetuned.mgm)" dataset:esol -m encoder.mgm
        molgraph study "transfer(other=b.mgm, soup=mean.mgm)" dataset:esol -m a.mgm
        molgraph study landscape dataset:esol -m a.mgm -o surface.png
        molgraph study capabilities -m "gin(depth=3)"
        molgraph study open-set assay.csv -t mechanism:multiclass -m dmpnn
        molgraph study "untrained-prior(steps=200)" profile.csv --sequence residue -t hydropathy
    """
    check_writable(out, inputs=[path for path in (data, model) if path is not None])
    check_ending(out, ".html", ".png", ".svg", ".csv")
    from molgraph import api
    from molgraph.cli.show import say, steps

    named: dict[str, Any] = {
        "targets": target,
        "smiles": smiles,
        "sequence": sequence,
        "geometry": geometry,
        "features": feature,
    }
    named |= {"qualifiers": qualifiers, "decimal": decimal, "unit": unit}
    columns = {key: value for key, value in named.items() if value}
    with steps():
        findings = api.study(name, data, model=model, seed=seed, seconds=seconds, **columns)
    if out is not None:
        findings.save(out)
    say(findings.title, "bold")
    say(findings.narrow)
    say(findings.sentence, "bold green" if findings.sound else "bold red")
    for control in (findings.positive, findings.negative):
        say(str(control), "dim" if control.holds else "bold red")
    for note in findings.notes:
        say(note, "dim")
    if out is not None:
        say(f"written to {out}", err=True)

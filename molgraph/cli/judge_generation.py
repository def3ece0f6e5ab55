"""``molgraph judge-generation``: measure generated molecules beside trivial generators."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.errors import UsageError
from molgraph.cli.options import argument, check_whole, check_writable, option, out_option


def judge_generation(
    samples: Annotated[str, argument("Generated SMILES as they were drawn (csv, smi, ...), or a generator (.mgm).")],
    reference: Annotated[
        str | None,
        option("DATA", "Molecules that no generator saw; of dataset:moses its test part.", "--reference", "-r"),
    ] = None,
    train: Annotated[
        str | None, option("DATA", "Molecules that it learned from; of dataset:moses its train part.", "--train", "-t")
    ] = None,
    n: Annotated[int | None, option("N", "Draws that are judged; all if not given, at most 10000.", "-n")] = None,
    embedding: Annotated[
        str | None, option("NAME", "Of Fréchet's distance: descriptors, fingerprint, or chemnet (with fcd).")
    ] = None,
    controls: Annotated[bool, typer.Option("--controls/--no-controls", help="Rows of trivial generators.")] = True,
    seed: Annotated[int, option("N", "Of intervals, controls and draws.")] = 0,
    out: Annotated[Path | None, out_option("A page (.html), tables (.md) or numbers (.csv).")] = None,
) -> None:
    """Measure how valid, new, diverse and like a reference generated molecules are.

    The metrics of MOSES and GuacaMol with 95% intervals, all at one sample
    size. With --train, rows of trivial generators stand beside them: a sample
    of the training set, AddCarbon (one carbon put into training molecules),
    and one half of the training set against the other. Give the draws as
    they came, invalid ones and repetitions too.

    Examples:
        molgraph judge-generation new.csv --train library.smi --reference held_out.smi -o report.html
        molgraph judge-generation gen.mgm -n 10000 --train dataset:moses --reference dataset:moses
        molgraph judge-generation new.csv
    """
    check_whole("-n", n)
    check_writable(out, inputs=[each for each in (samples, reference, train) if each is not None])
    if out is not None and out.suffix not in (".html", ".md", ".csv"):
        raise UsageError(f"cannot write {out.name!r}: unknown ending", hint="known: .html, .md, .csv")
    from molgraph.api.judging import judge_generation as judge
    from molgraph.cli.show import say, steps, table

    with steps():
        found = judge(samples, reference, train, n=n, embedding=embedding, controls=controls, seed=seed)
    if out is not None:  # written before a word is said: the reader of a pipe may leave
        found.save(out)
    say(found.sentence)
    table(found.table())
    say(found.about, "dim")
    if out is not None:
        say(f"written to {out}", err=True)


def temperature_sweep(
    models: Annotated[list[str], argument("One generator (.mgm), or two that are compared.")],
    temperatures: Annotated[str, option("T,T,...", "To draw at.")] = "0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.4,1.5",
    reference: Annotated[str | None, option("DATA", "Molecules that no generator saw.", "--reference", "-r")] = None,
    train: Annotated[str | None, option("DATA", "Molecules that they learned from.", "--train", "-t")] = None,
    n: Annotated[int, option("N", "Draws at each temperature.", "-n")] = 1000,
    quality: Annotated[str, option("METRIC", "On the upright axis: valid, snn, frechet, ...")] = "valid",
    diversity: Annotated[str, option("METRIC", "On the level axis: int_div, unique, novel, ...")] = "int_div",
    seed: Annotated[int, option("N", "Of the draws.")] = 0,
    out: Annotated[Path | None, out_option("A picture (.png, .svg) or numbers (.csv).")] = None,
) -> None:
    """Draw a generator's frontier of quality and diversity.

    Every generator trades quality for diversity by its temperature, so one
    temperature compares nothing. Of two generators, the verb says at which
    share of the diversities that both reach one is better than the other.

    Examples:
        molgraph temperature-sweep gen.mgm -o frontier.png
        molgraph temperature-sweep a.mgm b.mgm --temperatures 0.5,0.75,1,1.25 -n 2000 -o frontier.svg
        molgraph temperature-sweep gen.mgm --train library.smi --diversity novel
    """
    check_whole("-n", n)
    check_writable(out, inputs=models)
    if out is not None and out.suffix not in (".png", ".svg", ".csv"):
        raise UsageError(f"cannot write {out.name!r}: unknown ending", hint="known: .png, .svg, .csv")
    if len(models) > 2:
        raise UsageError(f"{len(models)} generators are given", hint="give one, or two to compare")
    try:
        asked = [float(each) for each in temperatures.split(",")]
    except ValueError:
        raise UsageError(f"--temperatures {temperatures!r} are no numbers", hint="as in 0.5,1,1.5") from None
    from molgraph import api
    from molgraph.cli.show import say, steps, table
    from molgraph.evaluate.generation.measures import MEASURES, check_measures

    check_measures((quality, diversity))
    given = {"reference": reference, "train": train}
    for each in MEASURES:
        if each.name in (quality, diversity) and each.needs and not given.get(each.needs):
            raise UsageError(
                f"{each.name} needs --{each.needs}", hint=f"name the molecules: --{each.needs} library.smi"
            )
    wanted = tuple(dict.fromkeys((quality, diversity, "valid", "unique")))
    with steps():
        sweeps = [api.temperature_sweep(m, asked, n=n, **given, measures=wanted, seed=seed) for m in models]
    made = sweeps[0] if len(sweeps) == 1 else api.frontier_report(*sweeps, quality=quality, diversity=diversity)
    if out is not None:
        made.save(out, **({"quality": quality, "diversity": diversity} if len(sweeps) == 1 else {}))
    for sweep in sweeps:
        frame = sweep.to_frame().set_index("temperature")
        table(frame[[each for each in wanted if each in frame]], title=sweep.name)
    if len(sweeps) > 1:
        say(made.sentence)
    if out is not None:
        say(f"written to {out}", err=True)

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

"""``molgraph judge-generation``: measure generated molecules beside trivial generators."""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from molgraph.base.errors import BadValueError, DataError, MissingOptionError, UnsupportedError
from molgraph.base.paths import check_ending
from molgraph.cli.options import argument, check_whole, check_writable, option, out_option

if TYPE_CHECKING:
    from molgraph.evaluate.generation.sweep import Sweep

#: what metrics need that a sweep does not compute, and where they are
NOT_SWEPT = {
    "unchecked": "judge-generation draws without the check as well",
    "likelihood": "judge-generation --likelihood has it",
    "parts": "judge-generation --parts has it",
}
Standardise = Annotated[
    str | None,
    option("PRESET", "none, desalt, standard or canonical; a generator file's own, none for a table."),
]


def judge_generation(
    samples: Annotated[
        str, argument("Generated SMILES as they were drawn (csv, smi, ...), or a generator (.mgm, or its name).")
    ],
    reference: Annotated[
        str | None,
        option("DATA", "Molecules that no generator saw; of dataset:moses its test part.", "--reference", "-r"),
    ] = None,
    train: Annotated[
        str | None, option("DATA", "Molecules that it learned from; of dataset:moses its train part.", "--train", "-t")
    ] = None,
    n: Annotated[int | None, option("N", "Draws that are judged; all if not given, at most 10000.", "-n")] = None,
    standardise: Standardise = None,
    embedding: Annotated[
        str | None, option("NAME", "Of Fréchet's distance: descriptors, fingerprint, or chemnet (with fcd).")
    ] = None,
    controls: Annotated[bool, typer.Option("--controls/--no-controls", help="Rows of trivial generators.")] = True,
    likelihood: Annotated[
        str | None, option("DATA", "Molecules that a chemvae has not seen: their log p, without bias (SUMO).")
    ] = None,
    parts: Annotated[
        bool, typer.Option("--parts/--no-parts", help="With --reference: is it parts, or how they are combined?")
    ] = False,
    seed: Annotated[int, option("N", "Of intervals, controls and draws.")] = 0,
    out: Annotated[Path | None, out_option("A page (.html), tables (.md) or numbers (.csv).")] = None,
) -> None:
    """Measure how valid, new, diverse and like a reference generated molecules are.

    The metrics of MOSES and GuacaMol with 95% intervals, all at one sample
    size. With --train, rows of trivial generators stand beside them: a sample
    of the training set, AddCarbon (one carbon put into training molecules),
    and one half of the training set against the other. Give the draws as
    they came, invalid ones and repetitions too.

    Draws of a generator's file, and what they are compared with, are
    standardised as its training molecules were; tables are compared as they
    are written, or as --standardise says: a charged molecule has other
    properties than its neutral form. Valid: RDKit reads it, and it is a
    molecule (no open attachment point, some carbon, no metal bound to it).
    Novel, as in generate: no training molecule; salts and stereoisomers
    count as one molecule.

    --likelihood gives the mean log p of the canonical SMILES of molecules that
    a chemvae has not seen: an estimate without bias, beside the lower bound of
    one latent point. --parts tells by classifiers how far scaffolds, what is
    attached to them, properties, and the combination of the three are from the
    reference, in nats.

    Examples:
        molgraph judge-generation new.csv --train library.smi --reference held_out.smi --standardise standard -o a.html
        molgraph judge-generation gen.mgm -n 10000 --train dataset:moses --reference dataset:moses
        molgraph judge-generation vae.mgm --likelihood held_out.smi --reference held_out.smi --parts
    """
    check_whole("-n", n)
    check_writable(out, inputs=[path for path in (samples, reference, train, likelihood) if path is not None])
    check_ending(out, ".html", ".md", ".csv")
    from molgraph.api.judging import judge_generation as judge
    from molgraph.cli.show import say, steps, table

    with steps():
        judgement = judge(
            samples,
            reference,
            train,
            n=n,
            standardise=standardise,
            embedding=embedding,
            controls=controls,
            likelihood=likelihood,
            parts=parts,
            seed=seed,
        )
    if out is not None:  # written before a word is said: the reader of a pipe may leave
        judgement.save(out)
    say(judgement.sentence)
    table(judgement.table())
    say(judgement.about, "dim")
    for note in judgement.notes:
        say(f"warning: {note}", "bold red", err=True)
    if out is not None:
        say(f"written to {out}", err=True)


def temperature_sweep(
    models: Annotated[list[str], argument("One generator (.mgm, or its name), or two that are compared.")],
    temperatures: Annotated[str, option("T,T,...", "To draw at.")] = "0.5,0.6,0.7,0.8,0.9,1,1.1,1.2,1.3,1.4,1.5",
    reference: Annotated[str | None, option("DATA", "Molecules that no generator saw.", "--reference", "-r")] = None,
    train: Annotated[str | None, option("DATA", "Molecules that they learned from.", "--train", "-t")] = None,
    n: Annotated[int, option("N", "Draws at each temperature.", "-n")] = 1000,
    standardise: Standardise = None,
    quality: Annotated[
        str | None,
        option(
            "METRIC",
            "On the upright axis: valid, snn, ...; if not given frechet with --reference, else valid, or filters where "
            "all is valid.",
        ),
    ] = None,
    diversity: Annotated[str, option("METRIC", "On the level axis: int_div, unique, novel, ...")] = "int_div",
    seed: Annotated[int, option("N", "Of the draws.")] = 0,
    out: Annotated[Path | None, out_option("A picture (.png, .svg) or numbers (.csv).")] = None,
) -> None:
    """Draw a generator's frontier of quality and diversity.

    Every generator trades quality for diversity by its temperature, so one
    temperature compares nothing. Of two generators, the verb says at which
    share of the diversities that both reach one is better than the other.
    Ctrl-C keeps the temperatures that are done.

    Examples:
        molgraph temperature-sweep gen.mgm -o frontier.png
        molgraph temperature-sweep a.mgm b.mgm --temperatures 0.5,0.75,1,1.25 -n 2000 -o frontier.svg
        molgraph temperature-sweep gen.mgm --train library.smi --diversity novel
    """
    check_whole("-n", n)
    check_writable(out, inputs=models)
    check_ending(out, ".png", ".svg", ".csv")
    if len(models) > 2:
        raise BadValueError(f"{len(models)} generators are given", hint="give one, or two to compare")
    try:
        asked = [float(item) for item in temperatures.split(",")]
    except ValueError:
        raise BadValueError(f"--temperatures {temperatures!r} are no numbers", hint="as in 0.5,1,1.5") from None
    from molgraph import api
    from molgraph.cli.show import say, steps, table
    from molgraph.evaluate.generation.measures import MEASURES, check_measures

    named = [item for item in (quality, diversity) if item is not None]
    check_measures(named)
    sources = {"reference": reference, "train": train}
    for item in MEASURES:
        if item.name in named and item.needs in NOT_SWEPT:
            raise UnsupportedError(f"a sweep has no {item.name}", hint=NOT_SWEPT[item.needs])
        if item.name in named and item.needs and not sources.get(item.needs):
            raise MissingOptionError(
                f"{item.name} needs --{item.needs}", hint=f"name the molecules: --{item.needs} library.smi"
            )
    wanted = list(dict.fromkeys((*named, *["frechet"] * bool(reference), "valid", "unique", "filters")))
    how = {"n": n, **sources, "standardise": standardise, "measures": wanted, "seed": seed}
    sweeps: dict[int, Sweep] = {}
    stopped = ""

    def keep(place: int, sweep: Sweep) -> None:
        """Write what there is after each temperature, as Ctrl-C leaves no time for it."""
        sweeps[place] = sweep
        if out is not None and len(sweeps) == 1:
            sweep.save(out, quality=quality, diversity=diversity)
        elif out is not None:
            with suppress(DataError):  # too few temperatures yet
                api.frontier_report(*sweeps.values(), quality=quality, diversity=diversity).save(out)

    try:
        with steps():
            for place, model in enumerate(models):
                api.temperature_sweep(model, asked, **how, each=partial(keep, place))
    except KeyboardInterrupt:
        if not sweeps:
            raise
        done = [f"{len(item.temperatures)} of {len({*asked})} temperatures of {item.name}" for item in sweeps.values()]
        stopped = f"stopped by Ctrl-C after {' and '.join(done)}"
    for sweep in sweeps.values():
        frame = sweep.to_frame().set_index("temperature")
        table(frame[[item for item in wanted if item in frame]], title=sweep.name)
        say(sweep.about, "dim")
    if len(sweeps) > 1 and not stopped:
        say(api.frontier_report(*sweeps.values(), quality=quality, diversity=diversity).sentence)
    written = "" if out is None else f"written to {out}"
    if stopped:
        raise KeyboardInterrupt("\n".join(filter(None, (stopped, written))))
    if written:
        say(written, err=True)

"""``molgraph optimise``: search for better molecules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.errors import BadValueError, UnknownNameError
from molgraph.cli.options import Device, Threads, check_whole, check_writable, option, out_option
from molgraph.cli.options import argument as word


def optimise(
    model: Annotated[
        str | None,
        word("A generator's file (.mgm), or prior; searches such as graph-ga, ga and mcts need none."),
    ] = None,
    oracle: Annotated[
        str,
        option(
            "WORDS",
            "To make better: qed, A.mgm (A.mgm:-1: lower), mine.py:f, or several.",
            "--oracle",
            "--objective",
        ),
    ] = "qed",
    search: Annotated[
        str | None, option("NAME", "As reinvent, graph-ga, bayes: molgraph models --kind search.")
    ] = None,
    budget: Annotated[int, option("N", "Oracle calls, one for each distinct molecule.")] = 1000,
    start: Annotated[list[str] | None, option("SMILES", "Where to begin; again for several.")] = None,
    similarity: Annotated[float | None, option("D", "Lowest Tanimoto similarity to the start.")] = None,
    scaffold: Annotated[
        str | None, option("SMILES", "Keep it, and write at its open points alone: c1ccc([*:1])cc1.")
    ] = None,
    known: Annotated[
        str | None,
        option("TABLE", "Molecules to learn from first; values in a column of the oracle's name or computed."),
    ] = None,
    reference: Annotated[
        str | None, option("TABLE", "Show the nearest of these to each result; --known if not given.")
    ] = None,
    max_distance: Annotated[float | None, option("D", "Largest 1 - similarity to the nearest of them.")] = None,
    control: Annotated[
        str | None,
        option(
            "FILE", "A second opinion: a .mgm model, a table that the oracle's has not seen, auto, auto(FILE, FILE)."
        ),
    ] = None,
    compare: Annotated[
        bool, typer.Option("--compare/--no-compare", help="Sample with as many calls, for comparison.")
    ] = True,
    reward: Annotated[
        str | None, option("NAMES", "Terms added to the scores that the search sees, joined by +.")
    ] = None,
    batch: Annotated[
        int | None, option("N", "Molecules scored between two proposals; the search's own if not given.")
    ] = None,
    diversity: Annotated[float, option("W", "Weight of a batch's diversity, 0 to 1.")] = 0.5,
    seconds: Annotated[float, option("S", "How long an oracle call may take.")] = 30.0,
    set_: Annotated[list[str] | None, option("NAME=VALUE", "A parameter of the search.", "--set", "-s")] = None,
    seed: Annotated[int, option("N", "The same seed gives the same molecules.")] = 0,
    temperature: Annotated[float | None, option("T", "Of decoding; the model's own if not given.")] = None,
    out: Annotated[str, out_option("A csv file, the best first.")] = "optimised.csv",
    report: Annotated[Path | None, option("FILE", "An html page with drawn molecules and curves.")] = None,
    learned: Annotated[Path | None, option("FILE", "Keep the language model that the search trained (.mgm).")] = None,
    device: Device = None,
    threads: Threads = None,
    precision: Annotated[
        str | None, option("TYPE", "float32, or bfloat16 to train faster; the model's own if not given.")
    ] = None,
    engine: Annotated[str, option("NAME", "Where the oracle scores: local, or ray for a Ray cluster.")] = "local",
) -> None:
    """Search for molecules that are better by an oracle.

    An oracle is a name (`molgraph models --kind oracle`), a property model's
    file, a function of one SMILES (mine.py:score), or several with weights
    and bounds: "qed:1,sa<4" makes qed better among molecules whose sa is
    below 4. Weights count improvements: sa falls. A .toml file has a table
    [NAME] for each: weight, min, max. graph-ga needs no model: it begins with
    --start and --known, the draws of a model, or a list that comes with RDKit.
    Each call is kept beside the results until the search ends: the same
    command goes on after a kill, another search or seed by the same oracle
    makes none of them again. Molecules with measured values (--known) cost
    no calls. Look at --control before you believe gains: auto chooses, of
    methods that learn from --reference or of several models, the one that is
    least aligned with the oracle's model, and so shares the fewest errors.

    Examples:
        molgraph optimise --search graph-ga --oracle qed --budget 600 -o found.csv
        molgraph optimise jtvae.mgm --oracle "assay.mgm,sa<4" --control other_lab.csv --report page.html
        molgraph optimise --search graph-ga --oracle assay.mgm --control auto --reference other_lab.csv
        molgraph optimise jtvae.mgm --oracle penalized_logp --start "CCOc1ccccc1" --similarity 0.4
        molgraph optimise jtvae.mgm --oracle qed --search "bayes(restarts=32)"
        molgraph optimise --search reinvent --oracle assay.mgm --scaffold "c1ccc([*:1])cc1"
        molgraph optimise jtvae.mgm --oracle assay.mgm --known assay.csv --search bayes --budget 200
        molgraph optimise jtvae.mgm --oracle assay.mgm --reference assay.csv --max-distance 0.6
        molgraph optimise --search shared-prior --oracle "a.mgm,b.mgm" --learned both.mgm
        molgraph optimise --search graph-ga --oracle "command('./dock.sh', seconds=300)" --engine ray
    """
    check_whole("--budget", budget)
    check_whole("--batch", batch)
    check_whole("--threads", threads)
    if Path(out).suffix.lower() != ".csv":
        raise UnknownNameError(f"results cannot be written to {out!r}", hint="name a file that ends in .csv")
    if not 0 <= diversity <= 1:
        raise BadValueError(f"--diversity is {diversity}", hint="from 0 to 1")
    journal = Path(f"{out}.journal")
    check_writable(out, report, learned, inputs=(model, known, reference, control))
    from molgraph import api
    from molgraph.base.run_config import RunConfig
    from molgraph.cli.interrupt import goes_on_from
    from molgraph.cli.show import say
    from molgraph.generate.oracles.calls import drop_journal
    from molgraph.train.runtime import Interrupted

    goes_on_from(journal)
    params = RunConfig().override(*(f"params.{setting}" for setting in set_ or ())).model.params
    result = api.optimise(
        model, oracle, search=search, budget=budget, start=start or (), similarity=similarity, scaffold=scaffold,
        known=known, reward=reward, reference=reference, max_distance=max_distance, control=control, compare=compare,
        batch=batch, diversity=diversity, seconds=seconds, params=params, seed=seed, temperature=temperature,
        device=device, threads=threads, precision=precision, journal=journal, report=report, learned=learned,
        engine=engine,
    )  # fmt: skip
    result.save(out)
    if result.interrupted:
        raise Interrupted(
            f"stopped by Ctrl-C after {len(result):,} of {budget:,} calls; they are in {out}\n"
            "  run the same command again to go on from there; synthetic accessibility, alerts, novelty, the nearest\n"
            "  known molecules, --control and --report come with its end"
        )
    others = drop_journal(journal, result.frame["smiles"].tolist())
    say(f"{result.sentence}; written to {out}", err=True)
    if result.guard is not None:
        say(result.guard.sentence, err=True)
    for note in result.notes:
        say(note, err=True)
    if others:
        say(f"{others:,} calls of a search that did not end are left in {journal}", err=True)

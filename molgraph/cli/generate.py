"""``molgraph train-generator`` and ``molgraph generate``: learn from molecules, and propose new ones."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from molgraph.base.errors import UnknownNameError
from molgraph.base.recipe_keys import GENERATOR_KEYWORDS
from molgraph.cli.options import Device, Threads, argument, check_whole, check_writable, option, out_option
from molgraph.cli.pretrain import learn_corpus
from molgraph.cli.recipe_options import Assignments, RecipeFile, output, recipe_values, takes_recipe

FORMATS = (".csv", ".smi")


@takes_recipe(GENERATOR_KEYWORDS)
def train_generator(
    corpus: Annotated[
        str | None, argument("csv, csv.gz, tsv, parquet, sdf, smi, or dataset:NAME; else the recipe's path.")
    ] = None,
    *,
    recipe: RecipeFile = None,
    set_: Assignments = None,
    out: Annotated[
        Path | None, output("--out", "-o", help="The generator, written over if it is there.", default="generator.mgm")
    ] = None,
    **options: Any,
) -> None:
    """Learn from a list of molecules to propose new ones.

    No targets are read but the ranks of pairs, by -m chemvae. A twentieth of the rows, drawn at random, picks the
    weights. A run that was stopped goes on when the same command is given
    again. `molgraph models --kind generator` lists the generators.

    Examples:
        molgraph train-generator library.smi -o gen.mgm
        molgraph train-generator dataset:zinc250k -m language --epochs 10 -o gen.mgm
        molgraph train-generator library.csv -s params.d_hidden=256
        molgraph train-generator actives.smi --init prior --epochs 5 -o actives.mgm
        molgraph train-generator pairs.csv --smiles a --smiles b -m chemvae -s 'params.ranked=["soluble"]'
        molgraph generate gen.mgm -n 1000 -o new.csv
    """
    from molgraph.cli.show import command
    from molgraph.run.generator import generator_config

    values = recipe_values(GENERATOR_KEYWORDS, {"path": corpus, **options})
    config = generator_config(recipe, values).override(*set_ or [])
    out, _ = learn_corpus("train_generator", config, recipe, out, Path("generator.mgm"))
    command(["molgraph", "generate", out, "-n", "1000", "-o", "new.csv"], err=True)


def generate(
    model: Annotated[str, argument("A generator's file (.mgm).")],
    n: Annotated[int, option("N", "How many; some may be no molecules.", "-n")] = 1000,
    out: Annotated[str, out_option("csv or smi; - for the screen.")] = "-",
    seed: Annotated[int, option("N", "The same seed gives the same list.")] = 0,
    scaffold: Annotated[
        str | None, option("SMILES", "Keep it, and write at its open points alone: c1ccc([*:1])cc1.")
    ] = None,
    want: Annotated[
        str | None, option("WORDS", "Properties of a model trained with params.condition: logp=3,qed=0.8.")
    ] = None,
    distinct: Annotated[
        bool, typer.Option("--distinct/--no-distinct", help="Different texts, drawn without replacement, with weights.")
    ] = False,
    temperature: Annotated[
        float | None, option("T", "Below 1: likely molecules more often; the model's own if not given.")
    ] = None,
    device: Device = None,
    threads: Threads = None,
) -> None:
    """Propose molecules; tell which are valid, unique and novel.

    A csv file has a row for each that was drawn: smiles, valid, novel, and
    the reason where it is no molecule. A smi file has the valid ones alone.
    Unique are different canonical SMILES, stereoisomers apart. Novel are
    those that the generator did not learn from: there salts and
    stereoisomers count as one molecule. What RDKit reads and is none
    (an open attachment point, no carbon) is not valid, and counted apart.
    A language model keeps a scaffold whose open points are stars, or joins
    two fragments by a chain: --scaffold "OC[*:1].[*:1]C1CC1".
    With --distinct a language model draws no text twice. The column weight
    corrects for that: the sum of weight times value over the rows estimates
    the mean of independent draws without bias, such as the share of valid
    ones; divided by the sum of the weights it has less spread. Different
    texts may be one molecule.

    Examples:
        molgraph generate gen.mgm -n 1000 --seed 0 -o new.csv
        molgraph generate gen.mgm -n 1000 --temperature 0.8 -o new.smi
        molgraph generate gen.mgm -n 100 --scaffold "c1ccc([*:1])cc1"
        molgraph generate gen.mgm -n 1000 --distinct -o new.csv
        molgraph generate gen.mgm -n 100 --want logp=3 -o new.csv
        molgraph generate gen.mgm -n 5
    """
    check_whole("-n", n)
    check_whole("--threads", threads)
    if out != "-" and Path(out).suffix.lower() not in FORMATS:
        raise UnknownNameError(
            f"molecules cannot be written to {out!r}", hint=f"name a file that ends in {FORMATS[0]} or .smi"
        )
    check_writable(out, inputs=(model,))
    from molgraph.api.generating import generate_pieces
    from molgraph.base.csv_text import csv_text
    from molgraph.base.paths import write_whole
    from molgraph.cli.show import say
    from molgraph.generate.generated import Generated

    pieces, stopped = list[Generated](), ""
    try:
        running: dict[str, Any] = {"temperature": temperature, "device": device, "threads": threads}
        how: dict[str, Any] = {"seed": seed, "scaffold": scaffold, "want": want, "distinct": distinct}
        for piece in generate_pieces(model, n, **how, **running):
            pieces.append(piece)
    except KeyboardInterrupt:
        if not any(map(len, pieces)):
            raise
        stopped = f"stopped by Ctrl-C after {sum(map(len, pieces)):,} of {n:,}\n"
    generated = Generated.joined(pieces)
    if out.lower().endswith(".smi"):
        text = "".join(f"{smiles}\n" for smiles, valid in zip(generated.smiles, generated.valid, strict=True) if valid)
    else:
        text = csv_text(generated.to_frame())
    if out == "-":
        sys.stdout.write(text)
    else:
        write_whole(out, text)
    words = generated.sentence + ("" if out == "-" else f"; written to {out}")
    if stopped:
        raise KeyboardInterrupt(stopped + words)
    say(words, err=True)

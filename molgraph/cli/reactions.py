"""``molgraph data reactions``: make mapped reactions from a library of molecules by named rules."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.printable import count
from molgraph.cli import options as opt


def reactions(
    data: Annotated[str, opt.argument("Molecules: csv, csv.gz, tsv, parquet, sdf, smi, - or dataset:NAME.")],
    out: Annotated[Path, opt.out_option("The reactions, as csv.")],
    rules: Annotated[str, opt.option("NAMES", "Names of rules, parted by commas; all for every one.")] = "all",
    number: Annotated[int, opt.option("N", "Reactions of each rule, at most.", "--count")] = 100,
    seed: Annotated[int, typer.Option(metavar="N")] = 0,
    smiles: opt.Smiles = None,
) -> None:
    """Make mapped reactions from molecules by named rules; write them as csv.

    Molecules of the library that hold the rule's group once are drawn at
    random and joined by RDKit. The columns: rxn_smiles, with the number of
    every atom that stays; rule; reactants and product, as SMILES without
    numbers. They are made, not measured: a rule knows no conditions and no
    yields. Learn from them as from any table of reactions.

    Rules: amide, ester, hydrolysis, sulfonamide, urea, reductive_amination,
    alkylation, ether, suzuki, buchwald, sonogashira, heck, click,
    diels_alder.

    A rule needs building blocks in the library: the measured molecules that
    come with molgraph have those of amide, ester, hydrolysis, buchwald and
    reductive_amination. A rule without them makes nothing, and says so.

    Examples:
        molgraph data reactions builtin:chembl2321810 --rules amide,ester,buchwald -o rxn.csv
        molgraph data reactions library.smi --rules all --count 50 -o rxn.csv
        molgraph train rxn.csv -t rule:multiclass -m dmpnn
    """
    import pandas as pd

    from molgraph.base.csv_text import write_csv
    from molgraph.base.errors import EmptyError
    from molgraph.base.paths import check_ending
    from molgraph.chem.make_reactions import make_reactions
    from molgraph.chem.reaction_rules import rules_named
    from molgraph.cli.data import named
    from molgraph.cli.show import say
    from molgraph.data.read import read_table

    names = rules_named(rules)
    opt.check_whole("--count", number)
    check_ending(out, ".csv", ".csv.gz")
    opt.check_writable(out, inputs=[data])
    table = read_table(named(data), smiles=smiles)
    result = make_reactions(list(table.smiles), names, n=number, seed=seed)
    for name in names:
        blocks = " x ".join(f"{size:,}" for size in result.blocks[name])
        n = sum(reaction.rule == name for reaction in result.reactions)
        say(f"{name}: {count(n, 'reaction')} of {blocks} building blocks", err=True)
        for reason, times in result.reasons[name].most_common(3):
            drawn = f"{count(times, 'draw')} without a product: " * all(result.blocks[name])
            say(f"  {drawn}{reason}", "dim", err=True)
    for reason, times in result.reasons[""].most_common(3):
        say(f"left out of the library: {count(times, 'molecule')}, {reason}", "yellow", err=True)
    if not result.reactions:
        raise EmptyError("no reaction came of this library", hint="take another library, or --rules all")
    columns = ["rxn_smiles", "rule", "reactants", "product"]
    write_csv(out, pd.DataFrame([tuple(reaction) for reaction in result.reactions], columns=columns))
    say(f"{count(len(result.reactions), 'reaction')}, made by rules and not measured, written to {out}", err=True)

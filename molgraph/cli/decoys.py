"""``molgraph data decoys``: choose decoys of a pool that simple properties cannot tell from actives."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from molgraph.base.printable import count
from molgraph.cli import options as opt


def decoys(
    actives: Annotated[str, opt.argument("Actives: csv, csv.gz, tsv, parquet, sdf, smi or dataset:NAME.")],
    pool: Annotated[str, opt.argument("Molecules to choose from, alike.")],
    out: Annotated[Path, opt.out_option("The decoys, as csv.")],
    number: Annotated[int | None, opt.option("N", "Decoys; as many as actives if not given.")] = None,
    rounds: Annotated[int, opt.option("N", "Rounds of filtering, at most.")] = 30,
    replace: Annotated[float, opt.option("SHARE", "Of the easy decoys of a round; 0: random decoys.")] = 0.5,
    seed: Annotated[int, typer.Option(metavar="N")] = 0,
    smiles: opt.Smiles = None,
) -> None:
    """Choose decoys that simple properties cannot tell from actives.

    A virtual screen whose decoys are lighter or greasier than its actives
    can be won without chemistry. A forest on eight properties (size, logP,
    TPSA, donors, acceptors, rotatable bonds, rings, charge) learns actives
    from decoys on one half; on the other half the decoys that it finds easy
    give way to molecules of the pool that it finds hard, round by round
    (adversarial filtering, Zellers et al. 2019).

    Both are standardised first, and molecules of the pool that are actives
    are left out. What was never measured may be active all the same, so
    each decoy stands with its nearest active. Where the actives' own group
    sets a property, as a sulfonamide does TPSA, the properties tell it
    still: see the last AUC.

    Examples:
        molgraph data decoys actives.smi library.smi -o decoys.csv
        molgraph data decoys actives.csv dataset:zinc250k --number 1000 -o decoys.csv
        molgraph data decoys actives.smi library.smi --replace 0 -o random.csv
    """
    import numpy as np
    import pandas as pd

    from molgraph.base.csv_text import write_csv
    from molgraph.base.errors import BadValueError
    from molgraph.base.paths import check_ending
    from molgraph.chem.decoys import choose_decoys, property_table
    from molgraph.chem.fingerprints import morgan
    from molgraph.chem.tanimoto import find_nearest
    from molgraph.cli.data import named
    from molgraph.cli.show import say
    from molgraph.data.read import read_table
    from molgraph.data.standardise import standardise
    from molgraph.train.training_molecules import molecule_hashes

    opt.check_whole("--number", number)
    opt.check_whole("--rounds", rounds)
    if not 0 <= replace <= 1:
        raise BadValueError(f"--replace is {replace:g}, expected a share from 0 to 1", hint="as in --replace 0.5")
    check_ending(out, ".csv", ".csv.gz")
    opt.check_writable(out, inputs=[actives, pool])
    texts: list[list[str]] = []
    properties: list[np.ndarray] = []
    hashes: list[np.ndarray] = []
    for data in (actives, pool):
        table = standardise(read_table(named(data), smiles=smiles, on_error="keep"), "standard")
        x = property_table([str(text) for text in table.smiles])
        kept = np.flatnonzero(table.ok & np.isfinite(x).all(axis=1))
        keys = molecule_hashes(table.take(kept))
        first = np.sort(np.unique(keys, return_index=True)[1])
        if hashes:
            first = first[~np.isin(keys[first], hashes[0])]
            say(f"{data}: {count(len(keys) - len(first), 'row')} of actives or repetitions left out", "dim", err=True)
        texts.append([str(table.smiles[kept[i]]) for i in first])
        properties.append(x[kept[first]])
        hashes.append(keys[first])
    n = number or len(texts[0])
    picks = choose_decoys(properties[0], properties[1], n, rounds=rounds, replace=replace, seed=seed)
    chosen = [texts[1][row] for row in picks.rows]
    near = find_nearest(morgan(chosen).x, morgan(texts[0]).x)
    nearest = [texts[0][row] for row in near.row]
    columns = {"smiles": chosen, "nearest_active": nearest, "similarity": near.similarity.round(4)}
    write_csv(out, pd.DataFrame(columns))
    say(
        f"{count(n, 'decoy')} of {len(texts[1]):,} for {len(texts[0]):,} actives; properties tell them by an AUC of "
        f"{picks.auc[0]:.2f} at random, {picks.auc[-1]:.2f} after {count(len(picks.auc), 'round')}; written to {out}",
        err=True,
    )

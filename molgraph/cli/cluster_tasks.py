"""``molgraph data tasks``: make classification tasks of a library without labels, by its clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from molgraph.base.printable import count
from molgraph.cli import options as opt

if TYPE_CHECKING:
    from molgraph.base.prediction import Prediction


def tasks(
    data: Annotated[str, opt.argument("Molecules: csv, csv.gz, tsv, parquet, sdf, smi, - or dataset:NAME.")],
    out: Annotated[Path, opt.out_option("Molecules and tasks, as csv.")],
    by: Annotated[str, opt.option("MODEL", "An encoder's file (.mgm), or fingerprint.")] = "fingerprint",
    number: Annotated[int, opt.option("N", "Tasks.")] = 64,
    clusters: Annotated[int, opt.option("K", "Clusters of a partition.")] = 50,
    partitions: Annotated[int, opt.option("P", "Partitions, each in another metric.")] = 16,
    least: Annotated[int, opt.option("N", "Members below which a cluster is left out.")] = 20,
    scaling: Annotated[float, opt.option("X", "Spread of the metrics; 0: one partition alone.")] = 1.0,
    seed: Annotated[int, typer.Option(metavar="N")] = 0,
    smiles: opt.Smiles = None,
) -> None:
    """Make tasks of two classes from molecules without labels, to learn from a few.

    Molecules are clustered several times, each time in another random metric
    (CACTUs, Hsu et al. 2019); a task is one cluster against another. A model
    that has learnt to tell clusters from a few members has states in which
    the means of a few actives and inactives of a real assay tell others.
    Vectors are an encoder's, or 64 components of fingerprint counts.

    The columns: smiles, and one a task, task_1 and so on, with 1, 0 or
    nothing. Unreadable molecules are left out, and counted.

    Examples:
        molgraph data tasks library.smi -o tasks.csv
        molgraph pretrain tasks.csv -t 'task_*' --objective prototypes -o proto.mgm
        molgraph finetune proto.mgm assay.csv -t active -o model.mgm
    """
    import numpy as np
    import pandas as pd
    from sklearn.decomposition import TruncatedSVD

    from molgraph.base.csv_text import write_csv
    from molgraph.base.errors import EmptyError
    from molgraph.base.paths import check_ending
    from molgraph.chem.fingerprints import morgan
    from molgraph.cli.data import named
    from molgraph.cli.show import say
    from molgraph.data.cluster_tasks import cluster_tasks
    from molgraph.data.read import read_table
    from molgraph.data.standardise import standardise

    for name, value in (
        ("--number", number),
        ("--clusters", clusters),
        ("--partitions", partitions),
        ("--least", least),
    ):
        opt.check_whole(name, value)
    check_ending(out, ".csv", ".csv.gz")
    opt.check_writable(out, inputs=[data])
    table = standardise(read_table(named(data), smiles=smiles, on_error="keep"), "standard")
    prints = morgan([str(text) for text in table.smiles], counts=True)
    rows = np.flatnonzero(table.ok & prints.ok)
    if len(rows) < 2:
        raise EmptyError("fewer than two molecules can be read", hint="look at the reasons: molgraph data audit FILE")
    if by == "fingerprint":
        counts = np.log1p(prints.x[rows].astype(np.float32))
        x = TruncatedSVD(min(64, len(rows) - 1), random_state=seed).fit_transform(counts)
    else:
        from molgraph.api.prediction import embed

        x = cast("Prediction", embed(by, table.take(rows))).value
        rows, x = rows[np.isfinite(x).all(axis=1)], x[np.isfinite(x).all(axis=1)]
    y = cluster_tasks(x, number, clusters=clusters, number=partitions, least=least, scaling=scaling, seed=seed)
    columns = {f"task_{i + 1}": pd.array(y[:, i], dtype="Int8") for i in range(number)}
    write_csv(out, pd.DataFrame({"smiles": table.smiles[rows], **columns}))
    sizes = np.isfinite(y).sum(axis=0)
    say(
        f"{count(number, 'task')} of {sizes.min():,} to {sizes.max():,} of {len(rows):,} molecules, "
        f"{count(len(table) - len(rows), 'row')} left out; written to {out}",
        err=True,
    )

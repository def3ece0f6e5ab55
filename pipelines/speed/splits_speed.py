"""No input; rates of splitting HIV (41,127 molecules; needs MOLGRAPH_DATA), of molgraph and DeepChem, in one run, out.

DeepChem's ``ScaffoldSplitter`` runs on one core, with RDKit's log off as in molgraph; molgraph takes the cores that
there are, and finds the leaks besides. Sets are compared before any figure is given. Butina clusters have no peer
that does without the distances of all pairs: the peer's column is the memory that those would take.
"""

from __future__ import annotations

import logging
import multiprocessing
import resource
import time
from typing import Any

import numpy as np

from molgraph.base.paths import data_dir
from molgraph.chem.cluster import cluster_butina
from molgraph.chem.fingerprints import morgan
from molgraph.chem.scaffold import forget
from molgraph.chem.smiles import quiet
from molgraph.data.read import read_table
from molgraph.data.splits import split_table
from molgraph.data.table import Table

CLUSTERED = 40_000


def hiv() -> Table:
    """The table, read from the folder of datasets."""
    folder = data_dir()
    if folder is None:
        raise SystemExit("MOLGRAPH_DATA names no folder of datasets: HIV is not here")
    return read_table(str(folder / "hiv" / "HIV.csv.gz"), smiles="smiles")


def scaffold_speed(table: Table, rounds: int) -> dict[str, dict[str, Any]]:
    """``scaffold/deepchem`` against DeepChem's own splitter, in turn, the best round of each."""
    logging.disable(logging.CRITICAL)
    import deepchem

    dataset = deepchem.data.NumpyDataset(X=np.zeros(len(table)), ids=table.smiles)
    best = [float("inf"), float("inf")]
    for _ in range(rounds):
        with quiet():
            start = time.perf_counter()
            theirs = deepchem.splits.ScaffoldSplitter().split(dataset)
            best[1] = min(best[1], time.perf_counter() - start)
        forget()
        start = time.perf_counter()
        ours = split_table(table, "scaffold/deepchem", quiet=True)
        best[0] = min(best[0], time.perf_counter() - start)
        if [sorted(part) for part in theirs] != [part.tolist() for part in (ours.train, ours.valid, ours.test)]:
            raise SystemExit("the sets differ from DeepChem's")
    facts = {"molgraph": len(table) / best[0], "peer": len(table) / best[1], "ratio": best[1] / best[0]}
    facts |= {"floor": 3.0, "peer_name": "DeepChem", "unit": "molecules/s"}
    return {"scaffold/deepchem split with leaks found, HIV": facts}


def cluster_speed(table: Table) -> dict[str, Any]:
    """Seconds and additional peak memory of Butina clusters of 40,000 molecules, in a process of their own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        seconds, megabytes, clusters = pool.apply(_cluster, (list(table.smiles[:CLUSTERED]),))
    matrix = CLUSTERED**2 / 2 / 1e6
    return {
        "on": f"HIV, {CLUSTERED:,} molecules, similarity 0.4", "seconds": round(seconds, 1), "clusters": clusters,
        "peak_mb": round(megabytes), "one_byte_a_pair_mb": round(matrix),
    }  # fmt: skip


def _cluster(smiles: list[str]) -> tuple[float, float, int]:
    x = morgan(smiles).x
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    found = cluster_butina(x, 0.4)
    seconds = time.perf_counter() - start
    return seconds, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, int(found.max()) + 1


def splits_speed(rounds: int = 3) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The rows of the speed table, and what is to be said of Butina clusters."""
    table = hiv()
    return scaffold_speed(table, rounds), cluster_speed(table)


if __name__ == "__main__":
    rows, butina = splits_speed()
    for name, facts in rows.items():
        print(f"{name:60} {facts['molgraph']:10,.0f} {facts['peer']:10,.0f} {facts['ratio']:6.2f}")
    print(butina)

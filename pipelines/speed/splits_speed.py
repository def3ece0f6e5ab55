"""Measure how fast molgraph and DeepChem split HIV (41,127 molecules; needs MOLGRAPH_DATA), in one run.

DeepChem's ``ScaffoldSplitter`` runs on one core, with RDKit's log off as in molgraph; molgraph takes the cores that
there are, with and without the search for leaks. Sets are compared before any figure is given. Butina clusters have no
peer that does without the distances of all pairs: the peer's column is the memory that those would take.
"""

from __future__ import annotations

import logging
import multiprocessing
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.paths import data_dir
from molgraph.chem.cluster import cluster_butina
from molgraph.chem.fingerprints import morgan
from molgraph.chem.smiles import quiet
from molgraph.data.read import read_table
from molgraph.data.splits import split_table
from molgraph.data.splits.others import split_like_deepchem
from molgraph.data.splits.splitter import Task
from molgraph.data.table import Table

CLUSTERED = 40_000


def hiv() -> Table:
    """The table, read from the folder of datasets."""
    folder = data_dir()
    if folder is None:
        raise SystemExit("MOLGRAPH_DATA names no folder of datasets: HIV is not here")
    return read_table(str(folder / "hiv" / "HIV.csv.gz"), smiles="smiles")


def scaffold_speed(table: Table, rounds: int) -> dict[str, dict[str, Any]]:
    """``scaffold/deepchem`` against DeepChem's own splitter, in turn, the best round of each.

    DeepChem looks for no leaks, so the sets alone are the like for like; the whole split has leaks and hash as well.
    """
    logging.disable(logging.CRITICAL)
    import deepchem

    unread = {out.row for out in split_table(table, "scaffold/deepchem", quiet=True).left_out}
    rows = np.array([row for row in range(len(table)) if row not in unread])  # its loaders drop the others
    dataset = deepchem.data.NumpyDataset(X=np.zeros(len(rows)), ids=table.smiles[rows])
    task = Task(table, np.flatnonzero(table.ok), (0.8, 0.1, 0.1), 0, {})
    ways: dict[str, Callable[[], Any]] = {
        "DeepChem": lambda: deepchem.splits.ScaffoldSplitter().split(dataset),
        "scaffold/deepchem sets alone, HIV": lambda: split_like_deepchem(task),
        "scaffold/deepchem split with leaks found, HIV": lambda: split_table(table, "scaffold/deepchem", quiet=True),
    }
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(rounds):
        sets = []
        for name, split in ways.items():
            with quiet():
                start = time.perf_counter()
                made = split()
                best[name] = min(best[name], time.perf_counter() - start)
            ours = not isinstance(made, tuple)
            parts = (made.train, made.valid, made.test) if ours else [rows[list(part)] for part in made]
            sets.append([sorted(int(i) for i in part) for part in parts])
        if any(each != sets[0] for each in sets):
            raise SystemExit("the sets differ from DeepChem's")
    theirs = best.pop("DeepChem")
    of_both = {"peer": len(table) / theirs, "floor": 3.0, "peer_name": "DeepChem", "unit": "molecules/s"}
    return {
        name: {"molgraph": len(table) / seconds, "ratio": theirs / seconds} | of_both for name, seconds in best.items()
    }


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
    before = _peak_kb()
    start = time.perf_counter()
    found = cluster_butina(x, 0.4)
    seconds = time.perf_counter() - start
    return seconds, (_peak_kb() - before) / 1024, int(found.max()) + 1


def _peak_kb() -> int:
    """Peak memory of this process; ``ru_maxrss`` begins with that of the process that started it."""
    with Path("/proc/self/status").open() as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM:"))


def splits_speed(rounds: int = 3) -> tuple[dict[str, dict[str, Any]], dict[str, Any]]:
    """The rows of the speed table, and what is to be said of Butina clusters."""
    table = hiv()
    return scaffold_speed(table, rounds), cluster_speed(table)


if __name__ == "__main__":
    rows, butina = splits_speed()
    for name, facts in rows.items():
        print(f"{name:60} {facts['molgraph']:10,.0f} {facts['peer']:10,.0f} {facts['ratio']:6.2f}")
    print(butina)

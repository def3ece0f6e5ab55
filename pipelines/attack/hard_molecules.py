"""Measure the CPU seconds that each hard molecule takes in every method, the audit and the splits.

Run from the repository's root: ``python -m pipelines.attack.hard_molecules``; it takes about an hour and writes
``hard_molecules.tsv`` beside itself, with the seconds of this process and of the workers that it started.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from molgraph.base.contracts import Target
from molgraph.chem import bounded
from molgraph.data.audit import audit
from molgraph.data.splits import split_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table, make_table
from molgraph.train.make_method import make_method

OUT = Path(__file__).with_suffix(".tsv")
OTHERS = ["CCO", "CCN", "c1ccccc1", "C1CC1", "CCCC", "c1ccncc1", "C1CCCCC1", "CC(=O)O", "CCS", "CCCl", "C1CCNCC1"]
METHODS = {
    "maplight": {"iterations": 5, "n_bits": 256},
    "random_forest": {"n_estimators": 5, "n_bits": 256},
    "xgboost": {"n_estimators": 5, "n_bits": 256},
    "knn": {"n_bits": 256},
    "linear": {"n_bits": 256},
    "svm": {"n_bits": 256},
    "gp": {"n_bits": 256},
    "mean": {},
    "dmpnn": {"epochs": 1},
    "mpnn": {"epochs": 1},
    "pyg_conv": {"epochs": 1},
    "chemprop": {"epochs": 1},
    "deepchem": {"model": "dmpnn", "epochs": 1},
}


def cpu_seconds() -> float:
    """Of this process, of the children that ended, and of the worker that waits."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    live = 0.0
    if bounded._worker is not None:
        words = Path(f"/proc/{bounded._worker.process.pid}/stat").read_text().rsplit(")")[-1].split()
        live = (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")
    return time.process_time() + ended.ru_utime + ended.ru_stime + live


def trials() -> dict[str, Callable[[Table], tuple[str, int]]]:
    """Each gives status or reason of the first row, and how many rows came out."""
    y = np.arange(len(OTHERS), dtype=float)[:, None]
    train = make_table(OTHERS, targets=(Target("y"),), y=y)

    def predicts(name: str) -> Callable[[Table], tuple[str, int]]:
        method = make_method(name, **METHODS[name]).fit(train)

        def trial(table: Table) -> tuple[str, int]:
            found = method.predict(standardise(table))
            assert np.isfinite(found.value[found.ok]).all() and all(found.reason[~found.ok])
            return found.reason[0] or "ok", len(found)

        return trial

    def splits(splitter: str) -> Callable[[Table], tuple[str, int]]:
        def trial(table: Table) -> tuple[str, int]:
            split = split_table(table, splitter, fractions=(0.6, 0.2, 0.2), quiet=True)
            left = {row.row: row.reason for row in split.left_out}
            return left.get(0, "ok"), len(table)

        return trial

    def audits(table: Table) -> tuple[str, int]:
        lost = audit(table).finding("unreadable")
        return (str(lost.details[0]) if len(lost) else "ok"), len(table)

    found = {name: predicts(name) for name in METHODS}
    found |= {splitter: splits(splitter) for splitter in ("scaffold/balanced", "scaffold/generic")}
    return found | {"audit": audits}


def main() -> None:
    """Write one line a molecule and trial: seconds, and a value or the reason."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    from tests.hard_molecules import hard_molecules, worst

    each = trials()
    wanted = hard_molecules() | worst()
    lines = []
    for name, text in wanted.items():
        for trial, run in each.items():
            bounded.bounded(len, "")  # a worker that starts is ready before the clock runs
            before, clock = cpu_seconds(), time.perf_counter()
            outcome, rows = run(make_table([text] if trial in METHODS or trial == "audit" else [text, *OTHERS]))
            took, clock = cpu_seconds() - before, time.perf_counter() - clock
            assert rows
            lines.append((took, clock, name, trial, " ".join(outcome.split())[:90]))
        OUT.write_text(
            "molecule\ttrial\tCPU seconds\tseconds\toutcome\n"
            + "".join(f"{n}\t{t}\t{s:.2f}\t{w:.2f}\t{o}\n" for s, w, n, t, o in sorted(lines, reverse=True)),
            encoding="utf-8",
        )
        print(f"{name}: at most {max(s for s, _, n, *_ in lines if n == name):.2f} s", flush=True)
    late = [line for line in lines if line[0] >= 2]
    print(f"{len(wanted)} molecules, {len(lines)} trials, longest {max(lines)[:4]}, {len(late)} of 2 s or more")


if __name__ == "__main__":
    main()

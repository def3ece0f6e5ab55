"""No input; what the runner adds to a cell, and how long 10,000 cells take to score and rank, out."""

from __future__ import annotations

import json
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.api.benchmarking import FACTORY, IMPORTS
from molgraph.base.contracts import Prediction, Target
from molgraph.data.read import read_table
from molgraph.data.table import make_table
from molgraph.evaluate.benchmark.board import make_boards
from molgraph.evaluate.benchmark.board_overall import summarise
from molgraph.evaluate.benchmark.job import Job, Outcome
from molgraph.evaluate.benchmark.local import LocalEngine
from molgraph.evaluate.benchmark.loop import Loop
from molgraph.evaluate.benchmark.plan import prepare
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.report import write_bench_report
from molgraph.evaluate.benchmark.run import run_benchmark
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.benchmark.worker import PREDICTIONS, write_predictions

ROWS, METHODS, FOLDS = 1000, 10, 25  # of a dataset; methods and folds of a board
FEWER = 10  # folds of the run whose page is written: more boards, as pipelines/adme.toml has


def overhead(folder: Path) -> dict[str, Any]:
    """Seconds that the runner adds to a cell of the built-in series: all but the method's own fit and predict."""
    values = {"name": "overhead", "datasets": ["chembl2321810"], "method": [{"name": "mean"}]}
    asked = BenchRecipe.from_dict(values | {"split": [{"splitter": "random", "folds": 5, "repeats": 8}]})
    engine = LocalEngine(IMPORTS, 1)
    first = run_benchmark(asked, folder, factory=FACTORY, imports=IMPORTS, engine=engine, only={"repeat": ["0"]})
    started = time.perf_counter()
    ran = run_benchmark(asked, folder, factory=FACTORY, imports=IMPORTS, engine=engine)
    whole = time.perf_counter() - started
    engine.close()
    cells = ran.made["ok"]
    own = read_records(folder).frame.query("repeat > 0")
    work = float((own["seconds_fit"] + own["seconds_predict"]).sum())
    return {
        "what": "Benchmark, added to a cell by the runner (start, data, split, writing, planning, scoring)",
        "cells": cells,
        "seconds": round((whole - work) / cells, 3),
        "limit": 0.11,
        "first_run_seconds": round(first.seconds, 1),
    }


class Invented:
    """An engine whose cells take no time: predictions are the measured values and noise.

    Args:
        skill: method's row -> standard deviation of its noise.
    """

    free = slots = 1

    def __init__(self, skill: dict[str, float], y: dict[str, np.ndarray]) -> None:
        self.skill, self.y, self.ended = skill, y, list[tuple[int, Outcome]]()

    def start(self, number: int, job: Job) -> None:
        """Write a cell's predictions."""
        split = json.loads(Path(job.split).read_text())
        rows, name = np.array(split["test"]), Path(job.table).name.split("-")[0]
        rng, y = np.random.default_rng(number), self.y[name][rows]
        noise = rng.normal(size=len(rows)) * self.skill[str(job.method.params["label"])]
        p = 1 / (1 + np.exp(-(2 * y - 1 + noise))) if name.startswith("b") else y + noise
        targets = (Target("y", "binary" if name.startswith("b") else "regression"),)
        test = make_table(["C"] * len(rows), ids=rows, targets=targets, y=y)
        made = Prediction(test.ids, targets, p[:, None], test.status, test.reason)
        write_predictions(Path(job.folder) / PREDICTIONS, rows, test, made)
        found = {"seconds": {"fit": 1.0, "predict": 0.1, "search": 0.0}}
        self.ended.append((number, Outcome("ok", "", found, 1.2, 1.1, 300.0)))

    def wait(self, seconds: float = 0.0) -> list[tuple[int, Outcome]]:
        """What was started has ended."""
        ended, self.ended = self.ended, []
        return ended

    def close(self) -> None:
        """Nothing is left."""


def invented(folder: Path, cells: int, folds: int = FOLDS) -> None:
    """Write the folder of a run of that many cells on molecules of RDKit's list, half regression and half classes."""
    n = max(1, cells // (METHODS * folds))
    names = [f"{'ab'[i % 2]}{i}" for i in range(n)]
    rng = np.random.default_rng(0)
    listed = read_table("builtin:nci").smiles
    smiles = {name: list(rng.choice(listed, ROWS, replace=False)) for name in names}
    y = {name: rng.normal(size=ROWS) for name in names}
    y = {name: (v > 0).astype(float) if name.startswith("b") else v for name, v in y.items()}
    kinds = {name: "binary" if name.startswith("b") else "regression" for name in names}
    tables = {n: make_table(smiles[n], targets=(Target("y", kinds[n]),), y=y[n]) for n in names}  # type: ignore[arg-type]
    rows = [f"method{i}" for i in range(METHODS)]
    values = {
        "name": "scoring",
        "datasets": names,
        "split": [{"splitter": "random", "folds": 5, "repeats": folds // 5}],
    }
    values |= {"method": [{"name": "mean", "label": r, "params": {"label": r}} for r in rows]}
    asked = BenchRecipe.from_dict(values)
    (folder / ".work").mkdir(parents=True)
    (folder / "recipe.toml").write_text(asked.to_toml())
    problems = {name: prepare(asked, folder, name, tables[name], {}) for name in names}
    for problem in problems.values():
        problem.save(folder)
    skill = {row: 0.5 + 0.05 * i for i, row in enumerate(rows)}
    Loop(asked, folder, FACTORY, problems, Invented(skill, y)).run([c for p in problems.values() for c in p.cells])


def scoring(folder: Path, cells: int) -> dict[str, Any]:
    """Seconds to score and rank that many cells, and to sum them up over datasets, from their files."""
    invented(folder, cells)
    started = time.perf_counter()
    records = read_records(folder)
    scores = score_records(records)
    scored = time.perf_counter() - started
    boards = make_boards(scores)
    summarise(boards)
    whole = time.perf_counter() - started
    return {
        "what": f"Benchmark, scores, statistics and summary of {len(records.done):,} stored cells from their files",
        "cells": len(records.done),
        "scores": len(scores),
        "boards": len(boards),
        "scoring_seconds": round(scored, 1),
        "seconds": round(whole, 1),
        "limit": 10.0,
    }


def page(folder: Path, cells: int) -> dict[str, Any]:
    """Seconds to write the page of a run of that many cells, figures and slices too, from their files."""
    invented(folder, cells, FEWER)
    started = time.perf_counter()
    report = write_bench_report(folder, folder / "board.html")
    seconds = round(time.perf_counter() - started, 1)
    what = f"Benchmark, the page of a run of {report.done:,} cells on {len(report.sections())} boards with all metrics"
    return {"what": what, "cells": report.done, "seconds": seconds, "limit": 10.0}


def bench_speed(cells: int = 10_000) -> list[dict[str, Any]]:
    """What the speed table says of the benchmark: ``what``, ``cells``, ``seconds`` and the ``limit`` asked for."""
    with tempfile.TemporaryDirectory() as folder:
        return [scoring(Path(folder) / "a", cells), page(Path(folder) / "b", 1500), overhead(Path(folder) / "c")]

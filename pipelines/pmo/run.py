"""Run searches on the tasks of PMO, each call counted by the journal, and keep every call.

MOLGRAPH_DATA=... python pipelines/pmo/run.py # all of pipelines/pmo.toml; goes on where it stopped, in pmo.csv too
python pipelines/pmo/run.py --search reinvent --task qed --budget 1000    # some of it, another budget

A cell is a search, a task and a seed: its calls go to bench/pmo/SEARCH/TASK-SEED.csv.gz, with the CPU seconds. The
oracles of GSK3B and JNK3 are random forests that are trained once on the files in MOLGRAPH_DATA/pmo (those of the
benchmark are not to be had: trained ones correlate with them at 0.92); DRD2's data are not at hand.
"""

from __future__ import annotations

import argparse
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import molgraph  # noqa: E402
from molgraph.api.prediction import set_running  # noqa: E402
from molgraph.base.paths import atomic_write, data_dir  # noqa: E402
from molgraph.data.read import read_table  # noqa: E402
from molgraph.generate.oracles.calls import OracleCalls  # noqa: E402
from molgraph.generate.oracles.combined import Combined  # noqa: E402
from molgraph.generate.oracles.pmo import PMO_TASKS  # noqa: E402
from molgraph.generate.oracles.read_oracle import read_oracle  # noqa: E402
from molgraph.generate.rewards.reward import make_rewards  # noqa: E402
from molgraph.generate.run_search import run_search  # noqa: E402
from molgraph.generate.searches.search import make_search  # noqa: E402
from molgraph.train.make_method import make_method  # noqa: E402
from molgraph.train.model import Model  # noqa: E402

KINASES = {"gsk3b": "gsk3", "jnk3": "jnk3"}  # task -> column
BENCH, STORED = ROOT / "bench" / "pmo", HERE / "pmo.csv"


def oracle_of(task: str) -> Combined:
    """The oracle of a task, that of a kinase from its trained forest."""
    if task not in KINASES:
        return read_oracle(f"pmo({task})")
    file, folder = BENCH / f"{task}.mgm", data_dir()
    if not file.exists():
        if folder is None:
            raise SystemExit(f"{task} needs MOLGRAPH_DATA, for its training data")
        table = read_table(str(folder / "pmo" / f"{task}_train.csv.gz"), targets=[KINASES[task]])
        forest = make_method("random_forest", n_estimators=100, features="morgan", max_features="sqrt", seed=0)
        file.parent.mkdir(parents=True, exist_ok=True)
        Model(forest.fit(table), targets=table.targets).save(file)
    return read_oracle(str(file))


def run_cell(search: dict[str, Any], task: str, seed: int, budget: int, out: Path) -> None:
    """One run; its calls in their order, with the score of each, as a table."""
    start = time.process_time()
    loaded = None
    made = make_search(search["name"], **search.get("params", {}))
    if name := search.get("model") or made.default_model:
        loaded = molgraph.load(name)
        set_running(loaded.method, {"precision": search.get("precision")})
    calls = OracleCalls(oracle_of(task), budget)
    run_search(
        None if loaded is None else loaded.method,
        calls,
        made,
        rewards=make_rewards(search.get("reward")),
        standardiser="standard" if loaded is None else loaded.standardiser,
        batch=search.get("batch"),
        diversity=search.get("diversity", 0.0),
        seed=seed,
    )
    rows = [(one.smiles, one.total) for one in calls.scored.values()]
    frame = pd.DataFrame(rows, columns=["smiles", "score"])
    frame["score"] = np.nan_to_num(frame["score"]).round(6)
    frame["cpu_seconds"] = round(time.process_time() - start, 1)
    out.parent.mkdir(parents=True, exist_ok=True)
    with atomic_write(out) as file:
        frame.to_csv(file, index=False, compression="gzip")


def main() -> None:
    """All cells that are not there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", default=ROOT / "pipelines" / "pmo.toml", type=Path)
    parser.add_argument("--search", help="of this name alone")
    parser.add_argument("--task", action="append", help="this task alone; again for several")
    parser.add_argument("--seed", type=int, help="this seed alone")
    parser.add_argument("--budget", type=int, help="calls of a run; other than the recipe's are kept apart")
    args = parser.parse_args()
    recipe = tomllib.loads(args.recipe.read_text("utf-8"))
    budget = args.budget or recipe["budget"]
    folder = BENCH if budget == recipe["budget"] else BENCH / f"{budget}-calls"
    tasks = args.task or recipe["tasks"] or [*PMO_TASKS, *KINASES]
    stored = set[tuple[str, ...]]()  # the cells of the board, whose calls may be elsewhere
    if folder == BENCH and STORED.exists():
        stored = {*pd.read_csv(STORED, dtype=str)[["search", "task", "seed"]].itertuples(index=False, name=None)}
    for seed in recipe["seeds"] if args.seed is None else [args.seed]:
        for search in recipe["search"]:
            label = search.get("label", search["name"])
            if args.search not in (None, label) or (args.seed is None and seed not in search.get("seeds", [seed])):
                continue
            for task in tasks:
                out = folder / label / f"{task}-{seed}.csv.gz"
                if not out.exists() and (label, task, str(seed)) not in stored:
                    run_cell(search, task, seed, budget, out)
                    print(f"{label} {task} seed {seed}: {out}", flush=True)


if __name__ == "__main__":
    main()

"""The command: freeze splits, run the cells that are missing, print how far they are, write the table."""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from molgraph.base.errors import MolgraphError
from pipelines.quality.cells import Runner, cell_path, write_cell
from pipelines.quality.peers import run_chemprop, run_sklearn_forest
from pipelines.quality.study import HERE, Study, freeze, open_problem, read_dataset, read_study

RUNNERS: dict[str, Runner] = {"chemprop": run_chemprop, "sklearn_forest": run_sklearn_forest}


def run(study: Study, out: Path, methods: list[str], datasets: list[str], seeds: list[int]) -> None:
    """Run every cell that is not there yet, all seeds of a small dataset before a large one."""
    for dataset in study.dataset:
        if datasets and dataset.name not in datasets:
            continue
        table = None
        for method in methods:
            for seed in seeds or study.seeds:
                path = cell_path(out, dataset.name, method, seed)
                if path.exists():
                    continue
                table = read_dataset(dataset) if table is None else table
                problem = open_problem(study, dataset, seed, table)
                print(f"{time.strftime('%H:%M:%S')} {dataset.name} {method} seed {seed} ...", end="", flush=True)
                outcome = RUNNERS[method](problem)
                write_cell(path, problem, method, outcome)
                print(f" {outcome.seconds:.0f} s", flush=True)


def main(words: list[str] | None = None) -> int:
    """Read the command line and do what it says."""
    parser = argparse.ArgumentParser(prog="python -m pipelines.quality", description=__doc__)
    parser.add_argument("verb", choices=["freeze", "run", "status"])
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the cells")
    parser.add_argument("--recipe", type=Path, default=HERE / "quality.toml")
    parser.add_argument("--methods", nargs="+", choices=list(RUNNERS), default=list(RUNNERS))
    parser.add_argument("--datasets", nargs="+", default=[], help="names in the recipe; all of them by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[], help="all of the recipe's by default")
    given = parser.parse_args(words)
    try:
        study = read_study(given.recipe)
        if given.verb == "freeze":
            for dataset in study.dataset:
                if not given.datasets or dataset.name in given.datasets:
                    print(f"{dataset.name}: {len(freeze(study, dataset))} split files written")
        elif given.verb == "run":
            run(study, given.out, given.methods, given.datasets, given.seeds)
        else:
            for dataset in study.dataset:
                for method in given.methods:
                    there = [s for s in study.seeds if cell_path(given.out, dataset.name, method, s).exists()]
                    print(f"{dataset.name:16} {method:16} {len(there)} of {len(study.seeds)} cells")
    except MolgraphError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

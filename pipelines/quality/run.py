"""Freeze the splits of the recipe, compute the cells that are missing, and write docs/quality.md.

python pipelines/quality/run.py                             # all of it; a run that was stopped goes on
python pipelines/quality/run.py run --methods dmpnn         # some cells
python pipelines/quality/run.py status                      # how many cells are there
python pipelines/quality/run.py table                       # scores of the stored predictions into docs/quality.md
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from molgraph.base.errors import MolgraphError  # noqa: E402
from pipelines.quality.cells import Runner, cell_path, write_cell  # noqa: E402
from pipelines.quality.ours import run_dmpnn, run_forest, run_forest_morgan, run_mean  # noqa: E402
from pipelines.quality.peers import run_chemprop, run_sklearn_forest  # noqa: E402
from pipelines.quality.study import HERE, Study, freeze, open_problem, read_dataset, read_study  # noqa: E402
from pipelines.quality.table import headline, write_table  # noqa: E402
from pipelines.readme.block import replace_block  # noqa: E402

RUNNERS: dict[str, Runner] = {
    "mean": run_mean,
    "forest": run_forest,
    "forest_morgan": run_forest_morgan,
    "sklearn_forest": run_sklearn_forest,
    "dmpnn": run_dmpnn,
    "chemprop": run_chemprop,
}


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
    parser = argparse.ArgumentParser(
        prog="pipelines/quality/run.py", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "verb",
        nargs="?",
        default="all",
        choices=["freeze", "run", "status", "table", "all"],
        help="freeze: write the split files; run: what is missing, one cell after the other, small data first; "
        "status: how many cells are there; table: scores of the stored predictions into docs/quality.md; "
        "all (default): freeze, run and table",
    )
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder of the cells")
    parser.add_argument("--recipe", type=Path, default=HERE / "quality.toml")
    parser.add_argument("--methods", nargs="+", choices=list(RUNNERS), default=list(RUNNERS))
    parser.add_argument("--datasets", nargs="+", default=[], help="names in the recipe; all of them by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[], help="all of the recipe's by default")
    given = parser.parse_args(words)
    try:
        study = read_study(given.recipe)
        if given.verb in ("freeze", "all"):
            for dataset in study.dataset:
                if not given.datasets or dataset.name in given.datasets:
                    print(f"{dataset.name}: {len(freeze(study, dataset))} split files written")
        if given.verb in ("run", "all"):
            run(study, given.out, given.methods, given.datasets, given.seeds)
        if given.verb in ("table", "all"):
            text = write_table(study, given.out)
            replace_block("quality", text)
            replace_block("headline-quality", headline(text))
            print(text)
        if given.verb == "status":
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

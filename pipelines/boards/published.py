"""Enter published predictions of ESOL and FreeSolv, which stand in the data sets' own files, into a benchmark's folder.

    MOLGRAPH_DATA=... python pipelines/boards/published.py bench/moleculenet

ESOL's file has the predictions of Delaney's (2004) linear equation, FreeSolv's those of simulations (Mobley and Guthrie
2014). They enter as any program's predictions do: the folds are exported, the test files get a column of predictions,
and ``molgraph bench submit`` checks and scores them. The board marks their rows as self-reported.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pandas as pd

# dataset -> its file, the published column, the target, and the card of its row
PUBLISHED = {
    "esol": (
        "esol/delaney-processed.csv",
        "ESOL predicted log solubility in mols per litre",
        "measured log solubility in mols per litre",
        'name = "delaney-2004"\npaper = "Delaney 2004, J. Chem. Inf. Comput. Sci. 44:1000"\n'
        'tuning = "a linear equation that its author fitted to molecules of this set, tested ones too"\n',
    ),
    "freesolv": (
        "freesolv/SAMPL.csv",
        "calc",
        "expt",
        'name = "simulation"\npaper = "Mobley and Guthrie 2014, J. Comput.-Aided Mol. Des. 28:711"\n'
        'tuning = "none: free energies of molecular dynamics with a general force field"\n',
    ),
}


def enter(run: Path, dataset: str) -> None:
    """Enter the predictions of one set, whose ids in every edition are the rows of its file."""
    file, column, target, card = PUBLISHED[dataset]
    values = pd.read_csv(Path(os.environ["MOLGRAPH_DATA"]) / file)[column]
    tests = [pd.read_csv(path) for path in sorted(run.glob(f"folds/{dataset}*/*/*/test.csv"))]
    rows = pd.concat(tests)
    with tempfile.TemporaryDirectory() as folder:
        predictions, words = Path(folder) / "predictions.csv", Path(folder) / "card.toml"
        rows.assign(**{target: values.loc[rows["id"]].to_numpy()}).to_csv(predictions, index=False)
        words.write_text(card)
        molgraph("submit", run, predictions, "--card", words)


def molgraph(*words: str | Path) -> None:
    """Run ``molgraph bench`` with these words."""
    subprocess.run([sys.executable, "-m", "molgraph", "bench", *map(str, words)], check=True)


def main() -> int:
    """Export the folds of a run and enter what is known of its datasets."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="the folder of a benchmark")
    run = parser.parse_args().run
    molgraph("export", run / "recipe.toml", "-o", run)
    there = {path.name.partition("@")[0] for path in (run / "folds").iterdir()}
    for dataset in PUBLISHED.keys() & there:
        enter(run, dataset)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

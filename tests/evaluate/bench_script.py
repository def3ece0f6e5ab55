"""A run of a benchmark as a process of its own, for tests that kill it: folder, log and scores are arguments."""

from __future__ import annotations

import sys
from pathlib import Path

from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import score_records
from tests.evaluate.bench_tables import go, plain, recipe


def asked(log: str):
    """A few slow cells, a search among them, and some that fail."""
    slow = {"name": "odd", "label": "slow", "params": {"how": "slow", "log": log}}
    search = {"name": "ridge", "label": "searched", "search": {"trials": 4}}
    fails = {"name": "odd", "label": "fails", "params": {"how": "raise"}}
    return recipe({"name": "ridge", "params": {"noise": 0.1}}, slow, search, fails)


def main() -> None:
    """Run it, and write the scores where the third argument says."""
    out, log, scores = sys.argv[1:]
    ran = go(Path(out), asked(log), engine="local", jobs=2)
    plain(score_records(read_records(ran.out))).to_csv(scores, index=False)


if __name__ == "__main__":
    main()

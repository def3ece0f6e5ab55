"""Train all endpoints of a project with one command, and test on its latest fifth: ExpansionRx, nine ADME endpoints.

    export MOLGRAPH_DATA=...
    python pipelines/trust/programme.py               # runs what programme.csv lacks, then writes PROGRAMME.md
    python pipelines/trust/programme.py --budget 10m --method auto

Rows are in the order of time; the last fifth is predicted once. All endpoints but LogD are learnt as log10, with an
exact zero as half of the smallest positive value. The error of an endpoint is its mean absolute error divided by that
of the training mean (relative absolute error); methods are compared by the mean over the endpoints. Beside it stands
the rank of each method by cross-validation inside the earlier four fifths, as ``auto`` measured it.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT))

import molgraph  # noqa: E402
from molgraph.base.paths import data_dir, write_whole  # noqa: E402

STORED, PAGE = HERE / "programme.csv", HERE / "PROGRAMME.md"
PLAIN, LATEST = "LogD", 0.2
METHODS: dict[str, dict[str, Any]] = {
    "auto": {"model": "auto"},
    "random_forest": {"model": "random_forest"},
    "xgboost": {"model": "xgboost"},
    "maplight": {"model": "maplight(iterations=500, column_share=0.2, borders=32)"},
    "maplight+encoder": {
        "model": "maplight(iterations=500, column_share=0.2, borders=32, descriptors=encoder-descriptors)"
    },
    "dmpnn": {"model": "dmpnn(descriptors=rdkit)"},
}


def programme() -> tuple[pd.DataFrame, list[str]]:
    """The table in the order of time, endpoints as they are learnt, and their names."""
    folder = data_dir()
    if folder is None:
        raise SystemExit("set MOLGRAPH_DATA to the folder that holds openadmet_expansionrx")
    frame = pd.read_csv(folder / "openadmet_expansionrx" / "expansion_data_train.csv.gz")
    names = [name for name in frame.columns if name not in ("Molecule Name", "SMILES")]
    for name in names:
        if name != PLAIN:
            value = frame[name]
            frame[name] = np.log10(value.where(value > 0, value[value > 0].min() / 2).where(value.notna()))
    return frame, names


def run(name: str, budget: str) -> pd.DataFrame:
    """A row an endpoint: the relative absolute error, and of ``auto`` what it tried."""
    frame, targets = programme()
    first = round(len(frame) * (1 - LATEST))
    train, test = frame[:first], frame[first:]
    how = dict(METHODS[name])
    if name == "auto":
        how["budget"] = budget
    start = time.process_time()
    result = molgraph.train(
        train, test=test, smiles="SMILES", id="Molecule Name", targets=targets, seed=0, threads=1, baseline=False, **how
    )
    value = result.runs[0].prediction.value
    rows = []
    for j, target in enumerate(targets):
        known = test[target].notna().to_numpy() & np.isfinite(value[:, j])
        y = test[target].to_numpy()[known]
        error, floor = np.abs(value[known, j] - y).mean(), np.abs(train[target].mean() - y).mean()
        rows.append({"method": name, "endpoint": target, "n": int(known.sum()), "rae": error / floor})
    out = pd.DataFrame(rows).assign(cpu_seconds=round(time.process_time() - start), budget=budget)
    if name == "auto":
        trials = result.model.method.trials
        errors = trials.filter(like="error of ")
        relative = errors / errors.loc[trials["method"] == "ensemble"].to_numpy()
        words = [
            f"{method}={each:.4f}"
            for method, each in zip(trials["method"], relative.mean(axis=1), strict=True)
            if np.isfinite(each)
        ]
        out["tried"] = " ".join(words)
    return out


def page(rows: pd.DataFrame) -> str:
    """PROGRAMME.md: a row a method."""
    wide = rows.pivot(index="method", columns="endpoint", values="rae")
    mean = wide.mean(axis=1).sort_values()
    tried = rows.get("tried", pd.Series(dtype=str)).dropna()
    inner = dict(each.rsplit("=", 1) for each in (tried.iloc[0].split() if len(tried) else []))
    ranked = sorted((name for name in inner if name in mean.index), key=lambda name: float(inner[name]))
    cpu = rows.groupby("method")["cpu_seconds"].first()
    head = "| method | mean | " + " | ".join(wide.columns) + " | rank in time | rank out of fold | CPU s |"
    lines = [
        f"| {name} | **{mean[name]:.3f}** | {' | '.join(f'{each:.3f}' for each in wide.loc[name])} | {place} | "
        f"{ranked.index(name) + 1 if name in ranked else '–'} | {cpu[name]:,} |"
        for place, name in enumerate(mean.index, 1)
    ]
    return "\n".join([
        "# A project in time: ExpansionRx, nine endpoints",
        "",
        "Relative absolute error (1 is the training mean) on the latest fifth of the rows, log10 of all but LogD.",
        "`auto` is one command for all endpoints; the rank out of fold is of the trials inside the earlier rows.",
        "Generated by `python pipelines/trust/programme.py`.",
        "",
        head,
        "|---" * (head.count("|") - 1) + "|",
        *lines,
        "",
    ])  # fmt: skip


def main() -> None:
    """Run what is missing and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--method", choices=METHODS, action="append", help="this one alone; again for several")
    parser.add_argument("--budget", default="10m", help="of auto")
    parser.add_argument("--page", action="store_true", help="write the page from what is stored")
    args = parser.parse_args()
    logging.getLogger("molgraph").setLevel(logging.INFO)
    rows = pd.read_csv(STORED) if STORED.exists() else pd.DataFrame(columns=["method"])
    for name in () if args.page else args.method or METHODS:
        if not (rows["method"] == name).any():
            rows = pd.concat([rows, run(name, args.budget)], ignore_index=True)
            write_whole(STORED, rows.round(5).to_csv(index=False))
            print(rows[rows["method"] == name].to_string(), flush=True)
    write_whole(PAGE, page(rows))


if __name__ == "__main__":
    main()

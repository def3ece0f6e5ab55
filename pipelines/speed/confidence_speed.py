"""Time ``predict`` with intervals, domain and nearest molecules beside ``predict --plain``, CSV to CSV.

The model has learnt 10,000 molecules of ZINC-250k, which its file keeps; others are predicted.
"""

from __future__ import annotations

import logging
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
from timing import in_turn

import molgraph
from molgraph.base.paths import data_dir

LEARNT, ASKED, ROUNDS = 10_000, 20_000, 3
METHODS = {
    "dmpnn, as it is trained by default": {"model": "dmpnn", "epochs": 1, "baseline": False},
    "dmpnn without descriptors": {"model": "dmpnn", "epochs": 1, "baseline": False, "params": {"descriptors": "none"}},
    "random_forest": {"model": "random_forest"},
}


def confidence_speed() -> dict[str, dict[str, Any]]:
    """A row a method: molecules/s with and without."""
    folder = data_dir()
    if folder is None:
        raise SystemExit("set MOLGRAPH_DATA to the folder that holds zinc250k")
    (path,) = (folder / "zinc250k").glob("*properties.csv*")
    frame = pd.read_csv(path).rename(columns=str.lower)
    frame["smiles"] = frame["smiles"].str.strip()
    logging.getLogger("molgraph").setLevel(logging.ERROR)
    rows = {}
    with tempfile.TemporaryDirectory() as place:
        home = Path(place)
        frame["smiles"][LEARNT : LEARNT + ASKED].to_csv(home / "asked.csv", index=False)
        for name, how in METHODS.items():
            table = frame[:LEARNT][["smiles", "logp"]]
            result = molgraph.train(table, targets=["logp"], split="random", fractions=(0.9, 0.05, 0.05), **how)
            model = result.save(home / "model.mgm")
            run = partial(molgraph.predict_file, model, home / "asked.csv")
            own, plain = in_turn(
                [partial(run, home / "own.csv"), partial(run, home / "plain.csv", plain=True)],
                ROUNDS,
                time.perf_counter,
            )
            row = {"molgraph": ASKED / own, "peer": ASKED / plain, "peer_name": "`predict --plain`"}
            words = f"`predict` with interval, domain and nearest molecule, {name}"
            rows[words] = {**row, "unit": "molecules/s", "ratio": plain / own, "floor": 1 / 1.3}
    return rows

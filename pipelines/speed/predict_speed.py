"""A table of 100,000 molecules in, seconds and peak memory of `molgraph predict` and `chemprop predict` out."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pandas as pd

SCRIPTS = Path(sys.executable).parent


def molecules(n: int) -> tuple[list[str], str]:
    """``n`` SMILES and where they are from: ZINC-250k where the data folder holds it, else the NCI list repeated."""
    folder = os.environ.get("MOLGRAPH_DATA")
    zinc = Path(folder, "zinc250k", "zinc250k_properties.csv.gz") if folder else None
    if zinc and zinc.exists():
        with gzip.open(zinc, "rt") as file:
            return pd.read_csv(file, usecols=["smiles"], nrows=n)["smiles"].tolist(), f"first {n:,} of ZINC-250k"
    import molgraph

    listed = list(molgraph.read_table("builtin:nci").smiles)
    return (listed * (n // len(listed) + 1))[:n], f"RDKit's NCI list repeated to {n:,} rows"


def measured(command: list[str], env: dict[str, str] | None = None) -> tuple[float, float]:
    """Wall seconds of a command, and peak memory in GB of it and its children together.

    Memory is each process's share of what several hold (``Pss``), read ten times a second; where the system does
    not tell, the largest single process.
    """
    start = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, **(env or {})}
    )
    assert process.stderr is not None
    peak, done = [0.0], Event()

    def watch() -> None:
        while not done.wait(0.1):
            peak[0] = max(peak[0], family_memory(process.pid))

    watcher = Thread(target=watch)
    watcher.start()
    words = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    done.set()
    watcher.join()
    if status != 0:
        raise SystemExit(f"{' '.join(command)} failed:\n{words.decode()[-2000:]}")
    return seconds, peak[0] or usage.ru_maxrss / 1e6


def family_memory(pid: int) -> float:
    """GB of a process and its children together; 0 where the system does not tell."""
    total = 0.0
    with suppress(OSError):
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            total += float(line.split()[1]) / 1e6 if line.startswith("Pss:") else 0.0
        for task in Path(f"/proc/{pid}/task").iterdir():
            total += sum(map(family_memory, map(int, (task / "children").read_text().split())))
    return total


def predict_speed(folder: Path) -> dict[str, dict[str, Any]]:
    """Train one model with each library at the same sizes, then predict the same file with each in turn.

    The peer runs as it comes, with the C++ featuriser that it has behind a flag, and with a process that loads too;
    with RDKit's descriptors, which take most of the time, as it comes on fewer molecules.
    """
    fast, loads = "--use-cuikmolmaker-featurization", ["--num-workers", "1"]
    alone = against(folder, 100_000, "none", {"": [], f" {fast}": [fast], f" {fast} --num-workers 1": [fast, *loads]})
    return alone | against(folder, 20_000, "rdkit", {"": []})


def against(
    folder: Path, n: int, descriptors: str, peers: dict[str, list[str]], rounds: int = 2
) -> dict[str, dict[str, Any]]:
    """Rows of ``n`` molecules, with descriptors or without, for the peer's options by their words."""
    import molgraph

    smiles, origin = molecules(n)
    data, train, ours = folder / "many.csv", folder / "train.csv", folder / "ours.mgm"
    pd.DataFrame({"id": [f"m{i:06d}" for i in range(n)], "smiles": smiles}).to_csv(data, index=False)
    series = molgraph.read_table("builtin:chembl2321810").to_frame()[["smiles", "pActivity"]]
    series.to_csv(train, index=False)
    own = {"epochs": 3, "baseline": False, "params": {"descriptors": descriptors}}
    molgraph.train(train, smiles="smiles", targets=["pActivity"], **own).save(ours)
    read = ["--molecule-featurizers", "rdkit_2d"] if descriptors == "rdkit" else []
    columns = ["--smiles-columns", "smiles", *read, "-q"]
    chemprop, kept = str(SCRIPTS / "chemprop"), folder / f"peer-{descriptors}"
    words = ["train", "-i", str(train), "-o", str(kept), "--epochs", "3", "--target-columns", "pActivity"]
    measured([chemprop, *words, *columns])
    ask = [chemprop, "predict", "-i", str(data), *columns, "-o", str(folder / "theirs.csv")]
    ask += ["--model-paths", str(sorted(kept.rglob("best.pt"))[0])]
    commands = {
        "molgraph": [str(SCRIPTS / "molgraph"), "predict", str(ours), str(data), "-o", str(folder / "ours.csv")]
    }
    commands |= {f"`{' '.join(['chemprop predict', *read])}{name}`": [*ask, *more] for name, more in peers.items()}
    best = {name: (float("inf"), float("inf")) for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            (folder / "ours.csv").unlink(missing_ok=True)
            seconds, memory = measured(command)
            best[name] = (min(best[name][0], seconds), min(best[name][1], memory))
    mine, memory = best.pop("molgraph")
    what = "`predict` with RDKit's descriptors" if read else "`predict`"
    work = f"{what} CSV to CSV, {n:,} molecules ({origin}), preset `standard`, float32"
    return {
        f"{work}, against {name}": {
            "molgraph": n / mine,
            "peer": n / seconds,
            "ratio": seconds / mine,
            "floor": 1.0 if read else 3.0,
            "peer_name": name,
            "unit": "molecules/s",
            "memory_gb": [round(memory, 2), round(other, 2)],
        }
        for name, (seconds, other) in best.items()
    }

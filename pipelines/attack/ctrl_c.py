"""Send Ctrl-C to every verb at random moments, and write how long each took to answer.

    python pipelines/attack/ctrl_c.py            # ten moments of each verb, some ten minutes
    python pipelines/attack/ctrl_c.py --times 3 predict train

``ctrl_c.json`` beside this file has, for each command, the moments, the exit codes and the longest answer in seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import molgraph

RESULTS = Path(__file__).with_name("ctrl_c.json")
ASKED_SECONDS = 2.0
ROWS = 20_000
LONGEST_WAIT = 20.0  # seconds; moments lie in the run of the command, and within this
COMMANDS = {
    "predict forest": "predict forest.mgm big.csv -o out.csv",
    "predict network": "predict network.mgm big.csv -o out.csv",
    "evaluate": "evaluate forest.mgm big.csv",
    "verify": "verify network.mgm",
    "train dmpnn": "train big.csv -t pActivity -o m.mgm",
    "train forest": "train big.csv -t pActivity -m random_forest -o m.mgm",
    "train svm": "train big.csv -t pActivity -m svm -o m.mgm",
    "train gp": "train big.csv -t pActivity -m gp -o m.mgm",
    "train maplight": "train big.csv -t pActivity -m maplight -o m.mgm",
    "bench run": "bench run quick -o bench",
    "data featurize": "data featurize big.csv -o store",
    "data audit": "data audit big.csv",
    "data split": "data split big.csv -o split.json",
    "bench xray": "bench xray big.csv",
}


def prepare(folder: Path) -> None:
    """A large table of the built-in molecules with salts, and a forest and a network to predict with."""
    smiles = list(molgraph.read_table("builtin:nci").smiles)
    rows = [f"{text}.{'C' * (1 + i // len(smiles))},{i % 977}" for i, text in enumerate((smiles * 9)[:ROWS])]
    (folder / "big.csv").write_text("smiles,pActivity\n" + "\n".join(rows), encoding="utf-8")
    for name, model in (("forest", "random_forest"), ("network", "dmpnn")):
        made = molgraph.train("builtin:chembl2321810", model=model, epochs=2 if model == "dmpnn" else None)
        made.model.save(folder / f"{name}.mgm")


def press(words: list[str], moment: float, folder: Path) -> tuple[int, float, str] | None:
    """Exit code, seconds to the end and standard error; None where the command had ended before the moment."""
    command = [sys.executable, "-m", "molgraph", *words]
    with tempfile.TemporaryFile("w+") as err:  # no pipe: a child of the command may hold it longer than the command
        process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=err, start_new_session=True)
        try:
            process.wait(moment)
            return None
        except subprocess.TimeoutExpired:
            began = time.monotonic()
            process.send_signal(signal.SIGINT)
        try:
            code = process.wait(30)
        except subprocess.TimeoutExpired:
            process.kill()
            code = 999
        seconds = time.monotonic() - began
        err.seek(0)
        return code, seconds, err.read()


def length(words: list[str], folder: Path) -> float:
    """Seconds that the command runs for when it is left alone, 20 at most; it has to be one that works."""
    began = time.monotonic()
    command = [sys.executable, "-m", "molgraph", *words]
    try:
        subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=LONGEST_WAIT)
    except subprocess.TimeoutExpired:
        return LONGEST_WAIT
    return time.monotonic() - began


def main() -> None:
    """Try the commands that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("commands", nargs="*", help="begin of their names")
    parser.add_argument("--times", type=int, default=10)
    asked = parser.parse_args()
    found: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ["MOLGRAPH_QUIET"] = "1"
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        prepare(folder)
        for name, words in COMMANDS.items():
            if asked.commands and not name.startswith(tuple(asked.commands)):
                continue
            rng, last = random.Random(name), 0.95 * length(words.split(), folder)
            moments = [round(rng.uniform(0.1, last), 2) for _ in range(asked.times)]
            ends = [end for moment in moments if (end := press(words.split(), moment, folder)) is not None]
            if not ends:  # it had ended by itself before every moment
                print(name, "ended before it was pressed: nothing is recorded", flush=True)
                continue
            found[name] = {
                "pressed": len(ends),
                "exit_codes": sorted({code for code, _, _ in ends}),
                "longest_seconds": round(max((seconds for _, seconds, _ in ends), default=0.0), 2),
                "tracebacks": sum("Traceback" in text for _, _, text in ends),
            }
            print(name, found[name], flush=True)
            RESULTS.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    late = [name for name, each in found.items() if each["longest_seconds"] > ASKED_SECONDS]
    # 0: it was pressed as the command ended, after all was written
    wrong = [name for name, each in found.items() if set(each["exit_codes"]) - {130, 0} or each["tracebacks"]]
    print(f"later than {ASKED_SECONDS:g} s: {', '.join(late) or 'none'}; other ends: {', '.join(wrong) or 'none'}")
    sys.exit(bool(late or wrong))


if __name__ == "__main__":
    main()

"""Measure every speed ratio of molgraph against its peers in one run; write results.json and docs/speed.md.

python pipelines/speed/run.py            # everything, an hour on an idle machine
python pipelines/speed/run.py --only data
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent.parent)]

import torch  # noqa: E402
from jtvae_peer import without_peer  # noqa: E402
from jtvae_speed import PEER_UPTO, exponent, jtvae_rates, jtvae_sizes  # noqa: E402
from readme.block import replace_block  # noqa: E402
from timing import figure  # noqa: E402
from zoo_page import about_dimenet, about_zoo  # noqa: E402

import molgraph  # noqa: E402
from molgraph.base.paths import atomic_write  # noqa: E402

RESULTS = HERE / "results.json"
HEADLINES = {
    "training step, float32": "training",
    "inference, float32": "inference",
    "`predict` CSV to CSV": "`predict` of 100,000 molecules",
}  # parts of the names of rows, and their words in the README
GROUPS = (
    *("data", "model", "zoo", "dimenet", "loading", "predict", "splits", "bench", "jtvae", "jtvae-size", "space"),
    "pretraining",
    "search",
    "confidence",
)


def measure(groups: list[str]) -> dict[str, dict[str, Any]]:
    """Rows by name: molgraph's rate, the peer's, their ratio, the floor asked for."""
    rows: dict[str, dict[str, Any]] = {}
    if "data" in groups:
        from data_speed import data_speed

        rows |= data_speed()
    if "model" in groups:
        from model_speed import model_speed

        rows |= model_speed()
    if "zoo" in groups:
        from zoo_speed import zoo_speed

        rows |= zoo_speed()
    if "dimenet" in groups:
        from dimenet_speed import dimenet_speed

        rows |= dimenet_speed()
    if "space" in groups:
        from space_speed import space_speed

        rows |= space_speed()
    if "pretraining" in groups:
        from pretraining_speed import pretraining_speed

        rows |= pretraining_speed()
    if "search" in groups:
        from search_speed import search_speed

        rows |= search_speed()
    if "confidence" in groups:
        from confidence_speed import confidence_speed

        rows |= confidence_speed()
    if "predict" in groups:
        from predict_speed import predict_speed

        with tempfile.TemporaryDirectory() as folder:
            rows |= predict_speed(Path(folder))
    return rows


def table(results: dict[str, Any]) -> str:
    """The table of docs/speed.md."""
    lines = ["| work | molgraph | peer | ratio | asked |", "|---|---|---|---|---|"]
    for name, row in results["rows"].items():
        memory = row.get("memory_gb")
        extra = f" (peak memory {memory[0]} GB against {memory[1]} GB)" if memory else ""
        lines.append(
            f"| {name}{extra} | {figure(row['molgraph'])} {row['unit']} | {row['peer_name']} {figure(row['peer'])} "
            f"| **{row['ratio']:.2f} x** | {row['floor']:g} x{'' if row['ratio'] >= row['floor'] else ', below'} |"
        )
    lines += ["", *about_bfloat16(results), *about_butina(results), *about_bench(results), *about_zoo(results)]
    lines += [*about_dimenet(results), *about_jtvae(results)]
    machine = results["machine"]
    lines += [
        "",
        f"Both sides of a row in turn in one run, medians, on {machine['date']}",
        "(`predict` and splits: the best of two or three):",
    ]
    lines += [f"{machine['cpu']}, torch {machine['torch']};"]
    lines += [f"SMILES to tensors and batches on one thread, the others on {machine['threads']}."]
    lines += ["Made by `python pipelines/speed/run.py`; figures in `pipelines/speed/results.json`."]
    return "\n".join(lines)


def headline(results: dict[str, Any]) -> str:
    """What the README says of speed."""
    ratios = {part: [row["ratio"] for name, row in results["rows"].items() if part in name] for part in HEADLINES}
    said = [f"{words} **{min(found):.1f}" + f" to {max(found):.1f}" * (min(found) != max(found)) + " x**"
            for part, words in HEADLINES.items() if (found := ratios[part])]  # fmt: skip
    return f"- **Fast**: against chemprop on {results['machine']['cpu']}, {', '.join(said)} ([all](docs/speed.md))."


def about_bfloat16(results: dict[str, Any]) -> list[str]:
    """How far it moves predictions, and whether it pays on this machine, in words."""
    lines, moved, rows = [], results.get("bfloat16"), results["rows"]
    if moved:
        lines += [
            f"bfloat16 moves a prediction by {100 * moved['rms']:.2f}% of the target's standard deviation (root mean",
            f"square over {moved['models']} models); {100 * moved['largest']:.2f}% at most, "
            f"{100 * moved['beyond']:.3f}% of the predictions by more than 1%, on {moved['on']}.",
        ]
    paid = [
        row["molgraph"] / rows[n.replace("bfloat16", "float32")]["molgraph"]
        for n, row in rows.items()
        if "bfloat16" in n
    ]
    if paid and max(paid) < 1:
        lines.append(
            f"It is slower than float32 on this processor ({min(paid):.2f} to {max(paid):.2f} of its rate), "
            "which lacks matrix units for it (AMX): its rows pass because float32 does."
        )
    return lines


def about_butina(results: dict[str, Any]) -> list[str]:
    """Seconds and memory of clusters of many molecules, in words."""
    found = results.get("butina")
    if not found:
        return []
    return [
        f"Butina clusters ({found['on']}): {found['seconds']:.0f} s and {found['peak_mb']:,} MB more at the peak;",
        f"one byte a pair would take {found['one_byte_a_pair_mb']:,} MB.",
    ]


def about_bench(results: dict[str, Any]) -> list[str]:
    """Seconds of the benchmark's own work, in words."""
    return [
        f"{row['what']}: {row['seconds']:.3g} s (asked: under {row['limit']:g} s"
        f"{')' if row['seconds'] < row['limit'] else ', above)'}{f', {cpu}' if (cpu := row.get('cpu')) else ''}."
        for row in results.get("bench") or ()
    ]


def about_jtvae(results: dict[str, Any]) -> list[str]:
    """Milliseconds a molecule of a JT-VAE against the molecule's size, as a table, and how they grow with it."""
    found = results.get("jtvae")
    if not found:
        return []
    works = [(work, side) for work in ("preprocessing", "training") for side in found[0][work]]
    empty = any(side not in row[work] for row in found for work, side in works)
    lines = [
        "",
        f"JT-VAE against molecule size: milliseconds of the processor a molecule ({found[0]['from']}, "
        f"{found[0]['molecules']} molecules a row; training in batches of {found[0]['batch']}).",
        "The last row is the power of the number of heavy atoms with which they grow, the slope of a line through the",
        "logarithms: 1 is linear."
        f" From {PEER_UPTO} heavy atoms on the authors' code takes over 10 s and 6 GB a molecule: not run." * empty,
        "",
        "| heavy atoms | " + " | ".join(f"{work}, {side}" for work, side in works) + " |",
        "|---" * (1 + len(works)) + "|",
    ]
    for row in found:
        cells = [figure(row[work][side]) if side in row[work] else "not run" for work, side in works]
        lines.append(f"| {row['heavy_atoms']:g} | " + " | ".join(cells) + " |")
    powers = [f"**{exponent(found, work, side):.2f}**" for work, side in works]
    return [*lines, "| power of atoms | " + " | ".join(powers) + " |"]


def machine() -> dict[str, Any]:
    """What it was measured on."""
    cpu = platform.processor() or platform.machine()
    info = Path("/proc/cpuinfo")
    if info.exists():
        named = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        cpu = f"{named[0]}, {len(named)} cores" if named else cpu
    return {
        "date": time.strftime("%Y-%m-%d"), "cpu": cpu, "threads": torch.get_num_threads(), "torch": torch.__version__,
        "python": platform.python_version(), "molgraph": molgraph.__version__,
    }  # fmt: skip


def _spanned(old: dict[str, Any] | None, new: dict[str, Any], rows: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """What rows of several days were measured on; older rows have no date of their own."""
    first = {key: str((old or new)[key]).split(" to ")[0] for key in ("date", "threads")}
    first["date"] = min(row.get("date", first["date"]) for row in rows.values())
    return new | {key: f"{was} to {new[key]}" if was != str(new[key]) else new[key] for key, was in first.items()}


def with_group(kept: dict[str, Any], group: str) -> dict[str, Any]:
    """The results with one group measured anew; the others keep their rows."""
    results = {name: kept.get(name) for name in ("machine", "bfloat16", "butina", "bench", "loading", "jtvae")}
    rows = measure([group])
    if group == "model":
        from precision import bfloat16_moves

        results["bfloat16"] = bfloat16_moves()
    elif group == "splits":
        from splits_speed import splits_speed

        rows, results["butina"] = splits_speed()
    elif group == "bench":
        from bench_speed import bench_speed

        results["bench"] = [{**row, "cpu": machine()["cpu"]} for row in bench_speed()]
    elif group == "jtvae":
        rows = jtvae_rates()
    elif group == "jtvae-size":
        results["jtvae"] = jtvae_sizes() or kept.get("jtvae")
    elif group == "loading":
        from loading_speed import gin_loading

        results["loading"] = gin_loading()
    now = machine()
    all_rows = {**kept.get("rows", {}), **{name: {**row, "date": now["date"]} for name, row in rows.items()}}
    if rows or not kept:
        results["machine"] = _spanned(kept.get("machine"), now, all_rows)
    return {**results, "rows": all_rows}


def main() -> None:
    """Measure, keep, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=GROUPS, action="append", help="measure one group; the others keep their rows")
    groups = parser.parse_args().only or [group for group in GROUPS if "jtvae" not in group or not without_peer()]
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for group in groups:  # each is kept as soon as it is done: all of them take an hour
        results = with_group(results, group)
        with atomic_write(RESULTS, "w") as file:
            json.dump(results, file, indent=1)
    replace_block("speed", table(results))
    replace_block("headline-speed", headline(results))
    print(table(results))


if __name__ == "__main__":
    main()

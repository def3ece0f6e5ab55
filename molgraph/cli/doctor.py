"""``molgraph doctor``: print the versions and devices of this machine, with advice."""

from __future__ import annotations

import json
import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

from molgraph.base.cores import cores
from molgraph.base.paths import cache_dir, data_dir
from molgraph.base.printable import count
from molgraph.base.version import package_versions
from molgraph.cli.options import AsJson

PACKAGES: tuple[str, ...] = ("torch", "torch-geometric", "rdkit", "cuik-molmaker-pin", "lightning", "deepchem")
PACKAGES += ("scikit-learn", "numpy", "pandas", "pyarrow", "safetensors", "chemprop")


def doctor(as_json: AsJson = False) -> None:
    """Show the versions and devices of this machine, with advice.

    Examples:
        molgraph doctor
        molgraph doctor --json > machine.json  # to send with a question
    """
    report = facts()
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        show(report)


def show(report: dict[str, Any]) -> None:
    """Print the report for people."""
    from rich.console import Console

    from molgraph.cli.show import grid

    versions, machine = (grid(title, "", "", show_header=False) for title in ("Versions", "\nMachine"))
    for name, version in report["versions"].items():
        note = ""
        if name == "cuik-molmaker-pin" and version:
            note = "  matches rdkit" if report["featuriser_matches_rdkit"] else "  [red]built for another rdkit[/red]"
        versions.add_row(f"{name:20}", f"{version}{note}" if version else "[dim]not installed[/dim]")
    for device in report["devices"]:
        counts = ", ".join(count(report[f"{word}s"], word) for word in ("core", "thread"))
        more = f", {counts}" if device["device"] == "cpu" else ""
        machine.add_row(device["device"], f"{device['name']}{more}, {_gigabytes(device['memory_bytes'])}")
    cache, data = report["cache"], report["data"]
    machine.add_row(f"{'cache':20}", f"{cache['path']}  ({_gigabytes(cache['free_bytes'])} free)")
    machine.add_row("MOLGRAPH_DATA", data["found"] or data["named"] or "[dim]not set[/dim]")
    console = Console(highlight=False)
    console.print(versions, machine, "")
    for sentence in report["advice"]:
        console.print(f"[yellow]![/yellow] {sentence}")
    if not report["advice"]:
        console.print("[green]all is well[/green]")


def _gigabytes(size: int | None) -> str:
    return "memory unknown" if size is None else f"{size / 1e9:,.1f} GB"


def versions() -> dict[str, str | None]:
    """Versions of Python, molgraph and what it stands on; None where a package is not installed."""
    return {"python": "", "molgraph": "", **dict.fromkeys(PACKAGES), **package_versions(PACKAGES)}


def featuriser_matches(found: dict[str, str | None]) -> bool | None:
    """Whether the C++ featuriser was built for this rdkit; None where it is not installed."""
    cuik, rdkit = found.get("cuik-molmaker-pin"), found.get("rdkit")
    if cuik is None or rdkit is None:
        return None
    return [int(part) for part in cuik.split(".")[:3]] == [int(part) for part in rdkit.split(".")[:3]]


def memory_bytes() -> int | None:
    """Memory that this process may use: the machine's, or its container's limit where that is lower."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return None
    try:
        return min(total, int(Path("/sys/fs/cgroup/memory.max").read_text()))
    except (OSError, ValueError):
        return total


def devices() -> list[dict[str, Any]]:
    """What torch can compute on, the CPU first."""
    import torch

    from molgraph.evaluate.benchmark.job import machine

    entries: list[dict[str, Any]] = [{"device": "cpu", "name": machine()["cpu"], "memory_bytes": memory_bytes()}]
    for i in range(torch.cuda.device_count()):
        about = torch.cuda.get_device_properties(i)
        entries.append({"device": f"cuda:{i}", "name": about.name, "memory_bytes": about.total_memory})
    if torch.backends.mps.is_available():
        entries.append({"device": "mps", "name": "Apple GPU", "memory_bytes": memory_bytes()})
    return entries


def facts() -> dict[str, Any]:
    """All of it, with advice."""
    import torch

    packages, cache, data = versions(), cache_dir(), data_dir()
    there = next(folder for folder in (cache, *cache.parents) if folder.exists())
    free, writable = shutil.disk_usage(there).free, os.access(there, os.W_OK)
    report: dict[str, Any] = {
        "versions": packages,
        "featuriser_matches_rdkit": featuriser_matches(packages),
        "platform": platform.platform(),
        "devices": devices(),
        "cores": cores(),
        "threads": torch.get_num_threads(),
        "cache": {"path": str(cache), "writable": writable, "free_bytes": free},
        "data": {"named": os.environ.get("MOLGRAPH_DATA"), "found": None if data is None else str(data)},
    }
    return report | {"advice": advice(report)}


def advice(report: dict[str, Any]) -> list[str]:
    """What to do about what was found, one sentence each; empty where all is well."""
    builds, tips = report["versions"], []
    if report["featuriser_matches_rdkit"] is None:
        tips.append(
            "cuik-molmaker-pin is not installed: reading molecules takes several times as long; "
            f"pip install cuik-molmaker-pin=={builds['rdkit']} where it has a wheel for this platform"
        )
    elif not report["featuriser_matches_rdkit"]:
        tips.append(
            f"cuik-molmaker-pin {builds['cuik-molmaker-pin']} was built for another rdkit than {builds['rdkit']} and "
            f"is not used: pip install cuik-molmaker-pin=={builds['rdkit']}"
        )
    if builds["deepchem"] is None and sys.version_info < (3, 12):
        tips.append("deepchem is not installed: only its dataset loaders need it")
    if report["threads"] > report["cores"]:
        used, there = count(report["threads"], "thread"), count(report["cores"], "core")
        tips.append(f"torch uses {used} on {there}: set OMP_NUM_THREADS")
    if not report["cache"]["writable"]:
        tips.append(f"the cache {report['cache']['path']} cannot be written: point MOLGRAPH_CACHE at another folder")
    if report["cache"]["free_bytes"] < 2e9:
        tips.append("under 2 GB are free where the cache lies: make room, or point MOLGRAPH_CACHE elsewhere")
    if report["data"]["named"] and report["data"]["found"] is None:
        tips.append(f"MOLGRAPH_DATA names {report['data']['named']}, which is not a folder: data tests will be skipped")
    return tips

"""``molgraph doctor``: print the versions, devices and speed of this machine, with advice."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print the same as JSON, for a report or a script.")] = False,
) -> None:
    """Show versions, devices and the speed of this machine, with advice.

    Takes about three seconds, most of it to measure.

    Examples:
        molgraph doctor
        molgraph doctor --json > machine.json  # to send with a question
    """
    from molgraph.base.progress import bar
    from molgraph.cli import machine

    with bar("measuring this machine"):
        report = machine.facts()
    if as_json:
        print(json.dumps(report, indent=2))
    else:
        show(report)


def show(report: dict[str, Any]) -> None:
    """Print the report for people."""
    from rich.console import Console

    from molgraph.cli.machine import count
    from molgraph.cli.show import grid

    versions, machine = (grid(title, "", "", show_header=False) for title in ("Versions", "\nMachine"))
    for name, found in report["versions"].items():
        note = ""
        if name == "cuik-molmaker-pin" and found:
            note = "  matches rdkit" if report["featuriser_matches_rdkit"] else "  [red]built for another rdkit[/red]"
        versions.add_row(f"{name:20}", f"{found}{note}" if found else "[dim]not installed[/dim]")
    for device in report["devices"]:
        counts = ", ".join(count(report[f"{word}s"], word) for word in ("core", "thread"))
        more = f", {counts}" if device["device"] == "cpu" else ""
        machine.add_row(device["device"], f"{device['name']}{more}, {_gigabytes(device['memory_bytes'])}")
    speed, cache, data = report["speed"], report["cache"], report["data"]
    products = f"{speed['float32_gflops']:,.0f} GFLOP/s float32, {speed['bfloat16_gflops']:,.0f} GFLOP/s bfloat16"
    machine.add_row(f"{'reading SMILES':20}", f"{speed['smiles_per_second']:,.0f} molecules/s a core (RDKit)")
    machine.add_row("products, width 300", products)
    machine.add_row("memory", f"{speed['memory_gigabytes_per_second']:.1f} GB/s copied")
    machine.add_row("cache", f"{cache['path']}  ({_gigabytes(cache['free_bytes'])} free)")
    machine.add_row("MOLGRAPH_DATA", data["found"] or data["named"] or "[dim]not set[/dim]")
    console = Console(highlight=False)
    console.print(versions, machine, "")
    for sentence in report["advice"]:
        console.print(f"[yellow]![/yellow] {sentence}")
    if not report["advice"]:
        console.print("[green]all is well[/green]")


def _gigabytes(size: int | None) -> str:
    return "memory unknown" if size is None else f"{size / 1e9:,.1f} GB"

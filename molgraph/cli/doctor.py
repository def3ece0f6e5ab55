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
    from rich.table import Table

    from molgraph.cli import machine

    console = Console(highlight=False)
    table = Table(
        title="Versions", title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
    )
    table.add_column(style="cyan", no_wrap=True, min_width=20)
    table.add_column()
    for name, found in report["versions"].items():
        note = ""
        if name == "cuik-molmaker-pin" and found:
            note = "  matches rdkit" if report["featuriser_matches_rdkit"] else "  [red]built for another rdkit[/red]"
        table.add_row(name, f"{found}{note}" if found else "[dim]not installed[/dim]")
    console.print(table)
    console.print()

    table = Table(
        title="Machine", title_justify="left", title_style="bold", box=None, show_header=False, pad_edge=False
    )
    table.add_column(style="cyan", no_wrap=True, min_width=20)
    table.add_column()
    for device in report["devices"]:
        size = _gigabytes(device["memory_bytes"])
        counts = ", ".join(machine.count(report[f"{word}s"], word) for word in ("core", "thread"))
        more = f", {counts}" if device["device"] == "cpu" else ""
        table.add_row(device["device"], f"{device['name']}{more}, {size}")
    speed = report["speed"]
    table.add_row("reading SMILES", f"{speed['smiles_per_second']:,.0f} molecules/s a core (RDKit)")
    products = f"{speed['float32_gflops']:,.0f} GFLOP/s float32, {speed['bfloat16_gflops']:,.0f} GFLOP/s bfloat16"
    table.add_row("products, width 300", products)
    table.add_row("memory", f"{speed['memory_gigabytes_per_second']:.1f} GB/s copied")
    table.add_row("cache", f"{report['cache']['path']}  ({_gigabytes(report['cache']['free_bytes'])} free)")
    table.add_row("MOLGRAPH_DATA", report["data"]["found"] or report["data"]["named"] or "[dim]not set[/dim]")
    console.print(table)
    console.print()

    for sentence in report["advice"]:
        console.print(f"[yellow]![/yellow] {sentence}")
    if not report["advice"]:
        console.print("[green]all is well[/green]")


def _gigabytes(size: int | None) -> str:
    return "memory unknown" if size is None else f"{size / 1e9:,.1f} GB"

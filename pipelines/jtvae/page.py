"""Write the results of the checks as a page of tables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

PIECE = 2_000  # vectors that are decoded at once
#: Jin et al. 2018, tables 1 and 2: reconstruction, validity of the prior, and that without the check
PAPER = ("JT-VAE, as its authors report it", "76.7 %", "", "", "100 %", "93.5 %")


def page(results: dict[str, Any]) -> str:
    """Markdown of ``check.json``."""
    lines = ["# Junction trees and decoding, counted", "", "Written by `python pipelines/jtvae/check.py`.", ""]
    for name, found in sorted(results.items()):
        if name == "trees":
            lines += [
                "## Trees of ZINC-250k",
                "",
                *table(("", ""), [(k, v) for k, v in found.items() if k != "failed"]),
            ]
            lines += [f"Not given back: {len(found['failed'])}.", ""]
            lines += [f"- `{row['smiles']}`: {row['reason']}" for row in found["failed"][:50]]
    lines += models(results)
    for name, found in sorted(results.items()):
        if name.startswith("latents of "):
            rows = [(key, *value.values()) for key, value in found.items() if isinstance(value, dict)]
            head = ("spread", *next(value for value in found.values() if isinstance(value, dict)))
            lines += [f"## Random vectors decoded by {found['model']}", "", *table(head, rows)]
        if name.startswith("curve of "):
            lines += [
                f"## Learning curve of {found['model']}",
                "",
                *table([*found["rows"][0]], map(dict.values, found["rows"])),
            ]
    return "\n".join(lines)


def models(results: dict[str, Any]) -> list[str]:
    """One table of how many molecules decode to themselves, and how many vectors of the prior to molecules."""
    rows = []
    for name, found in sorted(results.items()):
        if name.startswith("reconstruction by "):
            prior = results.get(f"latents of {found['model']}", {}).get("1.0", {})
            valid = f"{prior['molecules'] / prior['vectors']:.1%}" if prior else ""
            bare = f"{prior['molecules without the check']:.1%}" if prior else ""
            shares = (found["same"], found["same without stereochemistry"], found["same, of means"])
            rows.append((f"{found['model']} ({found['settings']})", *(f"{share:.1%}" for share in shares), valid, bare))
    rows.append(tuple(f'<span style="color:grey">{text}</span>' if text else "" for text in PAPER))
    head = (
        "model",
        "reconstructed",
        "without stereo",
        "of means at T = 0.1",
        "valid of the prior",
        "without the check",
    )
    counts = sorted({found["molecules"] for name, found in results.items() if name.startswith("reconstruction by ")})
    of = " or ".join(f"{n:,}" for n in counts)
    words = [
        f"Reconstructed: of {of} test molecules, the share of 10 decodings of each of 10 points of a molecule's "
        "posterior that are the molecule.",
        f"Without the check: of one piece of {PIECE:,} vectors of the prior; the tables below have a piece a spread.",
    ]
    return ["## Reconstruction and validity", "", *words, "", *table(head, rows)]


def table(head: Sequence[str], rows: Any) -> list[str]:
    """Lines of a markdown table, and an empty one."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    for row in rows:
        lines.append("| " + " | ".join(f"{v:,}" if isinstance(v, int) else str(v) for v in row) + " |")
    return [*lines, ""]

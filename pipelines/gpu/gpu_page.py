"""The figures of a GPU in, docs/gpu.md out."""

from __future__ import annotations

from typing import Any

from timing import figure

HEAD = """# On a GPU

Written by [pipelines/gpu/run.py](../pipelines/gpu/run.py), which measures all of it in eight minutes on one card:
D-MPNN beside chemprop, DimeNet++ beside PyG, pretraining with the share of the card's products, `predict` from file to
file, and `torch.compile`.

"""


def page(kept: dict[str, Any]) -> str:
    """The page; figures of a trial are not shown."""
    measured = bool(kept["card"]) and not kept["small"]
    about = f"Card: {kept['card']}; torch {kept['torch']}." if measured else (
        "**Not yet run on a card.** The script was tried on a CPU with small sizes; figures of that say nothing and "
        "are left out."
    )  # fmt: skip
    lines = ["| work | molgraph, molecules/s | peer, molecules/s | ratio |", "|---|---|---|---|"]
    for name, row in kept["rows"].items():
        lines.append(f"| {name} | {' | '.join(_cells(row) if measured else ['not yet run on a card', '', ''])} |")
    return f"{HEAD}{about}\n\n" + "\n".join(lines) + "\n"


def _cells(row: dict[str, Any]) -> list[str]:
    if row["molgraph"] is None:
        return ["not measured", "", ""]
    if "share" in row:
        return [figure(row["molgraph"]), f"{row['share']:.0%} of {row['peer_name']}", ""]
    if row["peer"] is None:
        return [figure(row["molgraph"]), "", ""]
    peer = f"{row['peer_name']} {figure(row['peer'])}"
    return [figure(row["molgraph"]), peer, f"{row['molgraph'] / row['peer']:.2f} x"]

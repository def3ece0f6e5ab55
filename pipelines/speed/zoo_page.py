"""Tell where the time of the zoo's layers goes, from the measured rows."""

from __future__ import annotations

from typing import Any

from timing import figure


def about_zoo(results: dict[str, Any]) -> list[str]:
    """Where the time of the zoo's layers goes, beside PyG's, as a table; and how long training waits for batches."""
    rows = {name: row for name, row in results["rows"].items() if "ms" in row}
    if not rows:
        return []
    lines = [
        "",
        "Where the time of the zoo's layers goes: milliseconds a batch, molgraph beside PyG. Products, norms and",
        "activations are the same work on both sides, less for rows that are shared. Finding rows that look alike is",
        "molgraph's alone, and training does it ahead. What the columns leave is Python.",
        "",
        "| layer | whole | matrix products | along edges | rest of torch | finding rows |",
        "|---|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        cells = [" / ".join(figure(ms[kind]) for ms in row["ms"]) for kind in ("products", "edges", "rest")]
        whole = " / ".join(map(figure, row["batch_ms"]))
        cells.append(figure(row["rows_ms"]) if "rows_ms" in row else "")
        lines.append(f"| {name.replace(', forward and backward', '')} | {whole} | {' | '.join(cells)} |")
    if loading := results.get("loading"):
        share, alone = (loading[f"waited_ms{how}"] / loading[f"step_ms{how}"] for how in ("", "_one_core"))
        lines += [
            "",
            f"Training `gin` on {loading['molecules']:,} molecules (ZINC, batches of {loading['batch']}): a step takes "
            f"{loading['step_ms']:.1f} ms,",
            f"of which it waits {loading['waited_ms']:.2f} ms, {100 * share:.1f}%, for its batch (asked: under 10%"
            f"{'' if share < 0.1 else ', above'}); to make one takes {loading['alone_ms']:.1f} ms in a thread, "
            f"{loading['collate_ms']:.2f} ms of it",
            "reading graphs, the rest finding the rows that look alike. With that thread on the same core a step takes",
            f"{loading['step_ms_one_core']:.1f} ms and waits {100 * alone:.1f}%"
            f"{'' if alone < 0.1 else ', above what is asked'}.",
        ]
    return lines


def about_dimenet(results: dict[str, Any]) -> list[str]:
    """What an epoch of DimeNet++ costs, and how near its products come to the fastest of this machine."""
    lines = []
    for name, row in results["rows"].items():
        if "gflops" in row:
            own, peer = (row["epoch"] / row[side] / 3600 for side in ("molgraph", "peer"))
            lines += [
                f"{name}: an epoch of {row['epoch']:,} molecules takes {own:.1f} CPU hours (PyG: {peer:.1f});",
                f"its matrix products run at {row['gflops']:.0f} GFLOP/s with all that is between them, and at "
                f"{row['gflops_alone']:.0f} alone.",
            ]
    return ["", *lines] if lines else []

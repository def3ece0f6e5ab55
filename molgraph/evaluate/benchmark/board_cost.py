"""Sum up the time that the cells of each method took, and which of them failed."""

from __future__ import annotations

import pandas as pd

CELL = ["repeat", "fold", "seed", "method"]


def costs(part: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cost by method, and failed cells, from the rows of one metric."""
    cells = part.drop_duplicates(CELL)
    good = cells[cells["status"] == "ok"].groupby("method", sort=False)
    every = cells.groupby("method", sort=False)
    cost = pd.DataFrame(
        {
            "cpu_minutes": good["cpu_seconds"].mean() / 60,
            "seconds": good["seconds"].mean(),
            "peak_mb": good["peak_mb"].max(),
            "cells": every.size(),
            "total_cpu_minutes": every["cpu_seconds"].sum() / 60,
        }
    )
    bad = cells[cells["status"] != "ok"]
    named = [f"r{r}-f{f}" for r, f in zip(bad["repeat"], bad["fold"], strict=True)]
    failures = pd.DataFrame(
        {"method": bad["method"], "fold": named, "seed": bad["seed"], "status": bad["status"], "reason": bad["reason"]}
    ).reset_index(drop=True)
    return cost, failures

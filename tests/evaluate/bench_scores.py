"""Frames of scores as a finished benchmark has them, made up: for the tests of boards, ranks and reports."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

LOSS = ("rmse", "mae")


def made_up(
    methods: Mapping[str, float],
    *,
    dataset: str = "esol",
    split: str = "random-5x5",
    metrics: Sequence[str] = ("rmse",),
    tasks: Sequence[str] = ("y",),
    repeats: int = 5,
    folds: int = 5,
    seed: int = 0,
    noise: float = 0.03,
) -> pd.DataFrame:
    """A row a cell, task and metric: each method's true mean, a hardness of the fold that all share, and noise."""
    rng = np.random.default_rng(seed)
    rows = []
    for r in range(repeats):
        for f in range(folds):
            hard = rng.normal() * 0.1
            for i, (method, mean) in enumerate(methods.items()):
                for metric in metrics:
                    for task in tasks:
                        value = mean + hard + rng.normal() * noise
                        value = value if metric in LOSS else 1 - value / 2
                        cell = {"dataset": dataset, "edition": "raw", "data_hash": f"data of {dataset}", "split": split}
                        cell |= {"split_hash": f"{dataset} {split} {r} {f}", "repeat": r, "fold": f, "seed": 0}
                        cell |= {"method": method, "target": task, "metric": metric, "value": value, "n": 100}
                        cell |= {"note": "", "status": "ok", "reason": "", "seconds": 2.0 * 4**i}
                        cell |= {"cpu_seconds": 1.5 * 4**i, "peak_mb": 300.0, "higher_is_better": metric not in LOSS}
                        rows.append(cell)
    return pd.DataFrame(rows)


def failed(scores: pd.DataFrame, where: pd.Series, status: str = "timeout", reason: str = "over 600 s") -> pd.DataFrame:
    """The same scores, where the cells that ``where`` names did not end well."""
    out = scores.copy()
    out.loc[where, "value"] = np.nan
    out.loc[where, ["status", "reason"]] = [status, reason]
    return out

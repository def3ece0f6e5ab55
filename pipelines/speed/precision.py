"""No input; how far bfloat16 moves the predictions of a trained D-MPNN, out."""

from __future__ import annotations

from typing import Any

import numpy as np
from predict_speed import molecules

import molgraph


def bfloat16_moves(n: int = 5_000, seeds: tuple[int, ...] = (0, 1, 2)) -> dict[str, Any]:
    """Differences between bfloat16 and float32 predictions, in standard deviations of the target.

    A model of each seed learns CHEMBL2321810 for 30 epochs; it predicts that series and ``n`` molecules from elsewhere.
    """
    series = molgraph.read_table("builtin:chembl2321810")
    smiles, origin = molecules(n)
    moved = []
    for seed in seeds:
        result = molgraph.train(series, epochs=30, baseline=False, seed=seed, params={"descriptors": "none"})
        made = {}
        for precision in ("float32", "bfloat16"):
            result.model.method.set_params(precision=precision)
            made[precision] = result.predict([*series.smiles, *smiles]).value[:, 0]
        moved.append(np.abs(made["bfloat16"] - made["float32"]) / np.nanstd(series.y))
    every = np.concatenate(moved)
    every = every[np.isfinite(every)]
    return {
        "largest": round(float(every.max()), 5),
        "rms": round(float(np.sqrt(np.mean(every**2))), 5),
        "beyond": round(float(np.mean(every > 0.01)), 7),
        "models": len(seeds),
        "on": f"the series and {origin}",
    }

"""No input; how far bfloat16 moves the predictions of a trained D-MPNN, out."""

from __future__ import annotations

from typing import Any

import numpy as np
from predict_speed import molecules

import molgraph


def bfloat16_moves(n: int = 5_000) -> dict[str, Any]:
    """Differences between bfloat16 and float32 predictions, in standard deviations of the target.

    The model learns CHEMBL2321810 for 30 epochs; it predicts that series and ``n`` molecules from elsewhere.
    """
    series = molgraph.read_table("builtin:chembl2321810")
    result = molgraph.train(series, epochs=30, baseline=False)
    smiles, origin = molecules(n)
    made = {}
    for precision in ("float32", "bfloat16"):
        result.model.method.set_params(precision=precision)
        made[precision] = result.predict([*series.smiles, *smiles]).value[:, 0]
    moved = np.abs(made["bfloat16"] - made["float32"]) / np.nanstd(series.y)
    largest, typical = float(np.nanmax(moved)), float(np.sqrt(np.nanmean(moved**2)))
    return {"largest": round(largest, 5), "rms": round(typical, 5), "on": f"the series and {origin}"}

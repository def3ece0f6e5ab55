"""Check the frontier of quality and diversity on a small network that writes SMILES of ZINC.

    MOLGRAPH_DATA=... python -m pipelines.generation.frontier [OUT]     # writes frontier.json and frontier.png

Trained on 10,000 molecules of ZINC, drawn at seven temperatures: validity must fall with the temperature and internal
diversity rise (Spearman), and the same network swept again at 0.8 of each temperature must tie with itself, although at
one temperature of each the two differ. From "temperature-sweep" after Caccia et al. 2020.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

import molgraph
from molgraph.base.version import package_versions

HERE = Path(__file__).parent
TEMPERATURES = np.linspace(0.5, 1.5, 7).round(3)
PARAMS = {"d_embedding": 64, "d_hidden": 256, "n_layers": 1}
ROWS, EPOCHS, DRAWS = 10_000, 12, 2_000
MEASURES = ["valid", "unique", "novel", "int_div"]


def main(out: Path) -> None:
    """Train, sweep twice, compare, and write what came out."""
    rows = molgraph.load_dataset("zinc250k").table.smiles.tolist()[:: 249_455 // ROWS][:ROWS]
    with tempfile.TemporaryDirectory() as folder:
        model = molgraph.train_generator(
            rows, params=PARAMS, epochs=EPOCHS, learning_rate=2e-3, batch_size=128, threads=1, workdir=folder
        )
    asked = {"n": DRAWS, "train": rows, "measures": MEASURES, "standardise": "none"}
    first = molgraph.temperature_sweep(model, TEMPERATURES.tolist(), name="gru", **asked)
    again = molgraph.temperature_sweep(
        model, (0.8 * TEMPERATURES).round(3).tolist(), name="gru, temperatures x 0.8", seed=1, **asked
    )
    itself = molgraph.frontier_report(first, again)
    valid, diverse = (first.values[name][:, 0] for name in ("valid", "int_div"))
    at_one, at_less = first.to_frame().iloc[3], again.to_frame().iloc[3]
    found = {
        "versions": package_versions(["rdkit", "torch"]),
        "rows": ROWS,
        "epochs": EPOCHS,
        "draws": DRAWS,
        "spearman_temperature_valid": float(spearmanr(TEMPERATURES, valid).statistic),
        "spearman_temperature_int_div": float(spearmanr(TEMPERATURES, diverse).statistic),
        "itself": itself.sentence,
        "itself_ties": itself.tie,
        "valid_at_one_temperature": [
            [float(r[c]) for c in ("valid_low", "valid", "valid_high")] for r in (at_one, at_less)
        ],
        "one_temperature_calls_a_winner": bool(at_one["valid_high"] < at_less["valid_low"]),
        "sweep": first.to_frame().round(4).to_dict("list"),
        "swept_again": again.to_frame().round(4).to_dict("list"),
    }
    (out / "frontier.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    itself.save(out / "frontier.png")
    print(first, itself, sep="\n")
    print(json.dumps({k: v for k, v in found.items() if "sw" not in k}, indent=1))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)

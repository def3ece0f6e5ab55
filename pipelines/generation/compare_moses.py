"""Compare molgraph's metrics of generators with the public ones of MOSES and FCD, on the same samples.

    pip install --no-deps molsets fcd fcd_torch
    python -m pipelines.generation.compare_moses [OUT.json]

MOSES 0.3.1 was written for pandas 1 and an older rdkit; the names that are gone since are put back here for its import.
The stored values are what ``tests/evaluate/test_generation_moses.py`` holds molgraph's to.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import rdkit

from molgraph.base.version import package_versions
from molgraph.evaluate.generation.judge import Draws, judge_samples
from pipelines.generation.samples import SAMPLES, samples_of

HERE = Path(__file__).resolve().parents[2] / "tests" / "evaluate" / "moses_metrics.json"
NAMES = {  # MOSES's name -> molgraph's
    "valid": "valid",
    "unique@100": "unique",
    "Novelty": "novel",
    "Filters": "filters",
    "IntDiv": "int_div",
    "IntDiv2": "int_div2",
    "SNN/Test": "snn",
    "Frag/Test": "frag",
    "Scaf/Test": "scaf",
    "logP": "w_logp",
    "SA": "w_sa",
    "QED": "w_qed",
    "weight": "w_weight",
    "FCD/Test": "chemnet",
}


def moses_metrics() -> Any:
    """MOSES's module of metrics, importable with today's libraries."""
    six = types.ModuleType("rdkit.six")
    six.iteritems = lambda mapping: iter(mapping.items())  # type: ignore[attr-defined]
    sys.modules["rdkit.six"] = rdkit.six = six  # type: ignore[attr-defined]
    pd.DataFrame.append = lambda one, two, sort=False: pd.concat([one, two], sort=sort)  # type: ignore[attr-defined]
    np.NaN = np.nan  # type: ignore[attr-defined] # noqa: NPY201
    if not hasattr(np, "row_stack"):
        np.row_stack = np.vstack  # type: ignore[attr-defined] # noqa: NPY201
    from moses.metrics import metrics

    return metrics


def public_values(moses: Any, drawn: list[str], reference: list[str], train: list[str]) -> dict[str, float]:
    """MOSES's values by molgraph's names."""
    found = moses.get_all_metrics(drawn, k=[len(drawn)], test=reference, test_scaffolds=reference, train=train)
    found["unique@100"] = found[f"unique@{len(drawn)}"]
    return {ours: float(found[theirs]) for theirs, ours in NAMES.items()}


def our_values(drawn: list[str], reference: list[str], train: list[str], **more: Any) -> dict[str, float]:
    """molgraph's values."""
    judged = judge_samples({"a": Draws(drawn)}, reference=reference, train=train, controls=False, halves=0, **more)
    return {name: interval.value for name, interval in judged.rows[0].values.items()}


def main(out: Path) -> None:
    """Measure every sample by both, print them side by side, and write MOSES's values."""
    moses, stored = moses_metrics(), {}
    for name in SAMPLES:
        parts = samples_of(name)
        theirs = public_values(moses, *parts)
        ours = our_values(*parts, embedding="chemnet")
        ours["chemnet"] = ours["frechet"]
        stored[name] = {key: round(value, 9) for key, value in theirs.items()}
        print(name)
        for key, value in theirs.items():
            print(f"  {key:10} MOSES {value:.6f}  molgraph {ours[key]:.6f}  difference {ours[key] - value:+.1e}")
    about = {"versions": package_versions(["molsets", "fcd", "fcd_torch", "rdkit"])}
    out.write_text(json.dumps({**about, "samples": stored}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)

"""Explain a few test molecules for the report of a training: the highest predictions and the largest errors."""

from __future__ import annotations

from typing import Any

import numpy as np
from markupsafe import Markup

from molgraph.base.contracts import Prediction
from molgraph.base.errors import MolgraphError
from molgraph.data.table import Table
from molgraph.explain.explanation import explain, suited
from molgraph.train.model import Model

QUICK = ("contributions", "shap", "gradients")  # explainers that take seconds
EACH = 2  # molecules of each sort


def explained_rows(model: Model, table: Table, prediction: Prediction) -> dict[str, Any] | None:
    """The molecules of a table by which a model's first target is explained.

    Args:
        model: that predicted.
        table: rows with measured values.
        prediction: of these rows.

    Returns:
        ``by``, ``target``, ``notes``, and ``molecules``, each with ``id``, ``picture`` and ``lines``; None where no
        quick explainer reads the model, or it does not read one molecule a row.
    """
    target = model.targets[0] if model.targets else None
    if target is None or target.level != "row" or table.y is None or target.name in prediction.unlearned:
        return None
    value, y = prediction.value[:, 0], table.y[:, 0]
    error = np.abs(value - y) if len(target.columns) == 1 else np.full(len(y), np.nan)
    picked: dict[int, str] = {}
    for words, by in (("among the highest predictions", value), ("among the largest errors", error)):
        order = np.argsort(np.where(np.isfinite(by), -by, np.inf), kind="stable")
        order = order[np.isfinite(by)[order]]
        picked |= {int(row): words for row in [row for row in order if int(row) not in picked][:EACH]}
    try:
        if not picked or suited(model)[0] not in QUICK:
            return None
        rows = [*picked]
        explanation = explain(model, [str(table.smiles[row]) for row in rows])
    except MolgraphError:  # such as a model of pairs, or a target that is no sum over atoms
        return None
    if len(explanation.svgs) != len(rows):
        return None
    faithful = explanation.faithfulness.set_index("molecule")
    molecules = []
    for i, (row, svg) in enumerate(zip(rows, explanation.svgs, strict=True)):
        lines = [("predicted", f"{value[row]:.3g}"), ("measured", f"{y[row]:.3g}")]
        if i in faithful.index:
            ends = faithful.loc[i, ["deletion_area", "random_area"]]
            lines.append(("deletion area (random)", f"{ends.iloc[0]:.2f} ({ends.iloc[1]:.2f})"))
        molecules.append({"id": table.ids[row], "picture": Markup(svg), "lines": [("why", picked[row]), *lines]})
    return {"by": explanation.by, "target": target.name, "notes": explanation.notes, "molecules": molecules}

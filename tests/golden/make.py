"""Write the golden model files of this version that are not there yet; none is ever written again.

python -m tests.golden.make
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

import molgraph
from molgraph.data.table import make_table
from molgraph.train.card import ModelCard
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from tests.train.tiny import SMALL, mixed, series

FOLDER = Path(__file__).parent
QUESTIONS = ("CCO", "CC(=O)Oc1ccccc1C(=O)O", "C[N+](C)(C)CCO", "CC(=O)[O-].[Na+]", "[2H]C", "[Fe]", "oops", "")
METHODS = {
    "dmpnn": ("dmpnn", {"d_hidden": 8, **{k: v for k, v in SMALL.items() if k != "params"}}),
    "mpnn": ("mpnn", {"d_hidden": 8, "d_edge": 8, **{k: v for k, v in SMALL.items() if k != "params"}}),
    "forest": ("random_forest", {"n_estimators": 3, "n_bits": 64}),
    "mean": ("mean", {}),
    "knn": ("knn", {"n_bits": 64}),
    "linear": ("linear", {"n_bits": 64}),
    "svm": ("svm", {"n_bits": 64}),
    "gp": ("gp", {"n_bits": 64, "steps": 5}),
    "xgboost": ("xgboost", {"n_estimators": 3, "max_depth": 3, "n_bits": 64}),
    "maplight": ("maplight", {"iterations": 3, "depth": 3, "n_bits": 64}),
    "ensemble": ("ensemble", {"method": "dmpnn", "n": 2, "params": {"d_hidden": 4, "head_width": 4, "epochs": 1}}),
}


def main() -> None:
    """Train each small model, save it, and write down what it answers."""
    answered = FOLDER / f"{molgraph.__version__}.json"
    expected = json.loads(answered.read_text()) if answered.exists() else {}
    for name, (method, params) in METHODS.items():
        path = FOLDER / f"{molgraph.__version__}-{name}.mgm"
        if path.exists():
            continue
        table = series(48)
        if name == "dmpnn":
            table = mixed()
        model = Model(
            make_method(method, **params).fit(table),
            targets=table.row_targets,
            feature_names=table.feature_names,
            card=ModelCard(name=method, what="a golden file", n_train=len(table)),
        )
        model.save(path)
        expected[path.name] = answers(model)
    answered.write_text(json.dumps(expected, indent=1) + "\n")


def answers(model: Model) -> list[list[float | None]]:
    """The model's values for the questions; None where there is none."""
    n = len(model.feature_names)
    features = np.linspace(-1, 1, len(QUESTIONS) * n).reshape(-1, n) if n else None
    table = make_table(QUESTIONS, features=features, feature_names=model.feature_names)
    return [[None if np.isnan(v) else float(v) for v in row] for row in model.predict_table(table).value]


if __name__ == "__main__":
    main()

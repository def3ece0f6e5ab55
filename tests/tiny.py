"""Small tables and small networks that train in a blink."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table
from molgraph.train.method import GraphMethod

#: objectives that learn from texts or environments, not from atoms
OF_WORDS = ("eager", "masked-tokens", "skip-gram", "span", "translation")
SMALL: dict[str, Any] = {"params": {"d_hidden": 8}, "head_width": 8, "epochs": 3, "batch_size": 16}


def small(**params: Any) -> GraphMethod:
    """A D-MPNN of width 8."""
    return GraphMethod(**{**SMALL, **params})


def series(n: int = 64, start: int = 0) -> Table:
    """Some rows of the built-in ChEMBL series."""
    return builtin.chembl2321810().take(np.arange(start, start + n))


def curve_points(n: int = 48, seed: int = 0, noise: float = 2.0) -> pd.DataFrame:
    """Rows of molecule, concentration and response; the EC50 grows with the share of aromatic atoms, the last molecule
    has two points, and its SMILES cannot be read."""
    rng = np.random.default_rng(seed)
    smiles, x, rows = [*map(str, series(n - 1).smiles), "not a molecule"], np.linspace(-2, 2, 8), []
    for i, text in enumerate(smiles):
        log_ec50 = 4 * text.count("c") / len(text) - 0.5
        response = 100 / (1 + 10 ** (log_ec50 - x)) + noise * rng.normal(size=8)
        rows += [(text, 10**a, b) for a, b in zip(x, response, strict=True)][: 2 if i == n - 1 else 8]
    return pd.DataFrame(rows, columns=["smiles", "concentration", "response"])


def mixed(n: int = 48, seed: int = 0) -> Table:
    """Three targets of three kinds with missing labels, descriptors, weights, and rows that cannot be read."""
    rng = np.random.default_rng(seed)
    smiles = list(series(n).smiles)
    smiles[3], smiles[7] = "not a molecule", None
    y = np.column_stack([rng.normal(5, 2, n), rng.integers(0, 2, n), rng.integers(0, 3, n)]).astype(float)
    y[rng.random((n, 3)) < 0.2] = np.nan
    targets = (Target("a"), Target("b", "binary"), Target("c", "multiclass", classes=("x", "y", "z")))
    features = rng.normal(100, 50, (n, 2))
    features[5, 0] = np.nan
    return make_table(
        smiles, targets=targets, y=y, features=features, feature_names=("f", "g"), weights=rng.uniform(0.5, 2, n)
    )


def weights_of(method: GraphMethod) -> dict[str, np.ndarray]:
    """The network's weights."""
    return {k: v.numpy().copy() for k, v in method.ready().network.state_dict().items()}


def same_bits(a: dict[str, np.ndarray], b: dict[str, np.ndarray]) -> bool:
    """Whether two sets of weights are the same, bit for bit."""
    return a.keys() == b.keys() and all(a[k].tobytes() == b[k].tobytes() for k in a)

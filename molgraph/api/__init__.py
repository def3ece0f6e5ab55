"""The verbs of molgraph for Python, one file for each; a name is imported at its first use.

``training`` trains (``run_config`` checks the recipe, ``training_data`` reads the table, ``run_split`` splits it,
``baselines`` fits the method and its baselines, ``results`` holds the outcome, ``model_choice`` picks a model);
``prediction`` loads, predicts, scores and verifies model files; ``benchmarking`` runs benchmarks; ``catalogue`` lists
registered names; ``sklearn_adapters`` are scikit-learn estimators.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # for editors and type checkers, which do not run __getattr__
    from molgraph.api.benchmarking import benchmark as benchmark
    from molgraph.api.catalogue import entry as entry
    from molgraph.api.catalogue import names as names
    from molgraph.api.prediction import evaluate as evaluate
    from molgraph.api.prediction import load as load
    from molgraph.api.prediction import predict_file as predict_file
    from molgraph.api.prediction import verify as verify
    from molgraph.api.run_config import recipe_of as recipe_of
    from molgraph.api.sklearn_adapters import MoleculeClassifier as MoleculeClassifier
    from molgraph.api.sklearn_adapters import MoleculeRegressor as MoleculeRegressor
    from molgraph.api.training import train as train
    from molgraph.base.errors import MolgraphError as MolgraphError
    from molgraph.base.registry import register as register
    from molgraph.data.audit import audit as audit
    from molgraph.data.datasets import datasets as datasets
    from molgraph.data.datasets import load_dataset as load_dataset
    from molgraph.data.editions import curate as curate
    from molgraph.data.read import read_table as read_table
    from molgraph.evaluate.xray import xray as xray

_HOMES = {
    "MoleculeClassifier": "molgraph.api.sklearn_adapters",
    "MoleculeRegressor": "molgraph.api.sklearn_adapters",
    "MolgraphError": "molgraph.base.errors",
    "audit": "molgraph.data.audit",
    "benchmark": "molgraph.api.benchmarking",
    "curate": "molgraph.data.editions",
    "datasets": "molgraph.data.datasets",
    "entry": "molgraph.api.catalogue",
    "evaluate": "molgraph.api.prediction",
    "load": "molgraph.api.prediction",
    "load_dataset": "molgraph.data.datasets",
    "names": "molgraph.api.catalogue",
    "predict_file": "molgraph.api.prediction",
    "read_table": "molgraph.data.read",
    "recipe_of": "molgraph.api.run_config",
    "register": "molgraph.base.registry",
    "train": "molgraph.api.training",
    "verify": "molgraph.api.prediction",
    "xray": "molgraph.evaluate.xray",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    if name not in _HOMES:
        raise AttributeError(f"module 'molgraph.api' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)

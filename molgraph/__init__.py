"""molgraph: from a table of molecules to a model that can be trusted.

    import molgraph

    result = molgraph.train("assay.csv", smiles="smiles", targets=["pIC50"])  # beside a baseline, on a scaffold split
    result.model.save("assay.mgm")                   # one file, no pickle
    model = molgraph.load("assay.mgm")
    model.predict(["CCO", "c1ccccc1O"])              # one row for each molecule, in order

    molgraph.predict_file("assay.mgm", "library.csv", "predicted.csv")      # a file of any size
    molgraph.read_table("assay.csv")                 # every row kept; bad ones carry a reason
    molgraph.audit("assay.csv", targets=["pIC50"])   # what is wrong with a table
    molgraph.curate(molgraph.read_table("assay.csv", targets=["pIC50"])).table              # duplicates merged
    molgraph.datasets()                              # public datasets, what is known for and against each
    molgraph.load_dataset("bbbp@c1").table           # one of them, checked against its card; c1 is curated
    molgraph.xray("dataset:bbbp")                    # what each split asks, before training
    molgraph.benchmark("quick", "bench/quick").boards                       # methods on the same folds, ranked
    molgraph.MoleculeRegressor("dmpnn")              # in scikit-learn's cross_validate, GridSearchCV, Pipeline
    molgraph.names("method")                         # what there is; `molgraph.register` adds your own

The rooms, each leaning only on those before it: ``base`` (contracts), ``chem`` (rdkit), ``data`` (tables, graphs,
splits), ``nn`` (the core), ``models`` (one paper, one file), ``evaluate`` (metrics, report), ``train``, ``trust``
(ensembles), ``auxiliary`` (baselines), ``api``, ``cli``. Names below are loaded at their first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

_HOMES = {
    "train": "molgraph.api",
    "load": "molgraph.api",
    "predict_file": "molgraph.api",
    "benchmark": "molgraph.benchmarking",
    "read_table": "molgraph.data.read",
    "load_dataset": "molgraph.data.datasets",
    "datasets": "molgraph.data.datasets",
    "audit": "molgraph.data.audit",
    "curate": "molgraph.data.editions",
    "xray": "molgraph.evaluate.xray",
    "MoleculeRegressor": "molgraph.sklearn_adapters",
    "MoleculeClassifier": "molgraph.sklearn_adapters",
    "names": "molgraph.catalogue",
    "entry": "molgraph.catalogue",
    "register": "molgraph.base.registry",
    "MolgraphError": "molgraph.base.errors",
}

#: kind of thing that a user can name -> the rooms that register molgraph's own; the registry imports them at the
#: first question about that kind, so that no room has to import one above it
REGISTRARS = {
    "standardiser": ("molgraph.chem.standardise",),
    "split": ("molgraph.data.splits",),
    "readout": ("molgraph.nn.readouts",),
    "encoder": ("molgraph.models",),
    "metric": ("molgraph.evaluate.metrics",),
    "method": ("molgraph.train.method", "molgraph.auxiliary", "molgraph.auxiliary.peers", "molgraph.trust"),
}

__all__ = [
    "MoleculeClassifier",
    "MoleculeRegressor",
    "MolgraphError",
    "__version__",
    "audit",
    "benchmark",
    "curate",
    "datasets",
    "entry",
    "load",
    "load_dataset",
    "names",
    "predict_file",
    "read_table",
    "register",
    "train",
    "xray",
]

if TYPE_CHECKING:  # for editors and type checkers, which do not run __getattr__
    from molgraph.api import load, predict_file, train
    from molgraph.base.errors import MolgraphError
    from molgraph.base.registry import register
    from molgraph.benchmarking import benchmark
    from molgraph.catalogue import entry, names
    from molgraph.data.audit import audit
    from molgraph.data.datasets import datasets, load_dataset
    from molgraph.data.editions import curate
    from molgraph.data.read import read_table
    from molgraph.evaluate.xray import xray
    from molgraph.sklearn_adapters import MoleculeClassifier, MoleculeRegressor


def __getattr__(name: str) -> Any:
    """Load a public name from its home at its first use."""
    from importlib import import_module

    if name not in _HOMES:
        raise AttributeError(f"module 'molgraph' has no attribute {name!r}")
    found = getattr(import_module(_HOMES[name]), name)
    return globals().get(name, found)  # a room of that name is there by now, and stands for the verb from now on


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

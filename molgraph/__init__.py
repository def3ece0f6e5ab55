"""molgraph: from a table of molecules to a model that can be trusted.

    import molgraph

    result = molgraph.train("assay.csv", smiles="smiles", targets=["pIC50"])  # beside a baseline, on a scaffold split
    result.model.save("assay.mgm")                   # one file, no pickle
    model = molgraph.load("assay.mgm")
    model.predict(["CCO", "c1ccccc1O"])              # one row for each molecule, in order

    molgraph.tune("assay.csv", model="xgboost", targets=["pIC50"])          # hyper-parameters, searched out of fold
    molgraph.predict_file("assay.mgm", "library.csv", "predicted.csv")      # a file of any size
    molgraph.pretrain("library.smi").save("encoder.mgm")  # without targets; train(..., init="encoder.mgm") starts there
    molgraph.finetune("encoder.mgm", "assay.csv", targets=["pIC50"])        # a model that starts from it
    molgraph.embed("encoder.mgm", ["CCO"])           # the vector of each molecule
    molgraph.nearest(["CCO"], "library.smi", by="encoder.mgm")  # the most similar molecules of a library
    molgraph.forces("schnet.mgm", "frames.sdf")      # of an energy model; molgraph.ase_calculator moves atoms by them
    molgraph.explain("structpool.mgm", "c1ccccc1O", by="clusters")          # the clusters of atoms that it learned
    molgraph.train_generator("library.smi").save("gen.mgm")  # molgraph.generate("gen.mgm", 1000) proposes molecules
    molgraph.neighbours("vae.mgm", "CCO")            # near one in latent space; encode, decode and interpolate too
    molgraph.optimise("jtvae.mgm", "qed,sa<4", budget=500)  # molecules that are better by an objective
    molgraph.judge_generation("new.csv", reference="held_out.smi", train="library.smi").save("report.html")
    molgraph.read_table("assay.csv")                 # every row kept; bad ones carry a reason
    molgraph.audit("assay.csv", targets=["pIC50"])   # what is wrong with a table
    molgraph.curate(molgraph.read_table("assay.csv", targets=["pIC50"])).table              # duplicates merged
    molgraph.datasets()                              # public datasets, what is known for and against each
    molgraph.load_dataset("bbbp@c1").table           # one of them, checked against its card; c1 is curated
    molgraph.study("temperature-sweep", model="gen.mgm")                    # experiments, each with two controls
    molgraph.xray("dataset:bbbp")                    # what each split asks, before training
    molgraph.benchmark("quick", "bench/quick").boards                       # methods on the same folds, ranked
    molgraph.MoleculeRegressor("dmpnn")              # in scikit-learn's cross_validate, GridSearchCV, Pipeline
    molgraph.serve("assay.mgm", port=8000)           # a page and a JSON API, over HTTP
    molgraph.names("method")                         # what there is; `molgraph.register` adds your own

The layers, each of which imports only those before it: ``base`` (contracts), ``chem`` (rdkit), ``data`` (tables,
graphs, splits), ``nn`` (the core), ``models`` (one paper, one file), ``evaluate`` (metrics, report), ``train``,
``trust`` (ensembles, intervals), ``explain``, ``compress``,
``study``, ``generate`` (new molecules), ``embed`` (vectors), ``auxiliary`` (baselines), ``run`` (a training
run's rows, split, baselines), ``api`` (the names below, imported at their first use), ``serve`` (over HTTP), ``cli``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from molgraph.base.version import __version__

if TYPE_CHECKING:  # for editors and type checkers, which do not run __getattr__
    from molgraph.api.ase import ase_calculator
    from molgraph.api.benchmarking import benchmark
    from molgraph.api.catalogue import names
    from molgraph.api.conforming import conformers
    from molgraph.api.explaining import draw_clusters, draw_salience, explain_bit
    from molgraph.api.generating import generate, train_generator
    from molgraph.api.judging import judge_generation, temperature_sweep
    from molgraph.api.latent_space import decode, encode, interpolate, neighbours
    from molgraph.api.optimising import optimise
    from molgraph.api.prediction import embed, forces, load, predict_file
    from molgraph.api.pretraining import pretrain
    from molgraph.api.ranking import rank
    from molgraph.api.searching import nearest
    from molgraph.api.selecting import select
    from molgraph.api.sklearn_adapters import MoleculeClassifier, MoleculeRegressor
    from molgraph.api.training import finetune, train
    from molgraph.api.tuning import tune
    from molgraph.base.errors import MolgraphError
    from molgraph.base.registry import entry, register
    from molgraph.compress.compress import compress
    from molgraph.data.audit import audit
    from molgraph.data.curate import curate
    from molgraph.data.datasets import datasets, load_dataset
    from molgraph.data.read import read_table
    from molgraph.evaluate.generation.sweep import frontier_report
    from molgraph.evaluate.split_report import xray
    from molgraph.explain.counterfactuals import counterfactuals
    from molgraph.explain.explanation import explain
    from molgraph.serve.serve import serve
    from molgraph.study.study import study

__all__ = [
    "MoleculeClassifier",
    "MoleculeRegressor",
    "MolgraphError",
    "__version__",
    "ase_calculator",
    "audit",
    "benchmark",
    "compress",
    "conformers",
    "counterfactuals",
    "curate",
    "datasets",
    "decode",
    "draw_clusters",
    "draw_salience",
    "embed",
    "encode",
    "entry",
    "explain",
    "explain_bit",
    "finetune",
    "forces",
    "frontier_report",
    "generate",
    "interpolate",
    "judge_generation",
    "load",
    "load_dataset",
    "names",
    "nearest",
    "neighbours",
    "optimise",
    "predict_file",
    "pretrain",
    "rank",
    "read_table",
    "register",
    "select",
    "serve",
    "study",
    "temperature_sweep",
    "train",
    "train_generator",
    "tune",
    "xray",
]


def __getattr__(name: str) -> Any:
    """Import a public name at its first use."""
    if name not in __all__:
        raise AttributeError(f"module 'molgraph' has no attribute {name!r}")
    from molgraph import api  # now, so that ``import molgraph`` is quick

    value = getattr(api, name)
    return globals().get(name, value)  # a package of that name is there by now, and stands for the verb from now on


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

"""The verbs of molgraph for Python, one file for each; a name is imported at its first use.

``training`` trains, from a file of a pretrained encoder too (``molgraph.run`` decides how); ``tuning`` searches
hyper-parameters first; ``pretraining`` pretrains an encoder; ``generating`` trains generators and
proposes molecules; ``latent_space`` goes between molecules and latent vectors; ``optimising`` searches for better ones;
``conforming`` places atoms in space;
``searching`` finds the nearest molecules of a library; ``selecting`` chooses the next ones to measure;
``judging`` measures generated ones; ``prediction`` loads, predicts, embeds, scores and verifies model files;
``ase`` is a calculator of energies and forces;
``explaining`` has older names of
``explain``; ``benchmarking`` runs benchmarks; ``catalogue`` lists registered names;
``sklearn_adapters`` adapts to scikit-learn; ``serve`` is a room of its own, above this one.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

#: module -> the names that are imported from it
_HOMES = {
    "molgraph.api.ase": ("ase_calculator",),
    "molgraph.api.benchmarking": ("benchmark",),
    "molgraph.api.catalogue": ("names",),
    "molgraph.api.prediction": ("embed", "evaluate", "forces", "load", "predict_file", "verify"),
    "molgraph.api.conforming": ("conformers",),
    "molgraph.api.pretraining": ("pretrain",),
    "molgraph.api.explaining": ("draw_clusters", "draw_salience", "explain_bit"),
    "molgraph.compress.compress": ("compress",),
    "molgraph.explain.explanation": ("explain",),
    "molgraph.explain.counterfactuals": ("counterfactuals",),
    "molgraph.study.study": ("study",),
    "molgraph.serve.serve": ("serve",),
    "molgraph.api.generating": ("generate", "train_generator"),
    "molgraph.api.latent_space": ("decode", "encode", "interpolate", "neighbours"),
    "molgraph.api.ranking": ("rank",),
    "molgraph.api.searching": ("nearest",),
    "molgraph.api.selecting": ("select",),
    "molgraph.api.optimising": ("optimise",),
    "molgraph.api.judging": ("judge_generation", "temperature_sweep"),
    "molgraph.api.sklearn_adapters": ("MoleculeClassifier", "MoleculeRegressor"),
    "molgraph.api.training": ("finetune", "train"),
    "molgraph.api.tuning": ("tune",),
    "molgraph.base.errors": ("MolgraphError",),
    "molgraph.base.registry": ("entry", "register"),
    "molgraph.data.audit": ("audit",),
    "molgraph.data.datasets": ("datasets", "load_dataset"),
    "molgraph.data.curate": ("curate",),
    "molgraph.data.read": ("read_table",),
    "molgraph.evaluate.generation.sweep": ("frontier_report",),
    "molgraph.evaluate.split_report": ("xray",),
}


def __getattr__(name: str) -> Any:
    """Import a public name from its module."""
    for module, names in _HOMES.items():
        if name in names:
            return getattr(import_module(module), name)
    raise AttributeError(f"module 'molgraph.api' has no attribute {name!r}")

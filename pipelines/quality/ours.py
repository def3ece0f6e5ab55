"""molgraph's own methods on a problem: the D-MPNN, the forest with and without descriptors, and the mean."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from molgraph.train.make_method import make_method
from pipelines.quality.cells import Outcome
from pipelines.quality.study import Problem


def run_dmpnn(problem: Problem) -> Outcome:
    """molgraph's D-MPNN: the sizes of the recipe, every epoch trained, the weights that validate best."""
    sizes = problem.study.sizes
    options = {
        "d_hidden": sizes.hidden,
        "depth": sizes.depth,
        "readout": sizes.readout,
        "head_width": sizes.head_hidden,
        "head_layers": sizes.head_layers + 1,  # molgraph counts linear layers, chemprop hidden ones
        "batch_size": sizes.batch_size,
        "epochs": sizes.epochs,
        "patience": None,  # chemprop does not stop early either
    }
    return _run(problem, "dmpnn", options, threads=1)


def run_forest(problem: Problem) -> Outcome:
    """molgraph's baseline as it is shipped: Morgan bits and RDKit descriptors."""
    return _run_forest(problem, "morgan+descriptors")


def run_forest_morgan(problem: Problem) -> Outcome:
    """molgraph's forest on the very bits that scikit-learn's forest sees."""
    return _run_forest(problem, "morgan")


def run_mean(problem: Problem) -> Outcome:
    """The floor: the training part's mean, or its share of class 1."""
    return _run(problem, "mean", {})


def _run_forest(problem: Problem, features: str) -> Outcome:
    forest = problem.study.forest
    sizes = {"n_estimators": forest.trees, "radius": forest.radius, "n_bits": forest.n_bits}
    return _run(problem, "random_forest", {"features": features, **sizes}, threads=2)


def _run(problem: Problem, name: str, options: dict[str, Any], **where: Any) -> Outcome:
    train, valid, test = (problem.table.take(problem.rows(part)) for part in ("train", "valid", "test"))
    seeded = {} if name == "mean" else {"seed": problem.seed, **where}
    started = time.perf_counter()
    method = make_method(name, **options, **seeded)
    method.fit(train, valid)
    value = method.predict(test).value[:, 0]
    return Outcome(np.asarray(value, np.float64), options, time.perf_counter() - started)

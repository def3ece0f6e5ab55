"""Train a network in place with the engine, on the devices that a method's hyper-parameters name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import pandas as pd
import torch
from torch import nn

from molgraph.base.finite import check_finite
from molgraph.base.recipe_keys import GRADIENT_DESCENT, GradientDescent
from molgraph.train.engine import Fit, TrainingConfig
from molgraph.train.objective import Objective
from molgraph.train.restore import CURVES
from molgraph.train.runtime import make_fabric
from molgraph.train.samples import Samples


def fit_network(
    network: nn.Module,
    objective: Objective,
    train: Samples,
    valid: Samples | None,
    params: Mapping[str, Any],
    prints: dict[str, str],
    *,
    workdir: Path | None,
    label: str,
) -> tuple[pd.DataFrame, int]:
    """Train a network, and leave it on the CPU with the weights of its best epoch.

    Args:
        network: has a method ``prepare(sample)``, which makes a batch's index work ahead.
        objective: what a step minimises.
        train, valid: rows to learn from, and rows that pick the weights, or None.
        params: hyper-parameters by name: those of gradient descent, ``seed``, ``device``, ``precision``,
            ``checkpoint_seconds``, and, where there are several, ``devices`` and ``strategy``.
        prints: the fingerprint that a checkpoint must have.
        workdir: a folder for the checkpoint, or None.
        label: what the progress bar says.

    Returns:
        The learning curves, and the number of the best epoch, from 1.

    Raises:
        MolgraphError: the loss is no number any more. Interrupted: Ctrl-C.
    """
    folder = None if workdir is None else Path(workdir)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    how = GradientDescent.model_construct(**{name: params[name] for name in GRADIENT_DESCENT if name in params})
    plan = TrainingConfig(how, params["seed"], params["checkpoint_seconds"], folder, prints, label)
    several = (params.get("devices", 1), params.get("strategy", "auto"))
    fabric = make_fabric(params["device"], params["precision"], *several)
    learned = fabric.launch(cast(Any, Fit(objective, train, valid, plan)), network)
    check_finite(learned.weights)
    network.cpu().load_state_dict({name: torch.from_numpy(value) for name, value in learned.weights.items()})
    return pd.DataFrame(learned.curves, columns=list(CURVES)).astype({"epoch": int}), learned.best_epoch

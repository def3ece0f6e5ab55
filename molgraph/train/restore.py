"""Rebuild a fitted graph method from the arrays and JSON of a model file, without trusting them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from torch import nn
from torch.nn.modules.module import register_module_parameter_registration_hook

from molgraph.base import registry
from molgraph.base.contracts import State
from molgraph.base.errors import DamagedModelError, ModelFileError
from molgraph.data.feature_layout import D_ATOM, D_BOND, MOLECULE_SPEC, OLDER
from molgraph.data.target_json import restore_unlearned, targets_from_json
from molgraph.train.checkpoint import CURVES
from molgraph.train.inference import FittedNetworks, predict_networks
from molgraph.train.inputs import Input, encoder_names, example_table, own_params
from molgraph.train.network import Network
from molgraph.train.outputs import LIMIT, DescriptorScale, Outputs
from molgraph.train.pretraining import state_outputs
from molgraph.train.references import References

MAX_INPUTS = 8
ROOM = 64  # weights that a network may make beside those that it keeps
PREFIX = "network."
OLDER_DEFAULTS = {"dmpnn": {"readout": "mean"}}  # of files that do not hold the defaults of their day
PLAIN = (str, int, float, bool)
N = TypeVar("N", bound=nn.Module)


def stored_defaults(learner: Any) -> dict[str, dict[str, Any]]:
    """The plain defaults of today of the encoders and the joiner that a graph method names, by name."""
    parts = {name: part for name, part in learner.resolved_params()["defaults"].items() if name != learner.objective}
    return {name: {k: v for k, v in values.items() if v is None or type(v) in PLAIN} for name, values in parts.items()}


def stored_params(meta: Mapping[str, Any]) -> dict[str, Any]:
    """The hyper-parameters of a file's encoders and joiner: those given, and defaults of its day that are others now.

    Example:
        >>> stored_params({"params": {"encoder": "gin", "params": {"depth": 4}}, "defaults": {"gin": {"d_hidden": 9}}})
        {'depth': 4, 'd_hidden': 9}
    """
    params, then = meta["params"], meta.get("defaults", OLDER_DEFAULTS)
    settings, names = dict(params.get("params") or {}), encoder_names(params["encoder"])
    several = len(names) > 1
    parts = [("encoder", one, one, f"{one}." * several) for one in names]
    if several:
        parts.append(("joiner", params["joiner"], "joiner", "joiner."))
    for kind, name, owner, prefix in parts:
        known = inspect.signature(registry.get(kind, name).__init__).parameters
        overrides = own_params(settings, owner, len(names))
        for key, value in then.get(name, {}).items():
            if key not in overrides and (key not in known or known[key].default != value):
                settings[f"{prefix}{key}"] = value
    return settings


def restore_fitted(state: State, encoder: str, build: Callable[..., Network], head: bool = True) -> FittedNetworks:
    """The network of a state with its scales, tried on one molecule; without a head it has no targets."""
    meta, arrays = state.meta, state.arrays
    targets = targets_from_json(meta["targets"]) if head or meta["targets"] else ()
    if head != bool(targets):
        raise DamagedModelError("the model has targets that its objective does not learn")
    names = tuple(str(name) for name in meta["feature_names"])
    unlearned = restore_unlearned(meta, targets) if targets else {}
    limit = float(meta.get("feature_limit", LIMIT))
    if not 0 < limit <= LIMIT:
        raise DamagedModelError(f"the model's feature_limit is {_shown(limit)}, expected a number up to {LIMIT:g}")
    observed = float(meta.get("feature_observed", 0.0))
    if not 0 <= observed <= len(names):
        raise DamagedModelError(f"the model's feature_observed is {_shown(observed)}, expected 0 to {len(names)}")
    descriptors = DescriptorScale(names, *_scales(arrays, "feature", len(names)), limit, observed)
    inputs = _inputs(encoder, meta)
    references = References.from_arrays(arrays, len(inputs[0].featuriser.elements), len(targets))
    outputs = Outputs(targets, *_scales(arrays, "target", len(targets)), unlearned, references)
    build = partial(build, inputs, d_extra=len(names), targets=outputs.targets)
    network = restore_network(encoder, build, arrays)
    fitted = FittedNetworks(network, outputs if head else state_outputs(network.d_state), descriptors, inputs)
    predict_networks([fitted], example_table(inputs, names, 1))  # settings that no forward pass can use
    return fitted


def stored_weights(network: nn.Module) -> dict[str, np.ndarray]:
    """A network's weights as arrays of a model file, which ``restore_network`` reads."""
    return {f"{PREFIX}{name}": value.detach().cpu().numpy() for name, value in network.state_dict().items()}


def stored_history(learner: Any) -> dict[str, Any]:
    """The curves, best epoch and notes of a fit as JSON values, which ``restore_history`` reads."""
    known = pd.DataFrame(columns=list(CURVES)) if learner.curves is None else learner.curves
    more = [str(name) for name in known.columns[len(CURVES) :]]  # shares of the loss, which few objectives name
    curves = {"curves": known.to_numpy().tolist(), **({"curve_parts": more} if more else {})}
    return {**curves, "best_epoch": learner.best_epoch, "notes": list(learner.notes)}


def restore_history(meta: Mapping[str, Any]) -> tuple[pd.DataFrame | None, int | None, tuple[str, ...]]:
    """Learning curves, the best epoch and the notes of a state's JSON values."""
    rows = [[np.nan if v is None else float(v) for v in row] for row in meta.get("curves") or []]
    table = np.array(rows, dtype=np.float64)
    columns = [*CURVES, *map(str, meta.get("curve_parts") or [])]
    curves = pd.DataFrame(table, columns=columns).astype({"epoch": int}) if rows else None
    best = meta.get("best_epoch")
    return curves, None if best is None else int(best), tuple(str(note) for note in meta.get("notes", []))


@contextmanager
def bounded_by(arrays: Mapping[str, np.ndarray]) -> Iterator[None]:
    """Stop a constructor, inside the block, at the first weight more, or of more numbers, than such arrays can fill.

    Raises:
        DamagedModelError: inside the block.

    Example:
        >>> with bounded_by({"weight": np.zeros((8, 8)), "bias": np.zeros(8)}):
        ...     layer = nn.Linear(2_000, 2_000)
        Traceback (most recent call last):
        ...
        molgraph.base.errors.DamagedModelError: the settings ask for weights of more or larger shapes than ...
    """
    here, weights = threading.get_ident(), 2 * len(arrays) + ROOM
    numbers = 2 * sum(array.size for array in arrays.values()) + (1 << 20)

    def count(module: nn.Module, name: str, value: Any) -> None:
        nonlocal weights, numbers
        if threading.get_ident() == here and value is not None:
            weights, numbers = weights - 1, numbers - value.numel()
            if min(weights, numbers) < 0:
                raise DamagedModelError("the settings ask for weights of more or larger shapes than the file holds")

    hook = register_module_parameter_registration_hook(count)
    try:
        yield
    finally:
        hook.remove()


def restore_network(name: str, build: Callable[[], N], arrays: Mapping[str, np.ndarray]) -> N:
    """The network that ``build`` makes with the weights of a file, whose shapes are compared before any is made."""
    with torch.device("meta"), bounded_by(arrays):  # shapes without memory, and no more of them than the file has
        expected = build().state_dict()
    state = {name.removeprefix(PREFIX): value for name, value in arrays.items() if name.startswith(PREFIX)}
    if odd := sorted(set(state) ^ set(expected)):
        raise DamagedModelError(f"the model's weights are not those of a {name}: {odd[0]!r} is missing or foreign")
    for key, value in state.items():
        if value.shape != (shape := tuple(expected[key].shape)):
            raise DamagedModelError(f"the weight {key!r} has shape {value.shape}, expected {shape}")
    with torch.random.fork_rng():
        network = build()
    network.load_state_dict({key: torch.from_numpy(np.array(value)) for key, value in state.items()})
    return network.eval()


def _inputs(encoder: str, meta: Mapping[str, Any]) -> tuple[Input, ...]:
    """The inputs of a file, whose features are among those that this molgraph makes."""
    if "inputs" not in meta:  # a file of 0.1 before inputs: one column of molecules
        _check_features((meta["featuriser"], meta["d_atom"], meta["d_bond"]), (OLDER, D_ATOM, D_BOND))
        return (Input("smiles", "molecule", encoder, replace(MOLECULE_SPEC, featuriser=OLDER)),)
    inputs = tuple(Input.from_json(input_) for input_ in meta["inputs"][:MAX_INPUTS])
    if not inputs or {input_.encoder for input_ in inputs} != set(encoder_names(encoder)):
        raise DamagedModelError("the model's inputs are not those of its encoders")
    for input_ in inputs:
        fresh_spec = input_.featuriser.featurise([], spec=input_.spec).spec
        _check_features((input_.spec.featuriser, input_.spec.widths), (fresh_spec.featuriser, fresh_spec.widths))
    return inputs


def _check_features(theirs: tuple[Any, ...], here: tuple[Any, ...]) -> None:
    if theirs != here:
        raise ModelFileError(
            f"the model was trained on other features: {_shown(theirs)}, here are {_shown(here)}",
            hint="install the version of molgraph that wrote it, or train it again",
        )


def _shown(value: Any) -> str:
    return repr(value)[:60]


def _scales(arrays: Mapping[str, np.ndarray], name: str, n: int) -> tuple[np.ndarray, np.ndarray]:
    mean, scale = (np.asarray(arrays[f"{name}.{part}"], dtype=np.float64) for part in ("mean", "scale"))
    for value in (mean, scale):
        if value.shape != (n,) or not np.isfinite(value).all():
            words = f"the model's scale of each {name} has shape {value.shape} or no numbers, not ({n},)"
            raise DamagedModelError(words)
    if not (scale > 0).all():
        raise DamagedModelError(f"the model's {name}.scale has values that are not above 0")
    return mean, scale

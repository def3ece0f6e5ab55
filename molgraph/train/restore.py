"""Rebuild the parts of a fitted graph method from the arrays and JSON of a model file, none of which is trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd
import torch

from molgraph.base import registry
from molgraph.base.contracts import State
from molgraph.base.errors import ModelFileError, MolgraphError
from molgraph.base.parameters import LARGEST, check_types
from molgraph.base.size import Shapes, Size
from molgraph.data.features import D_ATOM, D_BOND, FEATURISER, MOLECULE_SPEC
from molgraph.data.table import make_table
from molgraph.data.target_json import targets_from_json
from molgraph.data.unlearned import restore_unlearned
from molgraph.train.building import bounded_by
from molgraph.train.descriptors import Descriptors
from molgraph.train.inference import Fitted, Running, predict_networks
from molgraph.train.network import Network
from molgraph.train.outputs import Outputs

INNER_LIMIT = 4096  # no whole number among the parameters of an encoder is larger
BONDS, A_USE = 64, 1 << 20  # directed bonds of a molecule; what calling a layer costs, in multiply-adds
CURVES = ("epoch", "train_loss", "valid_loss", "learning_rate", "seconds")
PREFIX = "network."
#: what parts of no sense raise while they are put together
UNFIT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError)


@contextmanager
def refused_parts() -> Iterator[None]:
    """Raise ``ModelFileError`` for whatever fails because a part is missing, of another shape or of no sense."""
    try:
        yield
    except ModelFileError:
        raise
    except (*UNFIT, RuntimeError, MolgraphError) as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelFileError(f"the model's parts do not fit together: {words[:200]}") from error


def restore_fitted(state: State, encoder: str, params: Mapping[str, Any], build: Callable[..., Network]) -> Fitted:
    """The network of a state with its scales, tried on one molecule.

    Args:
        state: arrays and JSON values.
        encoder: the encoder's name.
        params: its hyper-parameters.
        build: makes the network with fresh weights, given its inputs and widths.

    Raises:
        ModelFileError: weights or features of another kind; other errors for parts that are not whole.
    """
    meta, arrays = state.meta, state.arrays
    check_types(registry.get("encoder", encoder), params)
    targets = targets_from_json(meta["targets"])
    names = tuple(str(name) for name in meta["feature_names"])
    centre, spread = _column(arrays, "target.mean", len(targets)), _scale(arrays, "target", len(targets))
    outputs = Outputs(targets, centre, spread, restore_unlearned(meta, targets))
    mean, scale = _column(arrays, "feature.mean", len(names)), _scale(arrays, "feature", len(names))
    _check_featuriser(meta)
    network = _network(encoder, build, arrays, d_extra=len(names), d_out=outputs.d_out)
    fitted = Fitted(network, outputs, Descriptors(names, mean, scale), MOLECULE_SPEC)
    _try(fitted)
    return fitted


def size_of(meta: Mapping[str, Any], shapes: Shapes) -> Size:
    """What a stored graph method needs: its weights twice, and each weight once for a bond and a use.

    Raises:
        ModelFileError: a hyper-parameter that no model has.
    """
    params = meta["params"]
    _check_sizes(params, len(shapes))
    inner = params.get("params") or {}
    uses = max(1, *(_largest(inner.get(name)) for name in registry.get("encoder", params["encoder"]).repeats), 0)
    weights = sum(math.prod(shape) for name, shape in shapes.items() if name.startswith(PREFIX))
    columns = sum(len(target.columns) for target in targets_from_json(meta["targets"]))
    return Size(bytes=8 * weights, row_bytes=40 * columns, row_operations=uses * (BONDS * weights + A_USE))


def restore_history(meta: Mapping[str, Any]) -> tuple[pd.DataFrame | None, int | None, tuple[str, ...]]:
    """Learning curves, the best epoch and the notes of a state's JSON values."""
    rows = [[np.nan if v is None else float(v) for v in row] for row in meta.get("curves") or []]
    table = np.array(rows, dtype=np.float64)
    curves = pd.DataFrame(table, columns=list(CURVES)).astype({"epoch": int}) if rows else None
    best = meta.get("best_epoch")
    return curves, None if best is None else int(best), tuple(str(note) for note in meta.get("notes", []))


def _network(encoder: str, build: Callable[..., Network], arrays: Mapping[str, np.ndarray], **widths: int) -> Network:
    with torch.device("meta"), bounded_by({name: array.shape for name, array in arrays.items()}):
        # shapes without memory, and no more of them than the file has
        expected = build(MOLECULE_SPEC, **widths).state_dict()
    given = {name.removeprefix(PREFIX): value for name, value in arrays.items() if name.startswith(PREFIX)}
    if set(given) != set(expected):
        odd = sorted(set(given) ^ set(expected))[0]
        raise ModelFileError(f"the model's weights are not those of a {encoder}: {odd!r} is missing or foreign")
    for name, value in given.items():
        if tuple(value.shape) != tuple(expected[name].shape):
            raise ModelFileError(
                f"the weight {name!r} has shape {tuple(value.shape)}, expected {tuple(expected[name].shape)}"
            )
    with torch.random.fork_rng():
        network = build(MOLECULE_SPEC, **widths)
    network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in given.items()})
    return network.eval()


def _check_sizes(params: Mapping[str, Any], n_arrays: int) -> None:
    """No number that would ask for absurd work or memory."""
    for name, value, _ in too_large(params):
        raise ModelFileError(f"the model's {name} is {_shown(value)}, which no model has")
    if params.get("head_layers", 1) > n_arrays:
        raise ModelFileError(f"the model claims {params['head_layers']} layers in its head, but has fewer weights")


def too_large(params: Mapping[str, Any]) -> Iterator[tuple[str, Any, int]]:
    """Names, values and limits of hyper-parameters that no model file may hold.

    Example:
        >>> list(too_large({"epochs": 50, "batch_size": 10**12}))
        [('batch_size', 1000000000000, 1048576)]
    """
    for name, value in params.items():
        limit = INNER_LIMIT if name == "params" else LARGEST
        if name != "seed" and _largest(value) > limit:
            yield name, value, limit


def _largest(value: Any) -> int:
    """The largest whole number among nested values, whatever its sign."""
    if isinstance(value, Mapping):
        return max(map(_largest, value.values()), default=0)
    if isinstance(value, list | tuple):
        return max(map(_largest, value), default=0)
    return abs(value) if isinstance(value, int) else 0


def _check_featuriser(meta: Mapping[str, Any]) -> None:
    """The features that the network was trained on are those that this molgraph makes."""
    found = (meta["featuriser"], meta["d_atom"], meta["d_bond"])
    if found != (FEATURISER, D_ATOM, D_BOND):
        raise ModelFileError(
            f"the model was trained on features {_shown(found)}, this molgraph makes {(FEATURISER, D_ATOM, D_BOND)}",
            hint="install the version of molgraph that wrote it, or train it again",
        )


def _try(fitted: Fitted) -> None:
    """Predict one molecule, so that settings which no forward pass can use are found while the file is loaded."""
    names = fitted.descriptors.names
    table = make_table(["CO"], features=np.zeros((1, len(names))) if names else None, feature_names=names)
    predict_networks([fitted], table, Running())


def _shown(value: Any) -> str:
    return repr(value)[:60]


def _column(arrays: Mapping[str, np.ndarray], name: str, n: int) -> np.ndarray:
    value = np.asarray(arrays[name], dtype=np.float64)
    if value.shape != (n,) or not np.isfinite(value).all():
        raise ModelFileError(f"the model's {name} has shape {value.shape} or holds no numbers, expected ({n},)")
    return value


def _scale(arrays: Mapping[str, np.ndarray], name: str, n: int) -> np.ndarray:
    value = _column(arrays, f"{name}.scale", n)
    if n and not (value > 0).all():
        raise ModelFileError(f"the model's {name}.scale has values that are not above 0")
    return value

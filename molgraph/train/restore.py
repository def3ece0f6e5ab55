"""A fitted graph method from the arrays and JSON of a model file, none of which is trusted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
import torch

from molgraph.base.contracts import State, Target
from molgraph.base.errors import ModelFileError, MolgraphError
from molgraph.data.unlearned import restore_unlearned
from molgraph.train.descriptors import Descriptors
from molgraph.train.inference import Fitted
from molgraph.train.network import Network
from molgraph.train.outputs import Outputs

if TYPE_CHECKING:
    from molgraph.train.method import GraphMethod

LIMIT = 1 << 20  # no whole number among the hyper-parameters is larger
CURVES = ("epoch", "train_loss", "valid_loss", "learning_rate", "seconds")
PREFIX = "network."
M = TypeVar("M", bound="GraphMethod")


def restore(cls: type[M], state: State) -> M:
    """Rebuild a fitted graph method.

    Raises:
        ModelFileError: a part is missing, of another shape or of no sense.
    """
    meta, arrays = state.meta, state.arrays
    try:
        params = dict(meta["params"])
        _check_sizes(params, len(arrays))
        method = cls(**params)
        method.set_params(device="cpu", devices=1, strategy="auto", threads=None)
        targets = restore_targets(meta["targets"])
        names = tuple(str(name) for name in meta["feature_names"])
        centre, spread = _column(arrays, "target.mean", len(targets)), _scale(arrays, "target", len(targets))
        outputs = Outputs(targets, centre, spread, restore_unlearned(meta, targets))
        mean, scale = _column(arrays, "feature.mean", len(names)), _scale(arrays, "feature", len(names))
        widths = {"d_atom": int(meta["d_atom"]), "d_bond": int(meta["d_bond"])}
        _check_sizes(widths, len(arrays))
        network = _network(method, arrays, d_extra=len(names), d_out=outputs.d_out, **widths)
        method.fitted = Fitted(network, outputs, Descriptors(names, mean, scale), str(meta["featuriser"]), **widths)
        method.curves = restore_curves(meta.get("curves", []))
        method.best_epoch = None if meta.get("best_epoch") is None else int(meta["best_epoch"])
        method.notes = tuple(str(note) for note in meta.get("notes", []))
    except ModelFileError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, RuntimeError, OverflowError, MolgraphError) as error:
        words = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ModelFileError(f"the model's parts do not fit together: {words}") from error
    return method


def restore_targets(values: Any) -> tuple[Target, ...]:
    """Targets from JSON."""
    targets = []
    for value in values:
        bounds = value.get("bounds")
        target = Target(
            name=str(value["name"]),
            kind=value["kind"],
            level=value["level"],
            classes=tuple(str(c) for c in value["classes"]),
            bounds=None if bounds is None else (float(bounds[0]), float(bounds[1])),
        )
        if target.kind not in ("regression", "binary", "multiclass", "bounded") or target.level != "row":
            raise ModelFileError(f"the model has a target of unknown kind {target.kind!r} or level {target.level!r}")
        targets.append(target)
    if not targets:
        raise ModelFileError("the model has no targets")
    return tuple(targets)


def restore_curves(rows: Any) -> pd.DataFrame | None:
    """Learning curves from rows of numbers."""
    if not rows:
        return None
    table = np.array([[np.nan if v is None else float(v) for v in row] for row in rows], dtype=np.float64)
    return pd.DataFrame(table, columns=list(CURVES)).astype({"epoch": int})


def _network(method: GraphMethod, arrays: Mapping[str, np.ndarray], **widths: int) -> Network:
    with torch.device("meta"):  # shapes without memory, whatever the file asks for
        expected = method.build(**widths).state_dict()
    given = {name.removeprefix(PREFIX): value for name, value in arrays.items() if name.startswith(PREFIX)}
    if set(given) != set(expected):
        odd = sorted(set(given) ^ set(expected))[0]
        raise ModelFileError(f"the model's weights are not those of a {method.encoder}: {odd!r} is missing or foreign")
    for name, value in given.items():
        if tuple(value.shape) != tuple(expected[name].shape):
            raise ModelFileError(
                f"the weight {name!r} has shape {tuple(value.shape)}, expected {tuple(expected[name].shape)}"
            )
    with torch.random.fork_rng():
        network = method.build(**widths)
    network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in given.items()})
    return network.eval()


def _check_sizes(values: Mapping[str, Any], n_arrays: int) -> None:
    """No number that would ask for absurd work or memory."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            _check_sizes(value, n_arrays)
        elif isinstance(value, int) and name != "seed" and abs(value) > LIMIT:
            raise ModelFileError(f"the model's {name} is {value}, which no model has")
    if "head_layers" in values and values["head_layers"] > n_arrays:
        raise ModelFileError(f"the model claims {values['head_layers']} layers in its head, but has fewer weights")
    inner = values.get("params")
    if isinstance(inner, Mapping):
        for name, value in inner.items():
            if isinstance(value, int) and value > 4096:
                raise ModelFileError(f"the model's {name} is {value}, which no model has")


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

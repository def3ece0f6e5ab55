"""Write a model as one ``.mgm`` file, and read one that nobody vouches for."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from molgraph.base import registry
from molgraph.base.contracts import Method, State
from molgraph.base.errors import ModelFileError, UsageError, nearest
from molgraph.base.parameters import measure
from molgraph.data.standardised import standardise
from molgraph.data.table import Table, make_table
from molgraph.data.target_json import targets_from_json
from molgraph.train import trained_on
from molgraph.train.archive import LARGEST_JSON, json_size, read_archive, refused, write_archive
from molgraph.train.card import Card
from molgraph.train.model import Model
from molgraph.train.vectors import TOLERANCE, compare_vectors, make_vectors, vector_table

STANDARDISER_VERSION = 1


def save_model(path: str | Path, model: Model) -> Path:
    """Write a model as one file, complete or not at all.

    Args:
        path: where; ``.mgm`` is added to a name without a suffix.
        model: any fitted model: a network, an ensemble, a forest.

    Returns:
        The path that was written.

    Raises:
        StorageError: the file cannot be written there.
        ModelFileError: the model is larger than what a file may ask for when it is loaded.
    """
    path = Path(path)
    path = path if path.suffix else path.with_suffix(".mgm")
    state = model.method.state()
    parts = {
        "method.json": {"name": _name(model.method), "meta": plain(state.meta)},
        "standardiser.json": {"preset": model.standardiser, "version": STANDARDISER_VERSION},
        "targets.json": {
            "targets": [asdict(t) for t in model.targets],
            "feature_names": list(model.feature_names),
        },
        "calibration.json": {},
        "card.json": plain(model.card.to_dict()),
        "vectors.json": make_vectors(model.method, _vector_table(model)),
    }
    _bounded(type(model.method), parts["method.json"]["meta"], state.arrays)  # what could not be loaded is not written
    if (
        json_size(parts) > LARGEST_JSON
    ):  # so many epochs or members that their learning curves take more than a file has
        parts["method.json"] = _without(parts["method.json"], {"curves"}, inside=True)
    kept = {} if model.trained_on is None else {trained_on.ARRAY: model.trained_on}
    write_archive(path, parts, {**state.arrays, **kept})
    return path


def load_model(path: str | Path) -> Model:
    """Read a model file; nothing in it is run, and no size is trusted.

    Raises:
        ModelFileError: corrupt, truncated, foreign or newer; one sentence says which.
        StorageError: no such file, or no permission.
    """
    return _load(Path(path))[0]


@dataclass(frozen=True)
class Verified:
    """What ``verify`` found: a model whose answers are those of the day it was saved.

    Args:
        model: the model.
        n_molecules: test vectors replayed.
        largest_gap: largest difference, relative to the larger of the value and 1.
        tolerance: what it may be at most.
    """

    model: Model
    n_molecules: int
    largest_gap: float
    tolerance: float = TOLERANCE


def verify(path: str | Path) -> Verified:
    """Replay a model file's test vectors.

    Raises:
        ModelFileError: the file is not whole, or the model answers otherwise than when it was saved.
    """
    model, vectors = _load(Path(path))
    with refused(Path(path), "the model cannot answer"):
        n, gap = compare_vectors(model.method, _vector_table(model), vectors)
    return Verified(model, n, gap)


def _load(path: Path) -> tuple[Model, Any]:
    parts, arrays = read_archive(path)
    with refused(path, "the model file's parts do not fit together"):
        preset = parts["standardiser.json"]
        if int(preset["version"]) > STANDARDISER_VERSION:
            raise ModelFileError("the model file needs a newer standardiser", hint="install a newer molgraph")
        registry.entry("standardiser", str(preset["preset"]))
        targets = targets_from_json(parts["targets.json"]["targets"])
        names = tuple(str(name) for name in parts["targets.json"]["feature_names"])
        card = Card.from_dict(parts["card.json"])
        hashes = trained_on.checked(arrays.pop(trained_on.ARRAY, None))
        method = _method(parts["method.json"], arrays)
        nothing = make_table([], features=np.zeros((0, len(names))) if names else None, feature_names=names)
        if [t.columns for t in method.predict(nothing).targets] != [t.columns for t in targets]:
            raise ModelFileError("the model file's targets are not those of its method")
        known: dict[str, Any] = {"standardiser": preset["preset"], "feature_names": names, "card": card}
        model = Model(method, targets=targets, trained_on=hashes, **known)
    return model, parts["vectors.json"]


def _method(entry: Any, arrays: Mapping[str, np.ndarray]) -> Method:
    """The method of a file, built once the file's values are of their types and its size is bounded."""
    cls = _method_class(str(entry["name"]))
    if not isinstance(entry["meta"], dict):
        raise ModelFileError("the model file's method part is not a JSON object")
    return cls.from_state(State(arrays, _bounded(cls, entry["meta"], arrays)))


def _bounded(cls: type[Method], meta: dict[str, Any], arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """A state's JSON values without run-only parameters, once their types and the state's size are checked."""
    run_only = {name for each in registry.names("method") for name in registry.get("method", each).run_only}
    meta = cast(dict[str, Any], _without(meta, run_only))
    size = measure(cls, meta, {name: array.shape for name, array in arrays.items()})
    size.check(sum(array.nbytes for array in arrays.values()))
    return meta


def _without(value: Any, names: Collection[str], *, inside: bool = False) -> Any:
    """JSON values without the parameters of these names, however deep they are nested in ``params``."""
    if isinstance(value, dict):
        kept = {key: each for key, each in value.items() if not (inside and key in names)}
        return {key: _without(each, names, inside=inside or key == "params") for key, each in kept.items()}
    if isinstance(value, list):
        return [_without(each, names, inside=inside) for each in value]
    return value


def _method_class(name: str) -> type[Method]:
    known = registry.names("method")
    if name not in known:
        hint = f"{nearest(name, known)} Install the package that brings it, or a newer molgraph"
        raise ModelFileError(f"the model file needs the method {name[:60]!r}, which is not here", hint=hint)
    return registry.get("method", name)


def _name(method: Method) -> str:
    """The registered name of a method's class."""
    for name in registry.names("method"):
        if registry.get("method", name) is type(method):
            return name
    raise UsageError(
        f"{type(method).__name__} is not registered, so its file could not be loaded",
        hint='decorate the class with @register("method", "its_name")',
    )


def _vector_table(model: Model) -> Table:
    return standardise(vector_table(model.feature_names), model.standardiser)


def plain(value: Any) -> Any:
    """JSON values of nested Python and NumPy values; a number that JSON lacks becomes null."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(v) for v in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        return float(value) if np.isfinite(value) else None
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, Path):
        return value.name
    raise TypeError(f"a {type(value).__name__} cannot be written to a model file: {value!r}")

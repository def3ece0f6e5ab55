"""Write a model as one ``.mgm`` file."""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, cast

import numpy as np

from molgraph.base import registry
from molgraph.base.contracts import RUN_ONLY, Generator, Trainable
from molgraph.base.errors import UnsupportedError
from molgraph.base.parameters import check_types
from molgraph.base.paths import check_names_file
from molgraph.chem.standardise import preset
from molgraph.data.standardise import standardise
from molgraph.train.archive import LARGEST_JSON, json_size, write_archive
from molgraph.train.golden_predictions import make_vectors, vector_table
from molgraph.train.training_molecules import ARRAY


def write_model(path: str | Path, model: Any) -> Path:
    """Write a ``Model`` as one file, complete or not at all; ``.mgm`` is added to a name without a suffix.

    Returns:
        The path that was written.

    Raises:
        StorageError: the file cannot be written there.
        ModelFileError: the model is larger than what a file may ask for when it is loaded.
    """
    path = Path(path)
    check_names_file(path)
    path = path if path.suffix else path.with_suffix(".mgm")
    method, card = model.method, model.card
    state, asked = method.state(), standardise(vector_table(method, model.feature_names), model.standardiser)
    chosen = preset(model.standardiser)
    parts = {
        "method.json": {**_registered(method), "meta": plain(state.meta)},
        "standardiser.json": {"preset": chosen.name, "version": chosen.version},
        "targets.json": {"targets": [asdict(t) for t in model.targets], "feature_names": list(model.feature_names)},
        "card.json": plain(card.to_dict()),
        "vectors.json": make_vectors(method, asked),
    }
    checked_meta(type(method), parts["method.json"]["meta"])  # what could not be loaded is not written
    if json_size(parts) > LARGEST_JSON:  # learning curves of so many epochs or members
        parts["method.json"] = without(parts["method.json"], {"curves"}, inside=True)
    if json_size(parts) > LARGEST_JSON:  # scores and classes of thousands of targets
        notes = (*card.notes, "scores and classes are not kept: they would make the file too large")
        parts["card.json"] = plain(replace(card, scores=(), classes=(), notes=notes).to_dict())
    kept = {} if model.trained_on is None else {ARRAY: model.trained_on}
    beside = {} if model.confidence is None else model.confidence.arrays()
    write_archive(path, parts, {**state.arrays, **kept, **beside})
    return path


def checked_meta(cls: type[Trainable], meta: dict[str, Any]) -> dict[str, Any]:
    """A state's JSON values without run-only parameters, once the types of the others are checked."""
    meta = cast(dict[str, Any], without(meta, {*RUN_ONLY, *cls.run_only}))
    check_types(cls, meta.get("params", {}))
    return meta


def without(value: Any, names: Collection[str], *, inside: bool = False) -> Any:
    """JSON values without the parameters of these names, however deep they are nested in ``params``."""
    if isinstance(value, dict):
        kept = {key: item for key, item in value.items() if not (inside and key in names)}
        return {key: without(item, names, inside=inside or key == "params") for key, item in kept.items()}
    if isinstance(value, list):
        return [without(item, names, inside=inside) for item in value]
    return value


def _registered(method: Trainable) -> dict[str, str]:
    """The registered name of its class, and its kind where that is no method."""
    kind = "generator" if isinstance(method, Generator) else "method"
    for name in registry.names(kind):
        if registry.get(kind, name) is type(method):
            return {"name": name} if kind == "method" else {"name": name, "kind": kind}
    raise UnsupportedError(
        f"{type(method).__name__} is not registered, so its file could not be loaded",
        hint=f'decorate the class with @register("{kind}", "its_name")',
    )


def plain(value: Any) -> Any:
    """JSON values of nested Python and NumPy values; a number that JSON lacks becomes null."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Path):
        return value.name
    raise TypeError(f"a {type(value).__name__} cannot be written to a model file: {value!r}")

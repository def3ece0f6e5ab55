"""Read a ``.mgm`` file without trusting it, and replay its test vectors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base import registry
from molgraph.base.contracts import Generator, Method, State, Trainable
from molgraph.base.errors import DamagedModelError, ModelFileError, NewerVersionError, nearest
from molgraph.base.resources import model_path
from molgraph.chem.standardise import VERSION, recorded_name
from molgraph.data.standardise import standardise
from molgraph.data.target_json import targets_from_json
from molgraph.train import training_molecules
from molgraph.train.archive import read_archive, refused
from molgraph.train.card import ModelCard
from molgraph.train.confidence.confidence import PREFIX, Confidence
from molgraph.train.golden_predictions import SAMPLES_TOLERANCE, TOLERANCE, compare_vectors, vector_table
from molgraph.train.model import Model
from molgraph.train.modelwriter import checked_meta


def load_model(path: str | os.PathLike[str]) -> Model:
    """Read a model file, or a model that ships by its name; nothing in it is run, and no size is trusted.

    Raises:
        ModelFileError: corrupt, truncated, foreign or newer; one sentence says which.
        StorageError: no such file, or no permission.
    """
    return _load(model_path(path))[0]


def load_start(path: str | os.PathLike[str]) -> Model:
    """The model that a training starts from, read once however often the run asks; nobody may change it.

    Raises:
        ModelFileError, StorageError: as ``load_model``.
    """
    place = model_path(path)
    known = place.stat() if place.is_file() else None
    return _start(place, known and (known.st_mtime_ns, known.st_size))


@lru_cache(maxsize=1)
def _start(place: Path, content: tuple[int, int] | None) -> Model:
    return load_model(place)


@dataclass(frozen=True)
class VerifiedModel:
    """A model whose answers are those of the day it was saved.

    Args:
        model: the model.
        n_molecules: test vectors replayed.
        largest_gap: largest difference, relative to the larger of the value and 1; of a generator the share of its
            samples that differ.
    """

    model: Model
    n_molecules: int
    largest_gap: float

    @property
    def tolerance(self) -> float:
        """What the gap may be at most."""
        return SAMPLES_TOLERANCE if isinstance(self.model.method, Generator) else TOLERANCE

    @property
    def sentence(self) -> str:
        """What was replayed and how it came out."""
        if isinstance(self.model.method, Generator):
            gap = f"{self.largest_gap:.0%} differ, allowed {self.tolerance:.0%}"
            return f"{self.n_molecules} samples drawn again ({gap})"
        gap = f"largest relative difference {self.largest_gap:.1e}, allowed {self.tolerance:.0e}"
        return f"{self.n_molecules} test molecules answered as saved ({gap})"


def verify(path: str | Path) -> VerifiedModel:
    """Replay a model file's test vectors.

    Raises:
        ModelFileError: the file is not whole, or the model answers otherwise than when it was saved.
    """
    path = model_path(path)
    model, vectors = _load(path)
    with refused("the model cannot answer", path):
        asked = standardise(vector_table(model.method, model.feature_names), model.standardiser)
        n, gap = compare_vectors(model.method, asked, vectors)
    return VerifiedModel(model, n, gap)


def _load(path: Path) -> tuple[Model, Any]:
    parts, arrays = read_archive(path)
    with refused("the model file's parts do not fit together", path):
        preset = parts["standardiser.json"]
        if int(preset["version"]) > VERSION:
            raise NewerVersionError("the model file needs a newer standardiser", hint="install a newer molgraph")
        registry.entry("standardiser", str(preset["preset"]))
        names = tuple(str(name) for name in parts["targets.json"]["feature_names"])
        card = ModelCard.from_dict(parts["card.json"])
        hashes = training_molecules.checked(arrays.pop(training_molecules.ARRAY, None))
        beside = {name: arrays.pop(name) for name in [*arrays] if name.startswith(PREFIX)}
        method = _method(parts["method.json"], arrays)
        listed = parts["targets.json"]["targets"]
        asked = method if isinstance(method, Method) and method.predicts else None
        targets = targets_from_json(listed) if asked or listed else ()
        answers = () if asked is None else asked.predict(vector_table(asked, names, 0)).targets
        if [t.columns for t in answers] != [t.columns for t in targets]:
            raise DamagedModelError("the model file's targets are not those of its method")
        standardiser = recorded_name(str(preset["preset"]), int(preset["version"]))
        known: dict[str, Any] = {"standardiser": standardiser, "feature_names": names, "card": card}
        known["confidence"] = Confidence.from_arrays(beside, targets)
        model = Model(method, targets=targets, trained_on=hashes, **known)
    return model, parts["vectors.json"]


def _method(entry: Any, arrays: Mapping[str, np.ndarray]) -> Trainable:
    """The method or generator of a file, built once its values are of their types."""
    kind, name = "generator" if entry.get("kind") == "generator" else "method", str(entry["name"])
    name = registry.full_name(kind, name)  # that of an older file may be another one today
    if name not in (known := registry.names(kind)):
        hint = f"{nearest(name, known)} Install the package that brings it, or a newer molgraph"
        raise ModelFileError(f"the model file needs the {kind} {name[:60]!r}, which is not here", hint=hint)
    cls: type[Trainable] = registry.get(kind, name)
    if not isinstance(entry["meta"], dict):
        raise DamagedModelError("the model file's method part is not a JSON object")
    return cls.from_state(State(arrays, checked_meta(cls, entry["meta"])))

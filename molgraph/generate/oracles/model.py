"""An oracle that asks a property model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

import numpy as np

from molgraph.base.errors import MissingOptionError, UnknownNameError, UnsupportedError, nearest
from molgraph.base.registry import register
from molgraph.data.table import make_table
from molgraph.generate.oracles.oracle import Oracle, Scores
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.training_molecules import molecule_hashes


@register("oracle", "model", summary="a prediction of a .mgm file: model(FILE.mgm) or model(FILE.mgm#TARGET)")
class ModelOracle(Oracle):
    """The prediction of a model: a value, or the probability of class 1.

    Args:
        file: a model file or a model; behind ``#`` the target, where it has several.

    Raises:
        UsageError: the model predicts nothing, or classes beyond two, or the target is not its own.
    """

    name = "model"

    def __init__(self, file: str | Model) -> None:
        self.file = file
        self.path, _, self.target = file.partition("#") if isinstance(file, str) else ("", "", "")
        self.model  # noqa: B018 - a wrong file is told now

    @cached_property
    def model(self) -> Model:
        """The model, its target chosen."""
        model = self.file if isinstance(self.file, Model) else load_model(Path(self.path))
        model.check_predicts()
        known = [t.name for t in model.targets if t.level == "row" and t.kind != "multiclass"]
        if not known:
            words = "the model has no target that is a number or a yes or no"
            raise UnsupportedError(words, hint="train one for a search")
        if not self.target and len(known) > 1:
            raise MissingOptionError(
                f"the model predicts {len(known)} targets",
                hint=f"choose one, as in {self.path or 'FILE.mgm'}#{known[0]}",
            )
        self.target = self.target or known[0]
        if self.target not in known:
            raise UnknownNameError(f"the model does not predict {self.target!r}", hint=nearest(self.target, known))
        return model

    @property
    def content(self) -> str:
        """A hash of the file, and the target; empty for a model that is in no file."""
        return f"{hashlib.sha256(Path(self.path).read_bytes()).hexdigest()[:16]}#{self.target}" if self.path else ""

    def score(self, smiles: Sequence[str]) -> Scores:
        """The prediction of each SMILES."""
        found = self.model.predict(list(smiles))
        return Scores(found.value[:, found.columns.index(self.target)].astype(np.float64), found.reason)

    def trained_on(self, smiles: Sequence[str]) -> np.ndarray | None:
        """bool [n], whether the model learnt from each molecule; None where its file does not know."""
        if self.model.trained_on is None:
            return None
        return np.isin(molecule_hashes(make_table(list(smiles))), self.model.trained_on)

"""An oracle that asks a property model."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

import numpy as np

from molgraph.base.errors import MissingOptionError, UnknownNameError, UnsupportedError, nearest
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.table import Table, make_table
from molgraph.generate.oracles.doubt import doubt_of
from molgraph.generate.oracles.oracle import Oracle, Scores
from molgraph.generate.oracles.similarity import Nearest
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.training_molecules import molecule_hashes


@register(
    "oracle",
    "model",
    summary="a prediction of a .mgm file: model(FILE.mgm#TARGET, pessimistic=true), with a penalty far from a table",
    paper="Jaques et al. 2019, arXiv:1907.00456",
    systems=(
        SystemCard(
            "way-off-policy-batch-rl",
            left_out="Q-learning from a batch of logged episodes, and model averaging",
            off="model(assay.mgm)",
            beside=("the plain prediction",),
            command="molgraph optimise --search graph-ga --objective 'model(assay.mgm, pessimistic=true)' -o found.csv",
            modules=("molgraph.generate.oracles.doubt", "molgraph.generate.searches.policy"),
        ),
    ),
)
class ModelOracle(Oracle):
    """The prediction of a model: a value, or the probability of class 1.

    A search finds a model's errors as readily as good molecules. ``pessimistic`` scores a molecule by the lower end of
    what the model holds for possible (Jaques et al. 2019, arXiv:1907.00456, the minimum over passes of dropout):
    ``mean - deviations * sd``, or the ``min`` of the members. Members are an ensemble's, or ``passes`` of dropout.
    With a table of the molecules that the model learned from, a prediction loses ``penalty`` for each unit of Tanimoto
    distance from the nearest of them beyond ``within``. Both make a prediction worse, never better, in the direction
    of ``lower``.

    Args:
        file: a model file or a model; behind ``#`` the target, where it has several.
        pessimistic: false; true for the mean less ``deviations`` standard deviations; ``min`` for the worst member.
        deviations: standard deviations.
        passes: of dropout, where the model is no ensemble.
        domain: a table of the molecules that the model learned from; none for no penalty.
        within: distance, 1 - Tanimoto similarity, up to which there is no penalty.
        penalty: value lost for each unit of distance beyond.
        lower: whether lower predictions are better.

    Raises:
        UsageError: the model predicts nothing, or classes beyond two, or the target is not its own.
    """

    name = "model"

    def __init__(
        self,
        file: str | Model,
        pessimistic: bool | Literal["min"] = False,
        deviations: NotNegative = 1.0,
        passes: Annotated[int, Range(2, 1000)] = 10,
        domain: str | Table | None = None,
        within: Annotated[float, Range(0.0, 1.0)] = 0.6,
        penalty: NotNegative = 5.0,
        lower: bool = False,
    ) -> None:
        self.file, self.pessimistic, self.deviations, self.passes = file, pessimistic, deviations, passes
        self.domain, self.within, self.penalty, self.lower = domain, within, penalty, lower
        self.path, _, self.target = file.partition("#") if isinstance(file, str) else ("", "", "")
        self.better, self.cautious = -1 if lower else 1, bool(pessimistic) or domain is not None
        self.model  # noqa: B018 - a wrong file is told now
        kinds = {target.name: target.kind for target in self.model.targets}
        self.probability = kinds[self.target] == "binary"
        self.unit = self.probability and not lower
        self.near = None if domain is None else Nearest(domain)

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
        """A hash of the file, the target, and what makes predictions worse; empty for a model that is in no file."""
        if not self.path:
            return ""
        plain = f"{hashlib.sha256(Path(self.path).read_bytes()).hexdigest()[:16]}#{self.target}"
        pessimism = (self.pessimistic, self.deviations, self.passes) if self.pessimistic else ()
        domain = () if self.near is None else (self.near.content, self.within, self.penalty)
        more = (*pessimism, *domain, *(("lower",) if self.lower else ()))
        return f"{plain} {more}" if more else plain

    def score(self, smiles: Sequence[str]) -> Scores:
        """The prediction of each SMILES, made worse by doubt and distance where they are asked for."""
        doubt = doubt_of(self.model, smiles, self.passes) if self.pessimistic and len(smiles) else None
        prediction = self.model.predict(list(smiles)) if doubt is None else doubt.prediction
        column = prediction.columns.index(self.target)
        value = self.better * prediction.value[:, column].astype(np.float64)
        if doubt is not None and self.pessimistic == "min":
            members = self.better * doubt.members[:, :, column]
            value = np.minimum(value, members.min(axis=0, initial=np.inf))
        elif doubt is not None:
            value = value - self.deviations * doubt.spread[:, column]
        if self.near is not None and len(smiles):
            distance = 1.0 - self.near.score(smiles).value
            value = value - self.penalty * np.maximum(distance - self.within, 0.0)
        value = self.better * value
        return Scores(np.clip(value, 0.0, 1.0) if self.probability else value, prediction.reason)

    def trained_on(self, smiles: Sequence[str]) -> np.ndarray | None:
        """bool [n], whether the model learnt from each molecule; None where its file does not know."""
        if self.model.trained_on is None:
            return None
        return np.isin(molecule_hashes(make_table(list(smiles))), self.model.trained_on)

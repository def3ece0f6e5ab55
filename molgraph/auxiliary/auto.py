"""Try several methods by cross-validation within a time budget, and keep the weighted mean that predicts best."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np
import pandas as pd

from molgraph.auxiliary.selection.out_of_fold import Clock, try_candidate
from molgraph.auxiliary.selection.portfolio import Candidate, candidates_for
from molgraph.auxiliary.selection.trials import mean_of, meeting_limits, trial_table, trial_words, weights_of
from molgraph.auxiliary.targets import checked, described, whole
from molgraph.base import progress, registry
from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.cores import cores
from molgraph.base.durations import seconds_of
from molgraph.base.errors import EmptyError, MolgraphError, UnsupportedError
from molgraph.base.parameters import check_types
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.data.labels import Labels, check_targets
from molgraph.data.levels import level_of
from molgraph.data.limits import limits_as_values
from molgraph.data.splits import Split, kfold
from molgraph.data.table import Table, concatenate
from molgraph.data.target_json import notes_of, restore_unlearned, targets_from_json
from molgraph.train.archive import refused
from molgraph.train.confidence.confidence import HeldOut
from molgraph.train.make_method import make_method

RANDOM = "random"
FOLDS, MANY, FEW_FOLDS = 5, 4000, 3  # of the cross-validation, and those of more rows
BUDGET = "10m"
NETWORK_SHARE = 0.8  # of the time left that networks may take, divided by those that are to come
FEWEST = 10  # labelled rows below which methods are not compared
LARGEST = 500  # fitted models in a file
logger = logging.getLogger("molgraph")


@register(
    "method",
    "auto",
    tags=("ensemble",),
    summary="the best of forests, kernels, boosting and networks, weighed by cross-validation",
    paper="Caruana et al. 2004, ICML; van der Laan et al. 2007, Stat. Appl. Genet. Mol. Biol. 6:25",
)
class Auto(Method):
    """Cross-validate a portfolio, and predict by the greedy ensemble of the out-of-fold predictions.

    Ridge on fingerprint counts and on a pretrained encoder's vectors, a forest, a Gaussian process and support vectors
    on the Tanimoto kernel, XGBoost, MapLight with and without the encoder's vectors, D-MPNN with descriptors, and the
    pretrained encoder fine-tuned: each is fitted on every fold's training part and predicts the fold that was left
    out. Weights are found on these predictions (Caruana et al. 2004), for each target apart; a method that is kept
    predicts by the mean of its folds' models. ``trials`` lists what was tried, its error out of fold, its seconds and
    its weight, or why it was left out. Rows of the validation part are learnt from too. Labels that are limits, such as
    >8, are learnt as such by XGBoost, Gaussian processes and networks, as values by the others, and cost a prediction
    nothing that satisfies them.

    Use it where the best prediction is worth minutes of training. Known limits: it predicts as slowly as all that
    are kept together; the error in ``trials`` of the ensemble is of the rows that chose its weights.

    Args:
        budget: of time for all fits, such as ``30m``; None for 10 minutes. To hold it networks are given fewer epochs,
            and methods are left out.
        folds: of the cross-validation; None for 5, and for 3 of more than 4,000 rows.
        split: that divides the folds; ``molgraph train`` takes that of its test part. Random where it cannot.
        methods: names of the portfolio, or other models with settings; None for those that suit the table.
        seed: of the folds and all fits.
        threads: cores to use; None for all.
        store: a folder that keeps features for all splits and methods; auto for molgraph's cache; None keeps none.

    Example:
        >>> from molgraph.data.sources import builtin
        >>> auto = Auto(methods=["linear", "random_forest"], folds=3, split="random")
        >>> auto.fit(builtin.chembl2321810().take(range(60))).trials["method"].tolist()
        ['linear', 'random_forest', 'ensemble']
    """

    name = "auto"
    uses_valid = True
    learns_limits = True
    follows_split = True
    small = MappingProxyType({"methods": ("linear",), "folds": 2, "split": RANDOM})

    def __init__(
        self,
        budget: str | Annotated[float, Range(0, above=True)] | None = None,
        folds: Annotated[int, Range(2, 20)] | None = None,
        split: str = "scaffold/balanced",
        methods: Sequence[str] | None = None,
        seed: int = 0,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        self.budget, self.folds, self.split, self.methods = budget, folds, split, methods
        self.seed, self.threads, self.store = seed, threads, store

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Try the methods on the rows of both tables; with a working folder, folds that are done are not done again."""
        self.check_params()
        cores(self.threads)
        clock = Clock(seconds_of(BUDGET if self.budget is None else self.budget))
        if level_of(table.targets) != "row" or [item.kind for item in table.entities] != ["molecule"]:
            raise UnsupportedError("auto learns values of single molecules", hint="name a model: molgraph models")
        labels = check_targets(checked(table))
        table = table if valid is None or not len(valid) else concatenate(table, valid)
        table = checked(table)
        if labels.unlearned and table.y is not None:  # the validation part cannot teach them either
            idle = [target.name in labels.unlearned for target in table.row_targets]
            table = replace(table, y=np.where(idle, np.nan, table.y))
        labels = Labels(check_targets(table).y, labels.unlearned)
        targets, values = table.row_targets, limits_as_values(table)
        y: np.ndarray = labels.y if values.y is None else np.where(table.limited, values.y, labels.y)
        candidates, left = candidates_for(table, self.methods)
        if int(np.isfinite(y).any(axis=1)[table.ok].sum()) < FEWEST:
            return self._alone(candidates[0], values, labels)
        splits = self._splits(table)
        trials, networks = [], sum(item.network for item in candidates)
        folder = None if workdir is None else Path(workdir) / "auto"
        clock.before = 0.0 if folder is None else _spent(folder)
        with progress.bar("auto", total=len(candidates)) as bar, TemporaryDirectory() as shared:
            store = self.store or (shared if folder is None else str(folder / "features"))  # computed once for all
            settings = {"threads": self.threads, "store": store}
            for candidate in candidates:
                bar.describe(f"auto: {candidate.name}, {max(clock.left, 0):,.0f} s left")
                share = NETWORK_SHARE / networks if candidate.network and networks > 1 else NETWORK_SHARE
                networks -= candidate.network
                subdir = None if folder is None else folder / hashlib.sha256(candidate.spec.encode()).hexdigest()[:12]
                rows = table if candidate.learns_limits else values
                trial = try_candidate(candidate, rows, splits, clock, share, self.seed, settings, subdir)
                if trial.value is not None:
                    trial.value = meeting_limits(trial.value, table, targets)
                logger.info("auto: %s", trial_words(trial, targets, y))
                trials.append(trial)
                bar.advance()
        tried = [trial for trial in trials if trial.value is not None]
        for method in (item for trial in tried for item in trial.methods if "store" in item.param_names()):
            method.set_params(store=self.store)
        if not tried:
            reasons = "; ".join(f"{trial.candidate.name}: {trial.reason}" for trial in trials[:3])
            raise EmptyError(f"none of the {len(trials)} methods could be fitted ({reasons})", hint="see the reasons")
        weights = weights_of(targets, tried, y)
        used = [bool(row.any()) for row in weights]
        out_of_fold = mean_of([trial.value for trial in tried if trial.value is not None], weights)
        self.trials = trial_table(targets, trials, left, tried, weights, out_of_fold, y)
        models = [trial.methods for trial, use in zip(tried, used, strict=True) if use]
        self._fitted = (targets, models, weights[np.array(used)], dict(labels.unlearned))
        prediction = Prediction(table.ids, targets, out_of_fold, table.status, table.reason, unlearned=labels.unlearned)
        self.held_out = HeldOut(table, prediction, _fold_of(splits, len(table)))
        self.notes = (*notes_of(labels.unlearned), self._kept_note())
        return self

    def _alone(self, candidate: Candidate, table: Table, labels: Labels) -> Self:
        """Fit the first method on all rows, which are too few to compare methods on."""
        method = make_method(candidate.spec).fit(table)
        targets = table.row_targets
        weights = np.ones((1, sum(len(target.columns) for target in targets)))
        self._fitted, self.held_out = (targets, [[method]], weights, dict(labels.unlearned)), None
        self.trials = pd.DataFrame([{"method": candidate.name, "weight": 1.0, "seconds": 0.0, "reason": ""}])
        self.notes = (*notes_of(labels.unlearned), self._kept_note())
        return self

    def predict(self, table: Table) -> Prediction:
        """The weighted mean, and the standard deviation among all models that it is of."""
        targets, models, weights, unlearned = whole(self)
        predictions = [[method.predict(table) for method in folds] for folds in models]
        first = predictions[0][0]
        values = [np.mean([prediction.value for prediction in folds], axis=0) for folds in predictions]
        mean = mean_of(values, weights)
        squares = [np.mean([(prediction.value - mean) ** 2 for prediction in folds], axis=0) for folds in predictions]
        more: dict[str, Any] = {
            "inputs": table.inputs,
            "unlearned": unlearned,
            "spread": np.sqrt(mean_of(squares, weights)),
        }
        reason = np.where(first.ok, "", first.reason).astype(object)  # without a member's own on targets
        return Prediction(first.ids, targets, mean, first.status, reason, **more)

    @property
    def members(self) -> list[Method]:  # type: ignore[override]
        """The models that are kept, those of all folds."""
        return [method for folds in self._fitted[1] for method in folds] if hasattr(self, "_fitted") else []

    @property
    def title(self) -> str:
        """Its name."""
        return self.name

    def state(self) -> State:
        """The states of all models, their arrays under ``model-0.``, ``model-1.``, ..., the weights and the trials."""
        targets, models, weights, unlearned = whole(self)
        states = [method.state() for method in self.members]
        arrays = {"weights": weights}
        for i, state in enumerate(states):
            arrays |= {f"model-{i}.{name}": value for name, value in state.arrays.items()}
        entries = [{"name": m.name, "meta": dict(s.meta)} for m, s in zip(self.members, states, strict=True)]
        more = {"models": entries, "folds": [len(folds) for folds in models], "trials": self.trials.to_dict("records")}
        return State(arrays, described(self, targets, unlearned) | more)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild all models; raises ``ModelFileError`` where they do not fit together."""
        with refused("the parts of auto do not fit together"):
            auto = cls(**state.meta["params"])
            targets, parts = targets_from_json(state.meta["targets"]), state.by_owner()
            entries, folds = list(state.meta["models"]), [int(n) for n in state.meta["folds"]]
            weights = np.asarray(state.arrays["weights"], dtype=np.float64)
            if not 1 <= len(entries) <= LARGEST or sum(folds) != len(entries) or min(folds) < 1:
                raise ValueError(f"{len(entries)} models in {len(folds)} methods cannot be")
            if weights.shape != (len(folds), sum(len(target.columns) for target in targets)) or (weights < 0).any():
                raise ValueError("the weights are not those of the models")
            methods = [_restored(entry, parts.get(f"model-{i}", {})) for i, entry in enumerate(entries)]
            ends = np.cumsum(folds)
            models = [methods[end - n : end] for n, end in zip(folds, ends, strict=True)]
            auto._fitted = (targets, models, weights, restore_unlearned(state.meta, targets))
            auto.trials = pd.DataFrame([dict(row) for row in state.meta["trials"]])
        auto.notes = (*notes_of(auto._fitted[3]), auto._kept_note())
        return auto

    def _kept_note(self) -> str:
        """A sentence on the methods that are kept."""
        rows = self.trials.sort_values("weight", ascending=False).itertuples()
        kept = ", ".join(f"{row.method} ({row.weight:.0%})" for row in rows if row.weight > 0)
        tried = int((self.trials["method"] != "ensemble").sum())
        few = f"; fewer than {FEWEST} rows are too few to compare methods" if len(self.trials) == 1 else ""
        return f"auto tried {tried} of its methods and keeps {kept}{few}"

    def _splits(self, table: Table) -> list[Split]:
        """The folds, by the splitter or at random where it finds fewer groups than folds; fewer of few rows."""
        n = min(self.folds or (FOLDS if len(table) <= MANY else FEW_FOLDS), max(2, int(table.ok.sum()) // 4))
        for name in (self.split, RANDOM):
            try:
                return kfold(table, n, name, derive(self.seed, "auto") % 2**32, with_valid=False)
            except MolgraphError:
                if name == RANDOM:
                    raise
        raise AssertionError("one of both returns or raises")


def _restored(entry: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Method:
    """A fitted model of a file, once its parameters are of their types."""
    name = str(entry["name"])
    if name == Auto.name or name not in registry.names("method"):
        raise ValueError(f"{name[:60]!r} is no method that can be kept")
    method_class: type[Method] = registry.get("method", name)
    check_types(method_class, entry["meta"].get("params", {}))
    return method_class.from_state(State(arrays, entry["meta"]))


def _fold_of(splits: Sequence[Split], n: int) -> np.ndarray:
    """int64 [n]: the fold that tests each row; -1 for none."""
    fold = np.full(n, -1)
    for number, split in enumerate(splits):
        fold[split.test] = number
    return fold


def _spent(folder: Path) -> float:
    """Seconds of the fits that an earlier run finished."""
    return sum(float(json.loads(p.read_text("utf-8"))["seconds"]) for p in folder.glob("*/fold-*.json"))

"""Try sets of hyper-parameters by Optuna's TPE sampler, one trial after another, from those of an earlier run on."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.errors import MismatchError, StorageError
from molgraph.base.optional import need
from molgraph.base.search_space import Categorical, Float, Int, Range, Space
from molgraph.data.table import Table
from molgraph.evaluate.latency import Latency
from molgraph.evaluate.metrics import score

LOST = 1e300  # what a trial without a score counts as: worse than any other
LEAST = 8  # trials from which on it is said which parameter matters
NO_SCORE = "no score on the inner rows"


@dataclass(frozen=True)
class Trial:
    """One set of hyper-parameters and how well it did.

    Args:
        params: the values that were tried, by name.
        value: the mean of ``folds``, lower is better; None where there is no score.
        reason: why there is none; empty where there is one.
        seconds: how long it took.
        folds: the score on each inner fold, lower is better.
        rate: molecules/s of ``predict``, where it was measured.
        reward: score and rate together (``evaluate.latency``), higher is better, where trials are compared by it.
    """

    params: Mapping[str, Any]
    value: float | None
    reason: str = ""
    seconds: float = 0.0
    folds: tuple[float, ...] = ()
    rate: float | None = None
    reward: float | None = None

    @property
    def loss(self) -> float | None:
        """What a search minimises: the value, or the negative of the reward; None where there is no score."""
        return self.value if self.reward is None else -self.reward

    def to_json(self) -> dict[str, Any]:
        """Plain values; ``rate`` and ``reward`` where there are any."""
        values = asdict(self)
        return {name: value for name, value in values.items() if name not in ("rate", "reward") or value is not None}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Trial:
        """The trial of such values."""
        return cls(**{**values, "folds": tuple(values["folds"])})


def run_trials(
    space: Space,
    measure: Callable[[Mapping[str, Any]], Sequence[float]],
    *,
    trials: int,
    seed: int,
    first: Mapping[str, Any] | None = None,
    before: Sequence[Trial] = (),
    seconds: float | None = None,
    done: Callable[[Trial], None] | None = None,
    latency: Latency | None = None,
    rate: Callable[[], float] | None = None,
) -> list[Trial]:
    """Try ``trials`` sets of hyper-parameters (Akiba et al. 2019, KDD; Bergstra et al. 2011, NeurIPS).

    Trials of an earlier run are not measured again: the sampler is asked for them in the same order and told their
    scores, so that a search that was stopped ends as one that never was. A trial that raises has no score, and ends
    nothing; a full disk and Ctrl-C do.

    Args:
        space: name to range.
        measure: from a set of values to its scores on the inner folds, lower is better.
        trials: how many, those of ``before`` too.
        seed: of the sampler.
        first: the set that is tried first, such as the defaults; the sampler learns of it where the ranges hold it.
        before: the trials of an earlier run of the same search.
        seconds: time for all trials; none is begun that would end after it by the mean time of those before.
        done: called with each trial once it is measured.
        latency: by whose reward trials are compared, in place of their scores.
        rate: the molecules/s of the set that was measured last, asked for after each trial with a score.

    Raises:
        MismatchError: ``before`` holds trials that this search would not have made.

    Example:
        >>> found = run_trials({"x": Float(-1, 1)}, lambda p: [p["x"] ** 2], trials=30, seed=0)
        >>> len(found), abs(best_trial(found).params["x"]) < 0.2
        (30, True)
    """
    optuna = need("optuna", "a search")
    logging.getLogger("optuna").setLevel(logging.ERROR)
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed), direction="minimize")
    aside = first is not None and not all(holds(space[name], value) for name, value in first.items())
    if first is not None and not aside:
        study.enqueue_trial({name: _internal(space[name], value) for name, value in first.items()})
    results: list[Trial] = []
    while len(results) < trials and (len(results) < len(before) or _time_left(results, seconds)):
        asked = None if aside and not results else study.ask()
        params = {name: suggest(asked, name, domain) for name, domain in space.items()} if asked else dict(first or {})
        if len(results) < len(before):
            one = before[len(results)]
            if dict(one.params) != params:
                words = f"trial {len(results) + 1} of the journal tried {dict(one.params)}, this search would {params}"
                raise MismatchError(words, hint="it is another search's, or another version of Optuna's: begin anew")
        else:
            one = _measured(params, measure, latency, rate)
            if done is not None:
                done(one)
        results.append(one)
        if asked is not None:
            study.tell(asked, LOST if one.loss is None else one.loss)
    return results


def best_trial(trials: Sequence[Trial]) -> Trial | None:
    """The first of those with the best score, or reward where there are rewards; None where none has a score."""
    return min((t for t in trials if t.loss is not None), key=lambda t: t.loss or 0.0, default=None)


def importances(space: Space, trials: Sequence[Trial], seed: int = 0) -> dict[str, float]:
    """Share of the scores' variance that each parameter explains (fANOVA, Hutter et al. 2014, ICML), largest first.

    Empty where fewer than ``LEAST`` trials have a score, where all have the same, or where one parameter was searched.
    """
    optuna = need("optuna", "a search")
    inside = [t for t in trials if all(holds(space[name], value) for name, value in t.params.items())]
    scored = [t for t in inside if t.value is not None]
    if len(space) < 2 or len(scored) < LEAST or len({t.value for t in scored}) < 2:
        return {}
    study = optuna.create_study(direction="minimize")
    for one in scored:
        fixed = optuna.trial.FixedTrial({name: _internal(space[name], value) for name, value in one.params.items()})
        for name, domain in space.items():
            suggest(fixed, name, domain)
        fields = {"params": fixed.params, "distributions": fixed.distributions, "value": one.value}
        study.add_trial(optuna.trial.create_trial(**fields))
    evaluator = optuna.importance.FanovaImportanceEvaluator(seed=seed)
    shares = optuna.importance.get_param_importances(study, evaluator=evaluator)
    return {name: float(share) for name, share in sorted(shares.items(), key=lambda pair: -pair[1])}


def suggest(trial: Any, name: str, each: Range) -> Any:
    """A value of that range from one of Optuna's trials."""
    if isinstance(each, Float):
        return trial.suggest_float(name, each.low, each.high, log=each.log)
    if isinstance(each, Int):
        return trial.suggest_int(name, each.low, each.high, log=each.log)
    assert isinstance(each, Categorical)
    return each.choices[trial.suggest_categorical(name, list(range(len(each.choices))))]


def holds(each: Range, value: Any) -> bool:
    """Whether a range has that value.

    Example:
        >>> holds(Int(1, 10), 3), holds(Int(1, 10), None), holds(Categorical(("a", 0.1)), "a")
        (True, False, True)
    """
    if isinstance(each, Categorical):
        return value in each.choices
    return isinstance(value, int | float) and not isinstance(value, bool) and each.low <= value <= each.high


def judge(
    judged: Table, prediction: Prediction, metrics: Mapping[str, Any], scales: Mapping[str, float] | None = None
) -> float:
    """The leading metric, lower is better, averaged over the targets that have one on these rows.

    Args:
        judged: rows with measured values.
        prediction: of the same rows.
        metrics: the metric of each target, by name.
        scales: what each target's metric is divided by, so that errors in several units can be averaged; 1 without.
    """
    values = []
    for target in judged.row_targets:
        metric = metrics[target.name]
        value = score(judged.with_targets([target.name]), prediction, metrics=[metric])[0].value
        if math.isfinite(value):
            values.append((-value if metric.higher_is_better else value) / (scales or {}).get(target.name, 1.0))
    return float(np.mean(values)) if values else math.nan


def _internal(each: Range, value: Any) -> Any:
    return each.choices.index(value) if isinstance(each, Categorical) else value


def _time_left(found: Sequence[Trial], seconds: float | None) -> bool:
    """Whether another trial is likely to end in time; the first is always made."""
    if seconds is None or not found:
        return True
    spent = sum(t.seconds for t in found)
    return spent + spent / len(found) <= seconds


def _measured(
    params: Mapping[str, Any],
    measure: Callable[[Mapping[str, Any]], Sequence[float]],
    latency: Latency | None,
    rate: Callable[[], float] | None,
) -> Trial:
    started, folds, reason, speed = time.perf_counter(), tuple[float, ...](), "", None
    try:
        folds = tuple(float(value) for value in measure(params))
        speed = None if rate is None else rate()
    except StorageError:  # a full disk fails every trial
        raise
    except Exception as error:  # whatever a method raises, it is this trial's end alone
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:300]
    value = float(np.mean(folds)) if folds and not reason else math.nan
    score = value if math.isfinite(value) else None
    reason = reason or ("" if score is not None else NO_SCORE)
    reward = None if latency is None or speed is None or score is None else latency.of_loss(score, speed)
    return Trial(params, score, reason, round(time.perf_counter() - started, 3), folds, speed, reward)

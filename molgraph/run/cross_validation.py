"""Estimate a run's error by repeated cross-validation, beside its baselines on the same folds."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Method, Target
from molgraph.base.errors import UnsupportedError
from molgraph.base.journal import Journal
from molgraph.base.progress import bar
from molgraph.base.registry import get
from molgraph.base.seeds import derive
from molgraph.base.split_keys import cv_shape
from molgraph.data.splits import Split, repeated_kfold
from molgraph.data.splits.inner import SCAFFOLDS, stopping_rows
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.ranking import Ranking, rank_methods
from molgraph.evaluate.metrics import default_metric, get_metric, score
from molgraph.run.baselines import baseline_method, baselines_for
from molgraph.run.prepare import PreparedRun
from molgraph.train.tuning import fresh_method, quiet

JOURNAL = "cv.jsonl"
logger = logging.getLogger("molgraph")


@dataclass(frozen=True)
class CrossValidation:
    """Scores of a run's method and its baselines on the folds of a repeated cross-validation.

    Args:
        scores: a row for each ``repeat``, ``fold``, ``method``, ``target`` and ``metric``, with its ``value`` (NaN
            where the fold gives none) and why (``note``).
        repeats, folds, splitter: how the rows were divided.
        rows: how many rows were divided.
        targets: what was predicted.
        reasons: why a method lacks folds, by its name.
    """

    scores: pd.DataFrame
    repeats: int
    folds: int
    splitter: str
    rows: int
    targets: tuple[Target, ...]
    reasons: dict[str, str]

    def ranking(self, target: str, metric: str) -> Ranking:
        """Means with the intervals of Nadeau and Bengio (2003), and which methods the folds tell apart."""
        rows = self.scores[(self.scores["target"] == target) & (self.scores["metric"] == metric)]
        wide = rows.pivot(index=["repeat", "fold"], columns="method", values="value")
        ratio, better = 1 / (self.folds - 1), get_metric(metric).higher_is_better
        return rank_methods(wide, better, test_over_train=ratio, why=self.reasons)

    @property
    def table(self) -> pd.DataFrame:
        """A row for each target, metric and method: ``mean``, ``low``, ``high`` (95%), ``sd`` over folds, ``folds``."""
        pairs = self.scores[["target", "metric"]].drop_duplicates().itertuples(index=False)
        parts = [self.ranking(t, m).table.reset_index().assign(target=t, metric=m) for t, m in pairs]
        columns = ["target", "metric", "method", "mean", "low", "high", "sd", "folds"]
        return pd.concat(parts, ignore_index=True)[columns] if parts else pd.DataFrame(columns=columns)

    @property
    def title(self) -> str:
        """The folds in words."""
        return f"{self.repeats} x {self.folds} folds of {self.rows:,} rows ({self.splitter})"

    @property
    def section(self) -> dict[str, Any]:
        """The content of a report's section: a row a target, metric and method, with numbers as they are read."""
        rows = [
            {"target": r.target, "metric": get_metric(r.metric).label or r.metric, "method": r.method}
            | {"mean": f"{r.mean:.3g}", "interval": f"{r.low:.3g} to {r.high:.3g}", "sd": f"{r.sd:.3g}"}
            | {"folds": int(r.folds)}
            for r in self.table.itertuples()
        ]
        return {"title": self.title, "rows": rows}

    def sentences(self, name: str) -> list[str]:
        """What the folds say of the method of that name, a sentence a target."""
        sentences = []
        for target in self.targets:
            metric = default_metric(target.kind)
            ranking = self.ranking(target.name, metric.name)
            row, label = ranking.table.loc[name], metric.label or metric.name
            if not np.isfinite(row["mean"]):
                sentences.append(f"{target.name}: no fold gives {name} a score")
                continue
            words = f"{target.name}: {name} has {label} {row['mean']:.3g} (95% interval {row['low']:.3g} to "
            words += f"{row['high']:.3g}) over {self.title}"
            others = [other for other in ranking.ranked if other != name]
            verdicts = {"better": "better than", "worse": "worse than", "equivalent": "equivalent to"}
            against = [f"{verdicts.get(ranking.verdict(name, o), 'not told apart from')} {o}" for o in others]
            sentences.append("; ".join([words, *([", ".join(against)] if against else [])]))
        return sentences


def cross_validate(prepared: PreparedRun, folder: Path | None) -> CrossValidation:
    """Fit the method and its baselines anew on every fold of ``config.split.cv``, and score them on its test rows.

    The rows are those of all parts, but for a test table of its own. A fold that a method cannot learn has no score,
    and a reason. With a folder, folds that were done are not done again.

    Raises:
        UnsupportedError: a splitter that has no folds, or rows that only some methods read.
    """
    config, split = prepared.config, prepared.split
    repeats, k = cv_shape(config.split.cv or "")
    if not prepared.one_table:
        words = "folds are made of the labelled rows of one table"
        raise UnsupportedError(words, hint="leave out --cv, or --unlabelled and --helper")
    used = [split.train, split.valid] + [split.test] * ("test" not in split.params)
    table = prepared.clean.take(np.sort(np.concatenate(used)))
    seed = derive(config.split.seed, "cv") % 2**32
    name = SCAFFOLDS if split.splitter.startswith("scaffold/") else split.splitter
    logger.info("cross-validation: %s x %s folds by %s", repeats, k, name)
    settings = {key: value for key, value in split.params.items() if key in get("split", name).params}
    splits = repeated_kfold(table, repeats, k, name, seed, **settings)
    run = {"recipe": config.model_dump(mode="json", exclude={"training": {"threads", "store"}})}
    journal = Journal(None if folder is None else folder / JOURNAL, run | {"splits": [s.hash for s in splits]})
    methods: dict[str, Method] = {config.model.name: prepared.method}
    for other in baselines_for(config, prepared.method, prepared.parts[0]):
        methods[other] = baseline_method(other, config)
    done = {(s["repeat"], s["fold"], s["method"]) for s in journal.steps}
    label = f"{repeats} x {k} folds of {prepared.method.title}"
    with TemporaryDirectory(prefix="molgraph-cv-") as store, bar(label, len(splits) * len(methods)) as line:
        for i, fold in enumerate(splits):
            place = {"repeat": i // k, "fold": i % k}
            for other, method in methods.items():
                if (*place.values(), other) not in done:
                    step = {**place, "method": other, **_fold(method, table, fold, derive(seed, "fold", i), store)}
                    journal.append(step)
                line.advance()
    rows = [{key: s[key] for key in ("repeat", "fold", "method")} | row for s in journal.steps for row in s["scores"]]
    frame = pd.DataFrame(rows, columns=["repeat", "fold", "method", "target", "metric", "value", "note"])
    reasons = {s["method"]: s["reason"] for s in journal.steps if s["reason"]}
    for other, reason in reasons.items():
        logger.warning("%s has no score on some folds: %s", other, reason)
    return CrossValidation(
        frame.astype({"value": float}), repeats, k, name, len(table), prepared.parts[0].row_targets, reasons
    )


def _fold(method: Method, table: Table, split: Split, seed: int, store: str) -> dict[str, Any]:
    """Scores of a method on a fold, or why there are none."""
    learned, judged, valid = table.take(split.train), table.take(split.test), None
    params = {"store": store} if "store" in method.param_names() and method.get_params()["store"] is None else {}
    fresh = fresh_method(method, params, seed % 2**32)
    try:
        if fresh.uses_valid:
            learned, valid = stopping_rows(learned, split, seed)
        with quiet():
            fresh.fit(learned, valid)
        prediction = fresh.predict(replace(judged, y=None, targets=(), packed={}))
    except Exception as error:  # whatever a fold lacks, the others have their scores
        return {"scores": [], "reason": " ".join(f"{type(error).__name__}: {error}".split())[:300]}
    scores = [
        {"target": s.target, "metric": s.metric, "value": s.value if np.isfinite(s.value) else None, "note": s.note}
        for s in score(judged, prediction)
    ]
    return {"scores": scores, "reason": ""}

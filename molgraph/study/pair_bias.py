"""Measure whether a model of pairs uses both sides, or whether the ligand or the protein alone explains its score."""

from __future__ import annotations

import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Method, Prediction, Target
from molgraph.base.errors import LabelError, UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.data.levels import labelled
from molgraph.data.sides import Side
from molgraph.data.splits import split_table
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric, has_value
from molgraph.evaluate.sides import Gap, gap
from molgraph.evaluate.verdict import worded
from molgraph.study.docking_rank import rank_rows, without_feature
from molgraph.study.pair_toys import Rule, toy_pairs
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod
from molgraph.train.one_side import method_alone, method_sides

SHARES = (0.7, 0.1, 0.2)
TOY_ROWS, TOY_TEST = 240, 80
TOY_TRAINING = MappingProxyType({"epochs": 1, "min_steps": 60, "batch_size": 32, "learning_rate": 1e-2})


@register(
    "study",
    "pair-bias",
    summary="whether a model of pairs or complexes uses both sides, beside the ligand alone and the protein alone",
    paper="Morrone et al. 2020, J. Chem. Inf. Model. 60:4170; Chen et al. 2019, PLoS ONE 14:e0220113",
    systems=(
        SystemCard(
            "dual-graph-l-lp-r-network",
            left_out="labels shuffled within each target; the docking program, whose poses and ranks a table has",
            beside=("ligand alone", "protein alone", "rank alone"),
            command="molgraph study pair-bias dataset:davis -m dmpnn+deepdta -o bias.csv",
            modules=("molgraph.data.sides", "molgraph.evaluate.sides", "molgraph.train.one_side"),
        ),
    ),
)
class PairBias(Study):
    """The score of a model of pairs beside those of the same model with the ligand alone and with the protein alone.

    Morrone et al. 2020 found on a benchmark of actives and decoys that graphs of ligand and protein together did no
    better than the ligand's. The study divides the rows once and fits the model, and the model of each side, with
    several seeds on the same rows; the difference of their scores has a bootstrap interval over the test rows.
    Controls: the model is fitted to planted pairs whose label is the protein's (it has to be used), and the ligand's
    (nothing may show that the protein is used).

    Args:
        split: how to divide the rows; the table's own split column if empty, or at random where it has none.
        rows: rows that are used, at most, drawn at random.
        seeds: fits of each row of the table, as far as there is time.
        epochs: passes over the training rows of each fit, at most.
        rank: a column of features with the rank of each docked pose, 1 for the best (``--feature rank``): then there
            are rows of the model without it and of the rank alone, and for labels 0 and 1 the rate of right poses
            among those that come first in each complex.

    Raises:
        UnsupportedError: the model reads one thing a row.
        LabelError: no target, or one of atoms or bonds.
    """

    needs = ("data", "model")
    reads = "pairs"
    small = MappingProxyType({"seeds": 1, "rows": 60, "epochs": 2})

    def __init__(
        self,
        *,
        split: str = "",
        rows: Annotated[int, Range(20, 10_000_000)] = 2000,
        seeds: Annotated[int, Range(1, 100)] = 3,
        epochs: Count = 20,
        rank: str = "",
    ) -> None:
        self.split, self.rows, self.seeds, self.epochs, self.rank = split, rows, seeds, epochs, rank

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit the model and its sides, then the controls, then further seeds while there is time."""
        started = time.process_time()
        table, notes = _usable(subject.table(), self.rows, seed)
        sides = method_sides(subject.make(), table)
        if not sides:
            words = f"pair-bias is about pairs, and {subject.model} reads one thing a row here"
            hint = "name both columns, as in --smiles drug --sequence protein -m dmpnn+deepdta"
            raise UnsupportedError(words, hint=hint)
        splitter = self.split or ("random" if table.split is None else "column")
        divided = split_table(table, splitter, fractions=SHARES, seed=seed, quiet=True)
        parts = [table.take(rows) for rows in (divided.train, divided.valid, divided.test)]
        fits: dict[str, list[Prediction]] = {}
        _fit_all(fits, self._made(subject, seed, 0), sides, parts)
        each = time.process_time() - started
        controls = [_planted(subject, table, sides, rule, seed) for rule in ("second", "first")]
        n = 1
        while n < self.seeds and time.process_time() - started + each < seconds:
            _fit_all(fits, self._made(subject, seed, n), sides, parts)
            n += 1
        target, test = table.row_targets[0], parts[2]
        mean = _fit(make_method("mean"), parts)
        gaps = [gap(test, target, side, fits["model"], fits[side.title], mean=mean, seed=seed) for side in sides]
        frame = _frame(parts, fits, gaps)
        if self.rank:
            bare = [without_feature(part, self.rank) for part in parts]
            without = _fit(self._made(subject, seed, 0), bare)
            frame = rank_rows(frame, parts, {**fits, "without the rank": [without]}, self.rank)
        notes += [f"{n} of {self.seeds} fits of each row, for want of time"] * (n < self.seeds)
        about = subject.data if isinstance(subject.data, str) else "a table"
        other, side_name = sides[0].other, sides[0].name
        used, unused = f"the {other} is used", f"nothing shows use of the {other}"
        return Findings(
            f"Pair bias of {subject.model} on {about}: {len(table):,} rows, split {splitter}, {len(test):,} test rows",
            ". ".join(each.sentence for each in gaps) + ".",
            frame,
            Control(f"labels planted in the {other}", used, _told(controls[0]), controls[0].used),
            Control(f"labels planted in the {side_name}", unused, _told(controls[1]), not controls[1].used),
            notes=tuple(notes),
        )

    def _made(self, subject: Subject, seed: int, n: int) -> Method:
        """A fresh method for the n-th fit."""
        method = subject.make(seed=derive(seed, "fit", n) % 2**31)
        for part in method.innermost:
            if isinstance(part, GraphMethod) and part is method:
                part.set_params(epochs=self.epochs)
        return method


def _usable(table: Table, most: int, seed: int) -> tuple[Table, list[str]]:
    """Rows with a value of the first target, ``most`` of them, and what is left out."""
    if not table.row_targets or len(table.row_targets) < len(table.targets):
        raise LabelError("pair-bias needs a target of whole rows", hint="name it: -t COLUMN")
    notes = [f"of {len(table.row_targets)} targets the first"] * (len(table.row_targets) > 1)
    table = table.with_targets([table.row_targets[0].name])
    rows = np.flatnonzero(labelled(table) & table.ok)
    if len(rows) > most:
        notes.append(f"{most:,} of {len(rows):,} rows, drawn at random")
        rows = np.sort(generator(seed, "rows").permutation(rows)[:most])
    return table.take(rows), notes


def _fit_all(fits: dict[str, list[Prediction]], method: Method, sides: Sequence[Side], parts: Sequence[Table]) -> None:
    """Fit the model and each side with one seed, and keep their predictions of the test part."""
    fits.setdefault("model", []).append(_fit(method, parts))
    for side in sides:
        alone = _fit(method_alone(method, side, parts[0]), [side.of(part) for part in parts])
        fits.setdefault(side.title, []).append(alone)


def _fit(method: Method, parts: Sequence[Table]) -> Prediction:
    train, valid, test = parts
    return method.fit(train, valid if len(valid) else None).predict(test)


def _planted(subject: Subject, table: Table, sides: Sequence[Side], rule: Rule, seed: int) -> Gap:
    """The gap to the first side alone on pairs whose label is planted, of the graph model by itself."""
    template: Any = subject.make().innermost[0]
    method = type(template)(**{**template.get_params(), **TOY_TRAINING, "inputs": None, "seed": seed})
    toys = toy_pairs(table, sides, rule, n=TOY_ROWS, seed=seed)
    train, test = (toys.take(rows) for rows in (np.arange(TOY_TEST, TOY_ROWS), np.arange(TOY_TEST)))
    side = sides[0]
    whole = method.fit(train).predict(test)
    alone = method_alone(method, side, train).fit(side.of(train)).predict(side.of(test))
    return gap(test, toys.targets[0], side, [whole], [alone], seed=seed, n=200)


def _told(found: Gap) -> str:
    words = f"{found.metric.label} {found.whole:.2f} with it, {found.alone:.2f} without"
    return f"{words}; difference {worded(found.difference)}"


def _frame(parts: Sequence[Table], fits: dict[str, list[Prediction]], gaps: Sequence[Gap]) -> pd.DataFrame:
    """A row for the model, each side and the mean: the score over the fits, and what the model is better by."""
    target, test = parts[2].row_targets[0], parts[2]
    metric, gap_of = default_metric(target.kind), {entry.side.title: entry for entry in gaps}
    y = np.zeros(0) if test.y is None else test.y[:, 0]
    rows: list[dict[str, Any]] = []
    for name, predictions in fits.items():
        scores = [_score(y, entry, target) for entry in predictions]
        side_gap = gap_of.get(name)
        difference = {} if side_gap is None else side_gap.difference._asdict()
        rows.append(
            {
                "row": name,
                metric.name: float(np.mean(scores)),
                "fits": len(scores),
                "sd": float(np.std(scores, ddof=1)) if len(scores) > 1 else np.nan,
                "model_less_row": difference.get("value", np.nan),
                "low": difference.get("low", np.nan),
                "high": difference.get("high", np.nan),
            }
        )
    mean = np.nanmean(parts[0].y[:, 0]) if parts[0].y is not None else np.nan
    plain = evaluate_metric(metric, y, np.full(len(y), mean))[0] if target.kind != "multiclass" else np.nan
    return pd.DataFrame([*rows, {"row": "mean", metric.name: plain, "fits": 1}])


def _score(y: np.ndarray, prediction: Prediction, target: Target) -> float:
    p = columns_of(prediction, target)
    keep = np.isfinite(y) & has_value(p)
    return evaluate_metric(default_metric(target.kind), y[keep], p[keep])[0]

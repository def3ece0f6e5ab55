"""Compare optimisers by the share of learning rates that are about as good as their best."""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
import torch

from molgraph.base.contracts import Metric, Target
from molgraph.base.errors import BadValueError, DataError, MolgraphError, UnsupportedError, UsageError
from molgraph.base.parts import read_parts
from molgraph.base.ranges import Count, NotNegative, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.data.splits import split_table
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric, has_value
from molgraph.study.labelled_rows import first_target
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import SHARES, fresh, is_name
from molgraph.train.method import GraphMethod
from molgraph.train.optimizers import check_optimizer, make_optimizer

FEWEST, FEWER = 40, 4  # rows; rates where there is no time for more
PLAIN, CURVATURE, STEPS = "sgd(momentum=0, nesterov=false)", (10.0, 1.0), 60  # of the bowl, a control


def good_rates(errors: np.ndarray, within: float) -> np.ndarray:
    """bool [..., rates]: which errors are at most so much larger than the smallest, as a share of that.

    Example:
        >>> good_rates(np.array([1.0, 1.05, 2.0, np.inf]), 0.1).tolist()
        [True, True, False, False]
    """
    least = errors.min(axis=-1, keepdims=True)
    return np.isfinite(errors) & (errors <= (1 + within) * least)


def bowl(optimizer: str, rates: Iterable[float]) -> np.ndarray:
    """float [rates]: ``sqrt(1 + w' H w / 2)`` of ``H = diag(10, 1)`` after 60 steps from (1, 1); large where it flies
    off."""
    ends = []
    for rate in rates:
        w, scale = torch.nn.Parameter(torch.ones(2, dtype=torch.float64)), torch.tensor(CURVATURE)
        steps = make_optimizer(optimizer, [w], float(rate), 0.0)
        for _ in range(STEPS):
            steps.zero_grad()
            (0.5 * (scale * w.square()).sum()).backward()
            steps.step()
        ends.append(float((1 + 0.5 * (scale * w.detach().square()).sum()).sqrt()))
    return np.nan_to_num(ends, nan=np.inf, posinf=np.inf)


def bowl_by_formula(rates: Iterable[float]) -> np.ndarray:
    """The same for plain gradient descent, whose ``w_t = (1 - rate h)^t``."""
    h, rate = np.array(CURVATURE), np.array([*rates], dtype=np.float64)[:, None]
    with np.errstate(over="ignore"):
        return np.asarray(np.sqrt(1 + 0.5 * (h * (1 - rate * h) ** (2 * STEPS)).sum(axis=1)))


@register(
    "study",
    "lr-sensitivity",
    summary="the share of learning rates that are within 10% of the best, of several optimisers",
    paper="Liu et al. 2020, ICLR",
    systems=(
        SystemCard(
            "radam",
            left_out="images and texts, and the variance of the adaptive rate",
            off="'lr-sensitivity(optimizers=adam)'",
            beside=("adam without a warm-up", "sgd"),
            command="molgraph study lr-sensitivity builtin:chembl2321810 -m 'gin(depth=2, d_hidden=16)' -o rates.csv",
            modules=("molgraph.train.optimizers",),
        ),
    ),
)
class LearningRateSensitivity(Study):
    """A row for each optimiser: its error at each learning rate, and the share of rates within 10% of its best error.

    Liu et al. 2020, "On the variance of the adaptive learning rate and beyond", section 5.2: an optimiser that needs no
    tuning is good over a wide range of rates. The model is trained anew for each rate and repeat, with as many epochs;
    the epoch of the lowest loss of a tenth of the rows is kept, and a fifth is scored, each repeat on other rows. An
    error is that of the target's main metric, or 1 minus it where more of it is better. A training whose loss is no
    number any more is not good. Controls: plain gradient descent on a bowl, whose errors are known by a formula, and
    the first training once more.

    Args:
        optimizers: registered ones, with their settings, joined by ``+``.
        low, high: the smallest and the largest rate.
        n: rates, evenly spaced by their logarithms.
        within: how much larger a good rate's error may be than the best one, as a share of it.
        repeats: draws of rows and weights, as far as there is time.
        epochs: of each training.
        warmup: epochs until the rate is highest.
        rows: that are used, at most, drawn at random.

    Raises:
        LabelError: no target of rows, or fewer than 40 labelled molecules.
        UnsupportedError: a model that no gradient descent trains, or a file.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"n": 2, "repeats": 1, "epochs": 2, "rows": 80})

    def __init__(
        self,
        *,
        optimizers: str = "adam+radam+sgd",
        low: Positive = 1e-4,
        high: Positive = 0.1,
        n: Annotated[int, Range(2, 30)] = 7,
        within: NotNegative = 0.1,
        repeats: Count = 3,
        epochs: Count = 10,
        warmup: NotNegative = 0.0,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 600,
    ) -> None:
        if not low < high:
            raise BadValueError(f"low is {low:g}, and high {high:g}", hint="give a low that is below high")
        self.optimizers = [
            part.name + (f"({', '.join(f'{k}={v}' for k, v in part.settings.items())})" if part.settings else "")
            for part in read_parts(optimizers, "optimizer")
        ]
        for name in self.optimizers:
            check_optimizer(name)
        self.low, self.high, self.n, self.within = low, high, n, within
        self.repeats, self.epochs, self.warmup, self.rows = repeats, epochs, warmup, rows

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train at each rate by each optimiser, repeat by repeat."""
        began, names = time.process_time(), [*dict.fromkeys(self.optimizers)]
        if not is_name(subject.model) or not isinstance(fresh(subject, 0), GraphMethod):
            words = f"{subject.model} is no graph network that could be trained anew"
            raise UnsupportedError(words, hint="name one, such as -m dmpnn")
        table, target, notes = first_target(subject.table(), self.rows, FEWEST, seed)
        metric, rates = default_metric(target.kind), np.geomspace(self.low, self.high, self.n)
        first = self._error(subject, table, target, names[0], self._middle(), seed, 0)
        took = time.process_time() - began
        if took * (len(names) * self.n + 1) > 0.9 * seconds and self.n > FEWER:
            rates = np.geomspace(self.low, self.high, FEWER)
            notes.append(f"{FEWER} rates of {self.n}, for want of time")
        grids, longest = list[list[list[float]]](), 0.0
        while len(grids) < self.repeats and (not grids or time.process_time() + longest < began + 0.9 * seconds):
            started, rest = time.process_time(), (seed, len(grids))
            every = [[self._error(subject, table, target, name, rate, *rest) for rate in rates] for name in names]
            grids.append(every)
            longest = max(longest, time.process_time() - started)
        if len(grids) < self.repeats:
            notes.append(f"{len(grids)} of {self.repeats} repeats, for want of time")
        again = self._error(subject, table, target, names[0], self._middle(), seed, 0)
        errors = np.array(grids)
        frame = tabulate(names, rates, errors, self.within, metric)
        bowls = good_rates(bowl(PLAIN, rates), self.within), good_rates(bowl_by_formula(rates), self.within)
        about = subject.data if isinstance(subject.data, str) else "a table"
        return Findings(
            f"Learning rates of {subject.model} on {about}: {len(table):,} rows of {target.name}",
            tell(frame, rates, self.within, len(grids)),
            frame,
            Control("gradient descent on a bowl", f"{bowls[1].mean():.0%} of the rates are good, by the formula",
                    f"{bowls[0].mean():.0%}", bool((bowls[0] == bowls[1]).all())),
            Control("the first training once more", "no difference", f"{abs(again - first):.3g}",
                    again == first),
            lambda form: _drawn(names, rates, errors.mean(axis=0), metric.name, form), tuple(notes),
        )  # fmt: skip

    def _middle(self) -> float:
        return float(np.geomspace(self.low, self.high, self.n)[self.n // 2])

    def _error(
        self, subject: Subject, table: Table, target: Target, optimizer: str, rate: float, seed: int, repeat: int
    ) -> float:
        """The error on a fifth of the rows of a model that is trained at this rate; infinity where that fails."""
        split = split_table(table, "random", fractions=SHARES, seed=derive(seed, "split", repeat), quiet=True)
        train, valid, test = (table.take(rows) for rows in (split.train, split.valid, split.test))
        method = fresh(subject, derive(seed, "fit", repeat))
        method.set_params(optimizer=optimizer, learning_rate=float(rate), warmup_epochs=self.warmup, epochs=self.epochs)
        method.set_params(min_steps=0, patience=None)
        try:
            p = columns_of(method.fit(train, valid).predict(test), target)
        except (DataError, UsageError):
            raise
        except MolgraphError:  # the loss is no number any more
            return math.inf
        metric, known = default_metric(target.kind), has_value(p)
        value = evaluate_metric(metric, np.asarray(test.y)[known, 0], p[known])[0]
        value = 1 - value if metric.higher_is_better else value
        return value if math.isfinite(value) else math.inf


def tabulate(
    names: Sequence[str], rates: np.ndarray, errors: np.ndarray, within: float, metric: Metric
) -> pd.DataFrame:
    """A row for each optimiser: the share of good rates, the best rate and the error at each, means of repeats.

    Args:
        names: n optimisers.
        rates: float [r].
        errors: float [repeats, n, r].
        within: of the best, as ``good_rates`` has it.
        metric: the errors', or what they are 1 minus of.
    """
    shares, means = good_rates(errors, within).mean(axis=2), errors.mean(axis=0)
    frame = pd.DataFrame({"optimizer": names, "good_share": shares.mean(axis=0)})
    frame["least"], frame["most"] = shares.min(axis=0), shares.max(axis=0)
    frame["best_rate"] = rates[means.argmin(axis=1)]
    word = f"1-{metric.name}" if metric.higher_is_better else metric.name
    for i, rate in enumerate(rates):
        frame[f"{word} {rate:.2g}"] = means[:, i]
    return frame


def tell(frame: pd.DataFrame, rates: np.ndarray, within: float, repeats: int) -> str:
    """The shares beside each other."""
    order = frame.sort_values("good_share", ascending=False, kind="stable")
    shares = ", ".join(
        f"{share:.0%} with {name}" for name, share in zip(order["optimizer"], order["good_share"], strict=True)
    )
    some = f"mean of {repeats} repeats" if repeats > 1 else "one repeat"
    among = f"Of {len(rates)} learning rates from {rates[0]:g} to {rates[-1]:g}"
    return f"{among}, {shares} are within {within:.0%} of the best error ({some})."


def _drawn(names: Sequence[str], rates: np.ndarray, errors: np.ndarray, label: str, form: str) -> bytes:
    from molgraph.evaluate.report_trust import rate_lines  # with matplotlib

    return rate_lines(dict(zip(names, errors, strict=True)), rates, label, form)

"""Count the steps that each batch size takes to one validation loss, with a learning rate chosen for each."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd

from molgraph.base.errors import BadValueError, EmptyError
from molgraph.base.ranges import Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.data.loader import batch_order
from molgraph.study.grid_fits import Divided, fitted_with, random_parts
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.widths import whole_numbers

FEWEST, PERFECT, ROOM = 40, 1.2, 1.02  # rows; steps beyond perfect scaling that still count; of the target loss
BOWL, RATES = 0.5 ** np.arange(8), np.geomspace(1e-3, 1.9, 120)  # curvatures and rates of a control


def bowl_steps(batch: int, *, goal: float = 1e-2, limit: int = 200_000) -> int:
    """Steps of stochastic gradient descent on a noisy bowl to its goal, at the best of 120 learning rates.

    Zhang et al. 2019, "Which algorithmic choices matter at which batch sizes?", equation 3: with curvature h and
    gradient noise of variance h / B, ``E[w^2] <- (1 - rate h)^2 E[w^2] + rate^2 h / B``; the loss is ``sum h E[w^2] /
    2``.

    Args:
        batch: B.
        goal: as a share of the first loss.
        limit: of steps.
    """
    h, rate = BOWL[None, :], RATES[:, None]
    shrink, noise = (1 - rate * h) ** 2, rate**2 * h / batch
    end = noise / np.maximum(1 - shrink, 1e-12)
    goal = goal * 0.5 * float(BOWL.sum())
    low, high = 0, limit

    def reached(steps: int) -> bool:
        power = shrink**steps
        return bool((0.5 * (h * (power + end * (1 - power))).sum(axis=1) <= goal).any())

    while high - low > 1:  # the loss falls from step to step at the rates that reach the goal
        middle = (low + high) // 2
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high


def steps_to(losses: Sequence[float], goal: float, per_epoch: int) -> float:
    """Steps until the loss at the end of an epoch is at the goal; infinity where none is.

    Example:
        >>> steps_to([3.0, 1.0, 0.5], 1.0, 10), steps_to([3.0], 1.0, 10)
        (20.0, inf)
    """
    good = [i for i, loss in enumerate(losses, 1) if loss <= goal]
    return float(good[0] * per_epoch) if good else math.inf


@register(
    "study",
    "batch-size",
    summary="steps and time to one validation loss by the batch size, with a learning rate chosen for each",
    paper="Shallue et al. 2019, JMLR",
    systems=(
        SystemCard(
            "steps-to-result-batch-size-study",
            left_out="momentum and schedules tuned for each batch size; images and texts",
            off="'batch-size(rates=1)'",
            beside=("perfect scaling",),
            command="molgraph study batch-size builtin:chembl2321810 -m 'gin(depth=2, d_hidden=16)' -o batches.csv",
            modules=("molgraph.study.grid_fits",),
        ),
    ),
)
class BatchSizeStudy(Study):
    """A row for each batch size: the steps to the target loss at the best learning rate, beside perfect scaling.

    Shallue et al. 2019, "Measuring the effects of data parallelism on neural network training", section 4: for each
    batch size the learning rate is chosen anew, and steps to one validation loss are counted; at first twice the batch
    takes half the steps, later no fewer. The target is the same for all: 2% above the lowest loss that each batch size
    reaches, the largest of these. Controls: a noisy bowl, whose steps are known by a formula, at small and at large
    batches.

    Args:
        batches: sizes, joined by ``+``.
        low, high: the smallest and the largest learning rate.
        rates: between them, evenly spaced by their logarithms; a single one is the middle.
        steps: of each training, at most.
        repeats: draws of weights, as far as there is time.
        rows: of the table that are used, at most, drawn at random.

    Raises:
        BadValueError: fewer than two batch sizes.
        UnsupportedError: a model that is no graph network, or several classes.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"batches": "8+32", "rates": 2, "steps": 12, "repeats": 1, "rows": 80})

    def __init__(
        self,
        *,
        batches: str = "8+32+128",
        low: Positive = 1e-3,
        high: Positive = 1e-2,
        rates: Annotated[int, Range(1, 30)] = 3,
        steps: Count = 240,
        repeats: Count = 2,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 400,
    ) -> None:
        self.batches = whole_numbers(batches)
        if len(self.batches) < 2 or not low < high:
            raise BadValueError("batch-size compares two batch sizes or more, at rates from low to a larger high",
                                hint="such as batches=8+32+128, low=0.001, high=0.01")  # fmt: skip
        self.rates = np.geomspace(low, high, rates) if rates > 1 else np.array([math.sqrt(low * high)])
        self.steps, self.repeats, self.rows = steps, repeats, rows

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train with each batch size at each rate, repeat by repeat."""
        end, parts = time.process_time() + 0.9 * seconds, random_parts(subject, self.rows, FEWEST, seed)
        notes, curves, longest = [*parts.notes], list[list[list[list[float]]]](), 0.0
        each = [len(batch_order(len(parts.train), batch)) for batch in self.batches]
        while len(curves) < self.repeats and (not curves or time.process_time() + longest < end):
            began, own = time.process_time(), derive(seed, "fit", len(curves))
            curves.append([[self._losses(subject, parts, own, batch, rate, n) for rate in self.rates]
                           for batch, n in zip(self.batches, each, strict=True)])  # fmt: skip
            longest = max(longest, time.process_time() - began)
        notes += [f"{len(curves)} of {self.repeats} repeats, for want of time"] * (len(curves) < self.repeats)
        goal, steps = self.count(curves, each)
        chosen = steps.min(axis=2)  # [repeats, batches]
        best = np.median(steps.argmin(axis=2), axis=0).astype(int)
        frame = pd.DataFrame({"batch_size": self.batches, "best_rate": self.rates[best], "steps": chosen.mean(axis=0)})
        frame["least"], frame["most"] = chosen.min(axis=0), chosen.max(axis=0)
        frame["perfect_scaling"] = frame["steps"][0] * self.batches[0] / frame["batch_size"]
        frame["rows"] = frame["steps"] * frame["batch_size"]
        edges = [size for size, i in zip(self.batches, best, strict=True) if len(self.rates) > 1
                 and i in (0, len(self.rates) - 1)]  # fmt: skip
        notes += [f"the best rate of {', '.join(map(str, edges))} is at the edge of the rates"] * bool(edges)
        small, large = bowl_steps(1) / bowl_steps(2), bowl_steps(2**14) / bowl_steps(2**15)
        return Findings(
            f"Batch size of {subject.model}: {len(parts.train):,} rows of {parts.target.name}",
            self.tell(frame, goal, len(curves), seed),
            frame,
            Control("a noisy bowl, batches of 1 and 2", "half the steps (1.6 to 2.4 times)", f"{small:.2f} times",
                    1.6 <= small <= 2.4),
            Control("the bowl, large batches", "as many steps (below 1.25 times)", f"{large:.2f} times", large < 1.25),
            lambda form: _drawn(frame, chosen, form),
            tuple(notes),
        )  # fmt: skip

    def _losses(self, subject: Subject, parts: Divided, seed: int, batch: int, rate: float, n: int) -> list[float]:
        """Validation losses by epoch; none of a training whose loss is no number."""
        epochs = max(1, round(self.steps / n))
        method = fitted_with(subject, parts, seed, batch_size=batch, learning_rate=float(rate), epochs=epochs)
        return [] if method is None or method.curves is None else [*map(float, method.curves["valid_loss"])]

    def count(self, curves: list[list[list[list[float]]]], each: Sequence[int]) -> tuple[float, np.ndarray]:
        """The loss that all batch sizes reach, and steps to it, float64 [repeats, batches, rates].

        Args:
            curves: validation losses by repeat, batch size, rate and epoch.
            each: steps of an epoch of each batch size.

        Raises:
            EmptyError: a batch size with which no training was finished.
        """
        least = [[min((min(own) for own in rates if own), default=math.inf) for rates in every] for every in curves]
        goal = ROOM * float(np.max(least))
        if not math.isfinite(goal):
            raise EmptyError("no training of a batch size was finished", hint="lower the rates: high=0.001")
        steps = [[[steps_to(own, goal, n) for own in rates] for rates, n in zip(every, each, strict=True)]
                 for every in curves]  # fmt: skip
        return goal, np.array(steps)

    def tell(self, frame: pd.DataFrame, goal: float, repeats: int, seed: int) -> str:
        """Steps, and up to which size they are as few as perfect scaling has them."""
        good = frame.loc[frame["steps"] <= PERFECT * frame["perfect_scaling"], "batch_size"]
        steps = ", ".join(f"{n:.0f} with {size}" for n, size in zip(frame["steps"], frame["batch_size"], strict=True))
        some = f"mean of {repeats} repeats, seed {seed}" if repeats > 1 else f"one repeat, seed {seed}"
        return f"Steps to a validation loss of {goal:.3g}: {steps}; within 20% of perfect scaling up to batches of " \
               f"{good.max()} ({some})."  # fmt: skip


def _drawn(frame: pd.DataFrame, chosen: np.ndarray, form: str) -> bytes:
    from molgraph.evaluate.report_studies import setting_lines  # with matplotlib

    curves = {"steps": chosen, "perfect scaling": frame["perfect_scaling"].to_numpy()}
    return setting_lines([*frame["batch_size"]], curves, ("batch size", "steps to the target"), form, log=(True, True))

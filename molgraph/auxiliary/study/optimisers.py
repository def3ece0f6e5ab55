"""Compare training and test errors of optimisers, each at its own best learning rate."""

from __future__ import annotations

import math
import time
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
import torch
from scipy.stats import t

from molgraph.base.errors import BadValueError
from molgraph.base.parts import read_parts
from molgraph.base.ranges import Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.study.grid_fits import Divided, fitted_with, random_parts
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.optimizers import check_optimizer

FEWEST, ROWS, SHARE = 40, 200, 0.6  # rows; of the construction, and its share of ones
CLOSE, CLEAR = 0.05, 0.25  # errors of the construction by the smallest norm, at most, and by signs, at least


def construction(rng: np.random.Generator, n: int, n_test: int) -> tuple[np.ndarray, ...]:
    """Rows on which adaptive steps learn to answer 1 always, and gradient descent the labels.

    Wilson et al. 2017, "The marginal value of adaptive gradient methods in machine learning", section 3.3: labels of 1
    (with probability 0.6) and -1; the first column is the label, the next two are 1, and each row has columns of its
    own, one where the label is 1 and five where it is -1.

    Returns:
        x float64 [n, d], y float64 [n], and those of test rows, whose own columns no training row has.
    """
    y, y_test = (np.where(rng.random(m) < SHARE, 1.0, -1.0) for m in (n, n_test))
    wide = 3 + 5 * n
    x, x_test = (np.zeros((m, wide)) for m in (n, n_test))
    for rows, labels in ((x, y), (x_test, y_test)):
        rows[:, 0], rows[:, 1:3] = labels, 1.0
    for i, label in enumerate(y):
        x[i, 3 + 5 * i : 3 + 5 * i + (1 if label > 0 else 5)] = 1.0
    return x, y, x_test, y_test


def adagrad(x: np.ndarray, y: np.ndarray, steps: int = 3000) -> np.ndarray:
    """float64 [d]: least squares from 0 by torch's Adagrad."""
    w, a, b = torch.zeros(x.shape[1], dtype=torch.float64, requires_grad=True), torch.from_numpy(x), torch.from_numpy(y)
    rule = torch.optim.Adagrad([w], lr=0.05)
    for _ in range(steps):
        rule.zero_grad()
        (0.5 * (a @ w - b).square().sum()).backward()
        rule.step()
    return w.detach().numpy()


@register(
    "study",
    "optimisers",
    summary="whether a gain is the optimiser's: training and test errors of each at its own best learning rate",
    paper="Wilson et al. 2017, NeurIPS",
    systems=(
        SystemCard(
            "adaptive-method-generalisation-gap",
            left_out="images and language; decay of learning rates chosen by hand",
            off="'optimisers(rates=1)'",
            beside=("signs of the correlations", "smallest norm"),
            command="molgraph study optimisers builtin:chembl2321810 -m 'gin(depth=2, d_hidden=16)' -o optimisers.csv",
            modules=("molgraph.study.grid_fits",),
        ),
    ),
)
class OptimisersStudy(Study):
    """A row for each optimiser: its best learning rate by validation error, and its training and test errors there.

    Wilson et al. 2017: adaptive methods (AdaGrad, RMSProp, Adam) reach solutions that answer worse on new rows than
    those of gradient descent, however far the training errors fall. With the same number of rates each, a difference
    that is left is not one of tuning. Errors are squared and divided by the labels' variance. Controls: the paper's
    rows, on which Adagrad answers 1 always and the solution of the smallest norm answers right.

    Args:
        optimizers: registered ones, with their settings, joined by ``+``.
        rates: learning rates of each, a factor of 4 apart; one is the middle.
        middle: the middle rate of adaptive methods; of ``sgd`` it is 10 times as high.
        repeats: draws of weights, as far as there is time.
        epochs: of each training.
        rows: of the table that are used, at most, drawn at random.

    Raises:
        UnsupportedError: a model that is no graph network, or several classes.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"rates": 2, "repeats": 2, "epochs": 2, "rows": 80})

    def __init__(
        self,
        *,
        optimizers: str = "adam+rmsprop+sgd",
        rates: Annotated[int, Range(1, 15)] = 3,
        middle: Positive = 2e-3,
        repeats: Annotated[int, Range(2, 100)] = 3,
        epochs: Count = 15,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 400,
    ) -> None:
        parts = read_parts(optimizers, "optimizer")
        self.optimizers = [
            part.name + (f"({', '.join(f'{k}={v}' for k, v in part.settings.items())})" if part.settings else "")
            for part in parts
        ]
        for name in self.optimizers:
            check_optimizer(name)
        if len(self.optimizers) < 2:
            raise BadValueError("one optimiser is compared with none", hint="name two or more: optimizers=adam+sgd")
        self.rates = 4.0 ** (np.arange(rates) - (rates - 1) / 2)
        self.middle, self.repeats, self.epochs, self.rows = middle, repeats, epochs, rows

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train by each at each rate, repeat by repeat."""
        end, parts = time.process_time() + 0.9 * seconds, random_parts(subject, self.rows, FEWEST, seed)
        found, longest, notes = list[np.ndarray](), 0.0, [*parts.notes]
        while len(found) < self.repeats and (len(found) < 2 or time.process_time() + longest < end):
            began, own = time.process_time(), derive(seed, "fit", len(found))
            found.append(np.array([[self._errors(subject, parts, own, name, rate) for rate in self._rates(name)]
                                   for name in self.optimizers]))  # fmt: skip
            longest = max(longest, time.process_time() - began)
        notes += [f"{len(found)} of {self.repeats} repeats, for want of time"] * (len(found) < self.repeats)
        errors = np.array(found)  # [repeats, optimisers, rates, (train, valid, test)]
        best = errors[..., 1].mean(axis=0).argmin(axis=1)
        at = errors[:, np.arange(len(best)), best]
        frame = pd.DataFrame({"optimizer": self.optimizers})
        frame["best_rate"] = [self._rates(name)[i] for name, i in zip(self.optimizers, best, strict=True)]
        for j, words in enumerate(("train", "valid", "test")):
            frame[f"{words}_error"] = at[:, :, j].mean(axis=0)
        difference = at[:, :, 2] - at[:, [int(frame["valid_error"].argmin())], 2]
        frame["behind_best"], frame["interval"] = difference.mean(axis=0), _half(difference)
        edges = [name for name, i in zip(self.optimizers, best, strict=True)
                 if len(self.rates) > 1 and i in (0, len(self.rates) - 1)]  # fmt: skip
        notes += [f"the best rate of {', '.join(edges)} is at the edge of the rates"] * bool(edges)
        signs, smallest = counter_example(seed)
        return Findings(
            f"Optimisers of {subject.model}: {len(parts.train):,} rows of {parts.target.name}",
            self.tell(frame, len(found), seed),
            frame,
            Control(
                "Adagrad on the rows of the construction", f"an error above {CLEAR}", f"{signs:.3f}", signs > CLEAR
            ),
            Control("the smallest norm there", f"an error below {CLOSE}", f"{smallest:.3f}", smallest < CLOSE),
            lambda form: _drawn(frame, form),
            tuple(notes),
        )

    def _rates(self, name: str) -> np.ndarray:
        return np.asarray(self.rates * self.middle * (10 if name.startswith("sgd") else 1))

    def _errors(self, subject: Subject, parts: Divided, seed: int, name: str, rate: float) -> list[float]:
        """Training, validation and test error; infinite where the loss is no number."""
        method = fitted_with(subject, parts, seed, optimizer=name, learning_rate=float(rate), epochs=self.epochs)
        return [math.inf] * 3 if method is None else [
            parts.error(method, table) for table in (parts.train, parts.valid, parts.test)]  # fmt: skip

    def tell(self, frame: pd.DataFrame, repeats: int, seed: int) -> str:
        """Test errors, and whether any difference is clear."""
        order = frame.sort_values("test_error", kind="stable")
        errors = ", ".join(
            f"{e:.3f} by {name}" for e, name in zip(order["test_error"], order["optimizer"], strict=True)
        )
        clear = frame["behind_best"].abs() > frame["interval"]
        names = ", ".join(frame.loc[clear, "optimizer"])
        words = f"the differences of {names} are clear" if names else "no difference is clear"
        some = f"95% interval of the difference over {repeats} repeats, seed {seed}"
        return f"Test errors at the best of {len(self.rates)} rates: {errors}; {words} ({some})."


def counter_example(seed: int) -> tuple[float, float]:
    """Test errors of Adagrad and of the solution of the smallest norm on the paper's rows."""
    x, y, x_test, y_test = construction(generator(seed, "construction"), ROWS, 2000)
    both = adagrad(x, y), x.T @ np.linalg.solve(x @ x.T, y)
    first, second = (float(np.mean(np.sign(x_test @ w) != y_test)) for w in both)
    return first, second


def _half(values: np.ndarray) -> np.ndarray:
    """Half of the 95% interval of the means of float [repeats, n] by Student's t."""
    n = len(values)
    return np.asarray(t.ppf(0.975, n - 1) * values.std(axis=0, ddof=1) / math.sqrt(n))


def _drawn(frame: pd.DataFrame, form: str) -> bytes:
    from molgraph.evaluate.report_trust import paired_bars  # with matplotlib

    bars = {"training": [*frame["train_error"]], "test": [*frame["test_error"]]}
    return paired_bars([*frame["optimizer"]], bars, "squared error / variance", form)

"""Train a network at several widths on noisy labels, and find the width where its test error peaks."""

from __future__ import annotations

import time
from dataclasses import replace
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd

from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.printable import count
from molgraph.base.ranges import Count, Positive, Probability, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.evaluate.metrics import columns_of
from molgraph.study.near_far import FEWEST, divide
from molgraph.study.random_features import noisy_plane, random_features
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.widths import at_width, whole_numbers

ROWS, INPUTS, NOISE = 60, 20, 0.5  # of the controls: rows, width and noise of a plane
PEAK, FLAT = 2.0, 1.3  # how many times the wide model's error the peak is; that of a tuned ridge's, at most
RIDGES = np.logspace(-6, 1, 15)


def peak_width(widths: np.ndarray, errors: np.ndarray) -> tuple[int, float]:
    """The width at which the test error rises highest and falls again, and how many times the error beside it.

    The ratio is of that error to the least of narrower or of wider models, whichever is larger: it is above 1 only
    where the error falls on both sides.

    Args:
        widths: int [w], 3 or more, in order.
        errors: float [w].

    Example:
        >>> peak_width(np.array([1, 2, 4]), np.array([1.0, 3.0, 0.5]))
        (2, 3.0)
    """
    ratios = [errors[i] / max(errors[:i].min(), errors[i + 1 :].min()) for i in range(1, len(errors) - 1)]
    best = int(np.argmax(ratios))
    return int(widths[best + 1]), float(ratios[best])


def feature_curve(widths: tuple[int, ...], *, n: int, noise: float, seed: int, tuned: bool = False) -> np.ndarray:
    """float64 [w]: test errors of random ReLU features on n noisy rows; those of the best ridge where ``tuned``."""
    rng = generator(seed, "features")
    x, y = noisy_plane(rng, n, INPUTS, noise)
    x_test, y_test = noisy_plane(rng, 2000, INPUTS, 0.0)
    found = []
    for width in widths:
        how = [{"width": width, "ridge": float(r)} for r in (RIDGES if tuned else [0.0])]
        draw = derive(seed, "features", width)
        fits = (random_features(np.random.default_rng(draw), x, y, x_test, **each) for each in how)  # type: ignore[arg-type]
        found.append(min(float(np.mean((p - y_test) ** 2)) for p in fits))
    return np.array(found)


@register(
    "study",
    "double-descent",
    summary="whether the test error of a network peaks at the width where it begins to fit noisy labels",
    paper="Nakkiran et al. 2020, ICLR",
    systems=(
        SystemCard(
            "deep-double-descent",
            left_out="error by epochs and by number of rows; images and translation",
            off="'double-descent(noise=0)'",
            beside=("training error", "ridge regression of tuned strength"),
            command="molgraph study double-descent builtin:chembl2321810 -m 'gin(depth=2)' -o widths.csv",
            modules=("molgraph.study.random_features", "molgraph.study.widths"),
        ),
    ),
)
class DoubleDescentStudy(Study):
    """A row for each width: training and test error of networks that are trained to the end on noisy labels.

    Nakkiran et al. 2020, "Deep double descent: where bigger models and more data hurt", section 2: the effective
    complexity of a training is the number of rows up to which its training error is below ``eps``; where it is about
    the number of rows, wider networks can be worse, and label noise makes the peak sharper. Errors are squared and
    divided by the labels' variance (1: their mean). Controls: least squares on random features, which peaks where
    there are as many as rows, and the same with a tuned ridge, which does not.

    Args:
        widths: hidden units of encoder and head, joined by ``+``, three or more.
        noise: share of the training labels that are exchanged with each other.
        eps: training error at which a width counts as fitting the labels.
        repeats: draws of weights, as far as there is time.
        epochs: of each training, without early stopping.
        rows: of the table that are used, at most, drawn at random.

    Raises:
        BadValueError: fewer than three widths.
        UnsupportedError: a file, several classes, or no graph network.
    """

    needs = ("data", "graph_model")
    small = MappingProxyType({"widths": "2+4+8", "repeats": 1, "epochs": 2, "rows": 120})

    def __init__(
        self,
        *,
        widths: str = "2+4+8+16+32+64",
        noise: Probability = 0.2,
        eps: Positive = 0.1,
        repeats: Count = 2,
        epochs: Count = 60,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 300,
    ) -> None:
        self.widths = whole_numbers(widths)
        if len(self.widths) < 3:
            raise BadValueError(f"{len(self.widths)} widths show no peak", hint="name three or more: widths=4+16+64")
        self.noise, self.eps, self.repeats, self.epochs, self.rows = noise, eps, repeats, epochs, rows

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train at each width, repeat by repeat."""
        end, divided = time.process_time() + 0.9 * seconds, divide(subject.table(), self.rows, seed)
        if divided.target.kind not in ("regression", "binary"):
            raise UnsupportedError("the target has several classes", hint="name one of numbers or two classes: -t")
        target, test, notes = divided.target, divided.test, [*divided.notes]
        y, rng = np.array(divided.train.y, dtype=np.float64), generator(seed, "noise")
        moved = rng.permutation(len(y))[: round(self.noise * len(y))]
        y[moved, 0] = y[rng.permutation(moved), 0]
        train, unit = replace(divided.train, y=y), float(y[:, 0].var())
        found, longest = list[np.ndarray](), 0.0
        while len(found) < self.repeats and (not found or time.process_time() + longest < end):
            began, every = time.process_time(), []
            for width in self.widths:
                method = at_width(subject, width, derive(seed, "fit", len(found)))
                method.set_params(epochs=self.epochs, patience=None, min_steps=0)
                method.fit(train)
                p = [columns_of(method.predict(part), target) for part in (train, test)]
                pairs = zip(p, (y[:, 0], np.asarray(test.y)[:, 0]), strict=True)
                every.append([float(np.mean((a - b) ** 2)) / unit for a, b in pairs])
            found.append(np.array(every))
            longest = max(longest, time.process_time() - began)
        notes += [f"{len(found)} of {self.repeats} repeats, for want of time"] * (len(found) < self.repeats)
        errors = np.array(found)  # [repeats, widths, 2]
        mean, low, high = errors.mean(axis=0), errors.min(axis=0), errors.max(axis=0)
        frame = pd.DataFrame({"width": self.widths, "train_error": mean[:, 0], "test_error": mean[:, 1]})
        frame["test_least"], frame["test_most"] = low[:, 1], high[:, 1]
        features = (ROWS // 6, ROWS // 2, ROWS, 2 * ROWS, 10 * ROWS)
        plain = feature_curve(features, n=ROWS, noise=NOISE, seed=seed)
        tuned = feature_curve(features, n=ROWS, noise=NOISE, seed=seed, tuned=True)
        top, flat = int(np.argmax(plain)), peak_width(np.array(features), tuned)[1]
        return Findings(
            f"Width of {subject.model}: {len(train):,} rows of {target.name}, {self.noise:.0%} of the labels exchanged",
            self.tell(mean, len(found), seed),
            frame,
            Control(f"least squares of random features, {ROWS} rows", f"a peak at {ROWS}, {PEAK:g} times the widest's",
                    f"at {features[top]}, {plain[top] / plain[-1]:.1f} times",
                    top == 2 and bool(plain[top] > PEAK * plain[-1])),
            Control("the same with a tuned ridge", f"no peak above {FLAT:g} times its sides", f"{flat:.2f} times",
                    flat < FLAT),
            lambda form: _drawn(self.widths, errors, form),
            tuple(notes),
        )  # fmt: skip

    def tell(self, mean: np.ndarray, repeats: int, seed: int) -> str:
        """Where the error peaks and where labels are fitted."""
        width, ratio = peak_width(np.array(self.widths), mean[:, 1])
        fits = [w for w, error in zip(self.widths, mean[:, 0], strict=True) if error <= self.eps]
        where = f"training error falls to {self.eps:g} at width {fits[0]}" if fits else "no width fits its labels"
        peak = f"peaks at width {width}, {ratio:.2f} times the least at its sides" if ratio > 1.05 else "has no peak"
        best = self.widths[int(mean[:, 1].argmin())]
        some = f"{count(repeats, 'repeat')}, seed {seed}"
        return f"The test error {peak}, and is least at width {best} ({mean[:, 1].min():.2f}); {where} ({some})."


def _drawn(widths: tuple[int, ...], errors: np.ndarray, form: str) -> bytes:
    from molgraph.evaluate.report_studies import setting_lines  # with matplotlib

    curves = {"test": errors[:, :, 1], "training": errors[:, :, 0]}
    return setting_lines([*widths], curves, ("width", "squared error / variance"), form)

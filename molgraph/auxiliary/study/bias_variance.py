"""Split a model's squared error into bias and variance by training it on disjoint parts of the rows."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.errors import UnsupportedError
from molgraph.base.printable import count
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.evaluate.metrics import columns_of
from molgraph.study.near_far import FEWEST, divide
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.widths import at_width, whole_numbers

MEANS, DRAWS, CLOSE = 25, 4000, 0.05  # numbers of a mean, means and the relative error of a control


class Split(NamedTuple):
    """The parts of the squared error of m rows.

    Args:
        bias: float64 [m], squared bias with the noise of the labels: risk minus variance.
        variance: float64 [m].
    """

    bias: np.ndarray
    variance: np.ndarray


def bias_variance(predictions: np.ndarray, y: np.ndarray) -> Split:
    """Squared bias and variance of each row, from models that were trained on disjoint parts of the rows.

    Yang et al. 2020, "Rethinking bias-variance trade-off for generalization of neural networks", section 3.2: of N
    parts ``variance = sum_i (f_i - f_mean)^2 / (N - 1)``, which is unbiased, averaged over divisions; ``bias^2 = mean
    (f_i - y)^2 - variance``.

    Args:
        predictions: float [divisions, N, m].
        y: float [m].

    Example:
        >>> bias_variance(np.array([[[1.0], [3.0]]]), np.array([2.0]))
        Split(bias=array([-1.]), variance=array([2.]))
    """
    variance = predictions.var(axis=1, ddof=1).mean(axis=0)
    return Split(((predictions - y) ** 2).mean(axis=(0, 1)) - variance, variance)


@register(
    "study",
    "bias-variance",
    summary="whether an ensemble, or a larger model or more data would lower the error, by its variance and bias",
    paper="Yang et al. 2020, ICML",
    systems=(
        SystemCard(
            "bias-variance-sweep",
            left_out="cross-entropy (probabilities by squared error), images, and adversarial training",
            off="'bias-variance(disjoint=false)'",
            beside=("new scaffolds", "another seed on the same rows"),
            command="molgraph study bias-variance builtin:chembl2321810 -m 'gin(depth=2, epochs=9)' -o bias.csv",
            modules=("molgraph.study.widths",),
        ),
    ),
)
class BiasVarianceStudy(Study):
    """A row for each width and half of the test rows: squared bias, variance and their sum, the squared error.

    Yang et al. 2020: of each of several divisions of the training rows into disjoint parts a model of each part is
    trained; their variance is unbiased, and the rest of the error is bias (with the labels' noise). Variance is what
    an ensemble removes at most; bias falls with a better model or more data. Test rows are the nearer and the farther
    half by Tanimoto similarity to training, a part of them with scaffolds of their own. Controls: the variance of
    means of 25 numbers, and a model that ignores its data.

    Args:
        widths: hidden units of a graph network, joined by ``+``; the model as it is, if empty.
        parts: of a division.
        repeats: divisions, as far as there is time.
        disjoint: whether the models of a division learn from disjoint rows; else all from the first part, by other
            seeds.
        rows: of the table that are used, at most, drawn at random.
        epochs: of a network, at most.

    Raises:
        UnsupportedError: a file, several classes, or widths of another method than a graph network.
    """

    needs = ("data", "model")
    small = MappingProxyType({"rows": 120, "repeats": 1, "epochs": 2})

    def __init__(
        self,
        *,
        widths: str | int = "",
        parts: Annotated[int, Range(2, 20)] = 2,
        repeats: Count = 3,
        disjoint: bool = True,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 1000,
        epochs: Count = 30,
    ) -> None:
        self.widths, self.parts, self.repeats, self.disjoint = whole_numbers(widths) or (0,), parts, repeats, disjoint
        self.rows, self.epochs = rows, epochs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train all parts, division by division."""
        end, divided = time.process_time() + 0.9 * seconds, divide(subject.table(), self.rows, seed)
        if divided.target.kind not in ("regression", "binary"):
            raise UnsupportedError("the target has several classes", hint="name one of numbers or two classes: -t")
        train, test, notes = divided.train, divided.test, [*divided.notes]
        found, longest = list[np.ndarray](), 0.0
        while len(found) < self.repeats and (not found or time.process_time() + longest < end):
            began = time.process_time()
            order = generator(seed, "division", len(found)).permutation(len(train))
            pieces = np.array_split(order, self.parts)
            every = []
            for width in self.widths:
                for i, piece in enumerate(pieces):
                    rows = np.sort(piece if self.disjoint else pieces[0])
                    method = at_width(subject, width, derive(seed, "fit", len(found), i), self.epochs)
                    every.append(columns_of(method.fit(train.take(rows)).predict(test), divided.target))
            found.append(np.array(every).reshape(len(self.widths), self.parts, len(test)))
            longest = max(longest, time.process_time() - began)
        notes += [f"{len(found)} of {self.repeats} divisions, for want of time"] * (len(found) < self.repeats)
        frame = self.tabulate(np.array(found), np.asarray(test.y)[:, 0], divided.similarity)
        rng = generator(seed, "means")
        means = rng.normal(size=(DRAWS, 5, MEANS)).mean(axis=2)
        positive = float(bias_variance(means[:, :, None], np.zeros(1)).variance[0])
        same = float(
            bias_variance(np.broadcast_to(np.asarray(train.y)[:, 0].mean(), (2, 2, 1)), np.ones(1)).variance[0]
        )
        return Findings(
            f"Bias and variance of {subject.model}: {len(train) // self.parts:,} rows of {divided.target.name} a model",
            self.tell(frame, len(found), seed),
            frame,
            Control(f"means of {MEANS} numbers", f"variance 1/{MEANS} within {CLOSE:.0%}", f"{positive:.4f}",
                    abs(positive * MEANS - 1) < CLOSE),
            Control("a model that ignores its data", "no variance", f"{same:.3g}", same < 1e-12),
            lambda form: _drawn(frame, form),
            tuple(notes),
        )  # fmt: skip

    def tabulate(self, predictions: np.ndarray, y: np.ndarray, similarity: np.ndarray) -> pd.DataFrame:
        """A row for each width and half of the rows; float [divisions, widths, parts, m]; errors over rows."""
        near, rows = similarity >= np.median(similarity), []
        for i, width in enumerate(self.widths):
            split = bias_variance(predictions[:, i], y)
            for name, here in (("near", near), ("far", ~near)):
                bias, variance = (part[here] for part in split)
                errors = [float(part.std(ddof=1) / np.sqrt(here.sum())) for part in (bias, variance)]
                rows.append((width or "as named", name, int(here.sum()), bias.mean(), errors[0], variance.mean(),
                             errors[1], bias.mean() + variance.mean()))  # fmt: skip
        names = ["width", "test_rows", "rows", "bias2", "bias2_error", "variance", "variance_error", "squared_error"]
        return pd.DataFrame(rows, columns=names)

    def tell(self, frame: pd.DataFrame, divisions: int, seed: int) -> str:
        """Which of both is larger, and what lowers it."""
        words = []
        for name in ("near", "far"):
            at = frame[frame["test_rows"] == name]
            best = at.loc[at["squared_error"].idxmin()]
            share = best["variance"] / best["squared_error"]
            width = f" at width {best['width']}" * (len(at) > 1)
            words.append(f"of the squared error {best['squared_error']:.3g}{width} on {name} molecules {share:.0%} is "
                         f"variance ({best['variance']:.3g} ± {best['variance_error']:.2g})")  # fmt: skip
        large = frame["variance"].mean() > frame["bias2"].mean()
        advice = "an ensemble removes most of it" if large else "a better model or more data is needed, not an ensemble"
        some = f"{count(divisions, 'division')} into {self.parts} parts, standard error over rows, seed {seed}"
        return f"{'; '.join(words)[:1].upper()}{'; '.join(words)[1:]}: {advice} ({some})."


def _drawn(frame: pd.DataFrame, form: str) -> bytes:
    from molgraph.evaluate.report_trust import paired_bars  # with matplotlib

    names = [f"{row['width']}, {row['test_rows']}" for _, row in frame.iterrows()]
    bars = {"bias and noise": [*frame["bias2"]], "variance": [*frame["variance"]]}
    return paired_bars(names, bars, "squared error", form)

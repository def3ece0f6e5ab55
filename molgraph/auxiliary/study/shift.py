"""Compare ensembles, dropout, temperature and a Bayesian last layer on molecules near to and far from training."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
from torch import nn

from molgraph.base.contracts import Method, Prediction, Target
from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Probability, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of
from molgraph.evaluate.report_shift import draw_shift
from molgraph.evaluate.shift_scores import Guess, fit_temperature, mix, scores, with_temperature
from molgraph.study.near_far import FEWEST, Parts, divide
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import fresh
from molgraph.train.method import GraphMethod
from molgraph.train.runtime import torch_settings
from molgraph.trust.last_layer import draw, fit_last_layer, last_states

BINS = ("near", "middle", "far")
PASSES, PRIOR = 20, 5.0  # of dropout; standard deviation of outputs by the last layer's prior
DRAWN, LEVEL, OVER = 9_000, 0.03, 0.1  # rows of controls; calibration errors that count as none, and as one


def guess_of(prediction: Prediction, target: Target, sd: float) -> Guess:
    """Probabilities; or values with the method's spread, or a constant deviation where it has none."""
    p = columns_of(prediction, target)
    if target.kind in ("binary", "multiclass"):
        return Guess(p if p.ndim == 2 else np.column_stack([1 - p, p]))
    spread = prediction.spread
    return Guess(p, np.full(len(p), sd) if spread is None else np.maximum(spread[:, 0], 1e-3 * sd))


class Fits:
    """Fits of one method from several seeds, and what is made of them.

    Args:
        subject: names it.
        parts: of the table.
        epochs: of a network; its own if 0.
        dropout: of its head, where the method names none.
        seed: of the fits.
        stops: whether validation rows stop training early, beside the temperature that they choose.
    """

    def __init__(
        self, subject: Subject, parts: Parts, epochs: int, dropout: float, seed: int, *, stops: bool = True
    ) -> None:
        self.subject, self.parts, self.epochs, self.dropout, self.seed = subject, parts, epochs, dropout, seed
        self.stops = stops
        self.methods: list[Method] = []
        self.y = np.asarray(parts.train.y)[:, 0]
        self.sd = 0.0

    def add(self) -> None:
        """Fit one more."""
        method = fresh(self.subject, derive(self.seed, "member", len(self.methods)), self.epochs)
        for part in method.innermost:
            if isinstance(part, GraphMethod):
                part.set_params(head_dropout=part.head_dropout or self.dropout)
        self.methods.append(method.fit(self.parts.train, self.parts.valid if self.stops else None))
        if not self.sd and self.parts.target.kind not in ("binary", "multiclass"):
            fitted = columns_of(method.predict(self.parts.train), self.parts.target)
            self.sd = max(float(np.sqrt(np.nanmean((fitted - self.y) ** 2))), 1e-3 * float(self.y.std()))

    def guess(self, method: Method, table: Table) -> Guess:
        """What one of them says."""
        return guess_of(method.predict(table), self.parts.target, self.sd)

    def by_dropout(self, table: Table) -> Guess:
        """The mean over passes of the first network with dropout at work (Gal and Ghahramani 2016, ICML)."""
        first = self.methods[0]
        network = first.ready().network if isinstance(first, GraphMethod) else nn.Module()
        layers = [m for m in network.modules() if isinstance(m, nn.Dropout) and m.p > 0]
        if not layers:
            raise UnsupportedError(f"{first.title} has no dropout")
        for layer in layers:
            layer.train()
        try:
            with torch_settings(1, derive(self.seed, "dropout")):
                return mix([self.guess(first, table) for _ in range(PASSES)])
        finally:
            network.eval()

    def by_last_layer(self, table: Table) -> Guess:
        """The first network with a posterior over the weights of its last layer."""
        first, kind = self.methods[0], self.parts.target.kind
        h, x = (last_states(first, part) for part in (self.parts.train, table))
        center = h.mean(axis=0)
        length = np.sqrt(((h - center) ** 2).sum(axis=1).mean()) + 1e-9
        h, x = ((part - center) * PRIOR / length for part in (h, x))  # so that outputs have that deviation by the prior
        if kind in ("binary", "multiclass"):
            n = max(len(self.parts.target.columns), 2)
            logits = draw(fit_last_layer(h, self.y, classes=n, seed=self.seed), x, seed=self.seed)
            p = np.exp(logits - logits.max(axis=2, keepdims=True))
            return mix([Guess(part / part.sum(axis=1, keepdims=True)) for part in p])
        middle, unit = self.y.mean(), self.y.std()
        layer = fit_last_layer(h, (self.y - middle) / unit, noise=self.sd / unit, seed=self.seed)
        return mix([Guess(middle + unit * part[:, 0], np.full(len(x), self.sd)) for part in draw(layer, x)])

    def guesses(self) -> tuple[dict[str, Guess], float, list[str]]:
        """What each method says of the test rows, the temperature, and why some are not there."""
        valid, test, notes = self.parts.valid, self.parts.test, list[str]()
        members = [self.guess(method, test) for method in self.methods]
        heat = fit_temperature(np.asarray(valid.y)[:, 0], self.guess(self.methods[0], valid))
        out = {"plain": members[0], "temperature": with_temperature(members[0], heat)}
        for name, make in (("dropout", self.by_dropout), ("last layer", self.by_last_layer)):
            try:
                out[name] = make(test)
            except UnsupportedError as why:
                notes.append(f"no row of {name}: {why.message}")
        return {**out, "ensemble": mix(members)}, heat, notes


def by_bin(y: np.ndarray, similarity: np.ndarray, guesses: Mapping[str, Guess]) -> pd.DataFrame:
    """Scores of each method in thirds of the rows by their similarity to training, and in all rows."""
    third = np.empty(len(y), dtype=int)
    third[np.argsort(-similarity, kind="stable")] = np.arange(len(y)) * len(BINS) // len(y)
    rows = []
    for i, name in enumerate((*BINS, "all")):
        here = np.flatnonzero((third == i) | (name == "all"))
        span = f"{similarity[here].min():.2f} to {similarity[here].max():.2f}"
        for method, guess in guesses.items():
            known = here[np.isfinite(guess.value[here].reshape(len(here), -1)).all(axis=1)]
            metrics = scores(y[known], guess.take(known))
            rows.append({"bin": name, "similarity": span, "rows": len(known), "method": method, **metrics})
    return pd.DataFrame(rows)


def control(seed: int) -> tuple[float, float]:
    """The calibration error of the far third less that of the near one: of known probabilities, and of far logits x 3.

    Labels are drawn from the probabilities.
    """
    rng = generator(seed, "control")
    one = 1 / (1 + np.exp(-1.5 * rng.standard_normal(DRAWN)))
    y, similarity = (rng.random(DRAWN) < one).astype(float), rng.random(DRAWN)
    true = Guess(np.column_stack([1 - one, one]))
    sure = np.where(np.argsort(np.argsort(-similarity))[:, None] * 3 >= 2 * DRAWN, with_temperature(true, 1 / 3).value,
                    true.value)  # fmt: skip
    frame = by_bin(y, similarity, {"true": true, "sure": Guess(sure)}).set_index(["method", "bin"])["ece"]
    return tuple(float(frame[name, "far"] - frame[name, "near"]) for name in ("true", "sure"))  # type: ignore[return-value]


@register(
    "study",
    "shift",
    summary="how far predictions can be trusted from near to far molecules: ensemble, dropout, temperature, last layer",
    paper="Ovadia et al. 2019, NeurIPS",
    systems=(
        SystemCard(
            "uncertainty-under-shift-benchmark",
            left_out="variational inference of all layers; dropout of the last layer alone; rejection but of a half",
            off="shift(members=1)",
            beside=("plain", "temperature", "dropout", "last layer"),
            command="molgraph study shift builtin:chembl2321810 -m 'dmpnn(d_hidden=16, epochs=2)' -o shift.csv",
            modules=(
                "molgraph.study.near_far",
                "molgraph.evaluate.shift_scores",
                "molgraph.trust.last_layer",
                "molgraph.evaluate.screening",
            ),
        ),
    ),
)
class ShiftStudy(Study):
    """Scores of probabilities by the similarity of molecules to training, of one model made sure in five ways.

    Ovadia et al. 2019: one fit (``plain``), with a temperature from validation rows like the training ones, with
    dropout at work, with a posterior over the last layer's weights, and several fits on the same rows from other seeds
    (``ensemble``). A quarter of the rows have scaffolds of their own; test rows are cut into thirds by their similarity
    to the nearest training molecule. A number's deviation is that of the training residuals, where the model has none.
    Controls: known probabilities are calibrated in all thirds; where far logits are tripled, the far third is not.

    Args:
        members: fits, as far as there is time.
        rows: rows that are used, at most, drawn at random.
        epochs: of a network; the model's own if 0.
        dropout: of its head, where the model names none.
        stops: whether validation rows stop training early, beside the temperature that they choose.

    Raises:
        LabelError: fewer than 100 labelled molecules, or labels that are all equal.
        UnsupportedError: a model's file.
    """

    needs = ("data", "model")
    small = MappingProxyType({"members": 2, "rows": 200, "epochs": 2})

    def __init__(
        self,
        *,
        members: Annotated[int, Range(1, 100)] = 5,
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 2000,
        epochs: Annotated[int, Range(0, 10_000)] = 0,
        dropout: Probability = 0.1,
        stops: bool = True,
    ) -> None:
        self.members, self.rows, self.epochs, self.dropout = members, rows, epochs, dropout
        self.stops = stops

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Divide, fit while there is time, and score."""
        started = time.process_time()
        if not isinstance(subject.model, str) or subject.model.endswith(".mgm"):
            raise UnsupportedError("shift fits its model anew, several times", hint="name a model, such as -m dmpnn")
        parts = divide(subject.table(), self.rows, seed)
        fits, longest = Fits(subject, parts, self.epochs, self.dropout, seed, stops=self.stops), 0.0
        while len(fits.methods) < self.members:
            before = time.process_time()
            if fits.methods and before + longest > started + 0.8 * seconds:
                break
            fits.add()
            longest = max(longest, time.process_time() - before)
        guesses, heat, notes = fits.guesses()
        frame = by_bin(np.asarray(parts.test.y)[:, 0], parts.similarity, guesses)
        n = len(fits.methods)
        notes = [*parts.notes, *notes, *([f"{n} of {self.members} fits, for want of time"] * (n < self.members))]
        notes.append(f"temperature {heat:.2f}; ensemble of {n} fits")
        none, tripled = control(seed)
        about = subject.data if isinstance(subject.data, str) else "a table"
        return Findings(
            f"Trust under shift of {subject.model} on {about}: {len(parts.test):,} test rows of {parts.target.name}",
            tell(frame), frame,
            Control("far less near error, far logits x 3", f"above {OVER}", f"{tripled:+.3f}", tripled > OVER),
            Control("far less near error, known probabilities", f"0 within {LEVEL}", f"{none:+.3f}", abs(none) < LEVEL),
            lambda form: draw_shift(frame, form), tuple(notes),
        )  # fmt: skip


def tell(frame: pd.DataFrame) -> str:
    """What is lost from near to far, and what does best there."""
    table = frame.set_index(["bin", "method"])
    gauge, words = ("ece", "calibration error") if "ece" in frame else ("covered", "coverage of the 90% interval")
    near, far = (table.loc[(name, "plain")] for name in ("near", "far"))
    best = table.loc["far"]["nll"].idxmin()
    winner = table.loc[("far", best)]
    return (
        f"From near (similarity {near['similarity']}) to far ({far['similarity']}) the log loss of plain goes from "
        f"{near['nll']:.2f} to {far['nll']:.2f} nats, its {words} from {near[gauge]:.2f} to {far[gauge]:.2f}; best of "
        f"the far is {best} ({winner['nll']:.2f} nats, {winner[gauge]:.2f})."
    )

"""Measure whether what raises one model's answer raises another's: a control that is aligned shares its errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import pearsonr

from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import judged
from molgraph.train.alignment import Alignment, Edits, Gradients, by_edits, by_gradients, edits_of, same_features
from molgraph.train.model import Model

SELF, APART = 1e-5, 0.15  # what the alignment with itself may lack of 1; that with random directions, at most
By = Literal["auto", "gradients", "edits"]


@register(
    "study",
    "alignment",
    summary="whether what raises one model's answer raises another's, as of an oracle and its control",
    paper="Demontis et al. 2019, USENIX Security",
    systems=(
        SystemCard(
            "gradient-alignment-transferability",
            left_out="poisoning, and the variability of the loss; edits of molecules stand beside gradients",
            off="alignment(other=gin,by=edits)",
            beside=("a model and itself", "random directions"),
            command="molgraph study 'alignment(other=gin)' builtin:chembl2321810 -m 'dmpnn(epochs=9)' -o alignment.csv",
            modules=("molgraph.train.alignment", "molgraph.generate.auto_control"),
        ),
    ),
)
class AlignmentStudy(Study):
    """A row for each molecule: the alignment R of two models, both sensitivities S, the expected rise and the measured.

    Demontis et al. 2019, "Why Do Adversarial Attacks Transfer?": a step that raises one model's answer most raises the
    other's by ``eps R S_other``, so that a search which exploits one exploits an aligned other too. Graph networks with
    the same features of atoms are compared by gradients of these, at ``eps``; any others by the changes of their
    answers with single edits of each molecule, as a search makes them. A name is fitted to a part of the table, a file
    is taken as it is. Controls: the first model and itself, and random directions.

    Args:
        other: a model's name with its settings, or its file; another fit of the first, by another seed, if empty.
        by: ``gradients``, ``edits``, or ``auto``, gradients where that is possible.
        eps: length of the step, of gradients.
        edits: of each molecule.
        molecules: that are looked at, at most.
        rows: of the table that a name is fitted to, at most, drawn at random.
        epochs: of a network that is named.

    Raises:
        UnsupportedError: gradients of models that do not read the same features; several classes.
    """

    needs = ("data", "model")
    small = MappingProxyType({"rows": 120, "epochs": 2, "molecules": 30})

    def __init__(
        self,
        *,
        other: str = "",
        by: By = "auto",
        eps: Positive = 1e-3,
        edits: Annotated[int, Range(2, 1000)] = 16,
        molecules: Annotated[int, Range(5, 100_000)] = 200,
        rows: Annotated[int, Range(20, 10_000_000)] = 1500,
        epochs: Count = 20,
    ) -> None:
        self.other, self.by, self.eps, self.edits = other, by, eps, edits
        self.molecules, self.rows, self.epochs = molecules, rows, epochs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit both, and compare them on molecules that the first did not learn from."""
        how: dict[str, Any] = {"rows": self.rows, "epochs": self.epochs}
        first = judged(subject, **how, seed=seed)
        again = Subject(subject.data, self.other or subject.model, subject.columns)
        second = judged(again, **how, seed=seed if self.other else derive(seed, "again"))
        if "multiclass" in (first.target.kind, second.target.kind):
            raise UnsupportedError("one of the models predicts several classes", hint="name models of numbers")
        table, one, other = first.test.take(np.arange(min(len(first.test), self.molecules))), first.model, second.model
        clean = standardise(table, one.standardiser)
        table = clean.take(np.flatnonzero(clean.ok))
        for model in (one, other):
            if [kind for kind, _ in model.columns_read] != ["molecule"]:
                words = f"alignment compares models of one column of molecules, and {model.name} reads others"
                raise UnsupportedError(words, hint="name models that read molecules alone")
        able = same_features(one, other)
        if self.by == "gradients" and not able:
            words = f"{one.name} and {other.name} do not read the same features of atoms, or have no gradient"
            raise UnsupportedError(words, hint="leave it out, and edits of molecules are compared: by=edits")
        gradients = self.by == "gradients" or (self.by == "auto" and able)
        both, itself, random, texts = self._gradients(one, other, table, seed) if gradients else self._edits(
            one, other, table, first.target.name, second.target.name, seed)  # fmt: skip
        frame = pd.DataFrame({"smiles": texts, **both._asdict()}).dropna(subset=["cosine"])
        if frame.empty:
            raise EmptyError("neither model's answer changes", hint="name models that learnt something")
        frame = frame.sort_values("cosine", ascending=False, kind="stable", ignore_index=True)
        mean, share = float(frame["cosine"].mean()), float((frame["measured"] > 0).mean())
        close = float(pearsonr(frame["expected"], frame["measured"])[0]) if len(frame) > 2 else np.nan
        what = "gradients" if gradients else "edits"
        self_mean, apart = float(np.nanmean(itself.cosine)), float(np.nanmean(random.cosine))
        names = (one.name, other.name if self.other else f"another {other.name}")
        return Findings(
            f"Alignment of {names[0]} and {names[1]} by {what}: {len(frame):,} molecules",
            f"Mean alignment {mean:.2f} (1: alike, 0: unlike): what raises {names[0]} most raises {names[1]} on "
            f"{share:.0%} of the molecules; expected and measured rises correlate by {close:.2f}.",
            frame,
            Control(f"{one.name} and itself", "1", f"{self_mean:.6f}", abs(self_mean - 1) < SELF),
            Control("random directions", f"within {APART} of 0", f"{apart:.2f}", abs(apart) < APART),
            lambda form: _drawn(frame, names, form),
            (*first.notes, *([f"R, S and rises by {self.edits} edits of each molecule"] if not gradients else ())),
        )

    def _gradients(
        self, one: Model, other: Model, table: Table, seed: int
    ) -> tuple[Alignment, Alignment, Alignment, list[str]]:
        """The alignment of both, of the first with itself, and of the first with random directions."""
        a, b = (Gradients(model.method.ready(), table) for model in (one, other))  # type: ignore[attr-defined]
        rng, g = generator(seed, "directions"), a.take()
        noise, h = rng.normal(size=g.shape), np.zeros((a.batch.n_graphs, 3))
        for i, product in enumerate((g * noise, g * g, noise * noise)):
            h[:, i] = np.bincount(a.graph, product.sum(axis=1), len(h))
        apart = h[:, 0] / np.sqrt(np.maximum(h[:, 1] * h[:, 2], 1e-30))
        random = by_edits(g[:1], g[:1])._replace(cosine=apart)
        return by_gradients(a, b, self.eps), by_gradients(a, a, self.eps), random, [str(t) for t in table.smiles]

    def _edits(
        self, one: Model, other: Model, table: Table, first: str, second: str, seed: int
    ) -> tuple[Alignment, Alignment, Alignment, list[str]]:
        """The same by edits."""
        edits: Edits = edits_of([str(text) for text in table.smiles], self.edits, seed)

        def scorer(model: Model, name: str) -> Callable[[Sequence[str]], np.ndarray]:
            target = next(t for t in model.targets if t.name == name)
            return lambda texts: columns_of(model.predict(list(texts)), target)

        a, b = edits.changes(scorer(one, first)), edits.changes(scorer(other, second))
        noise = generator(seed, "directions").normal(size=a.shape)
        return by_edits(a, b), by_edits(a, a), by_edits(a, noise), edits.smiles


def _drawn(frame: pd.DataFrame, names: tuple[str, str], form: str) -> bytes:
    from molgraph.evaluate.report_trust import rise_points  # with matplotlib

    return rise_points(frame["expected"], frame["measured"], names, form)

"""Find groups of molecules on which a model errs more often, and name their substructures (Domino)."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError
from molgraph.base.ranges import Count, NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.base.table import Target
from molgraph.chem.functional_groups import GROUPS
from molgraph.evaluate.slice_names import Described, Errors, describe, errors_of, name_slices
from molgraph.study.held_out import held_out
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

Q, ALARMS, NULLS = 0.05, 1, 5  # false discoveries; false alarms at most, of runs of the negative control
RARE = 0.1  # share of chance errors in controls


def planted(known: Described, hit: np.ndarray | None, seed: int, *, one_class: bool = False) -> Errors:
    """Random labels and sure predictions, a tenth of them wrong by chance, and all where ``hit`` is true.

    With ``one_class`` those alone of class 1 are.
    """
    rng = generator(seed, "planted")
    y = rng.integers(0, 2, len(known.x))
    right = rng.random(len(y)) >= RARE
    if hit is not None:
        right &= ~(hit & (y == 1)) if one_class else ~hit
    sure = rng.uniform(0.7, 0.98, len(y))
    return errors_of(y, np.where(right == (y == 1), sure, 1 - sure), Target("planted", "binary"))


def usual_group(known: Described, share: float = 0.07, least: int = 24) -> int:
    """Number of the functional group that occurs in that share of the molecules, or nearly.

    Raises:
        DataError: every group is in nearly all or nearly none of the molecules.
    """
    n = len(known.has)
    sizes = known.has[:, : len(GROUPS)].sum(axis=0)
    m = int(np.abs(sizes - max(share * n, least)).argmin())
    if not least / 2 <= sizes[m] <= n / 2:
        words = f"no functional group tells a part of these {n:,} molecules from the others"
        raise DataError(words, hint="slices need a table of unlike molecules")
    return m


@register(
    "study",
    "slices",
    summary="names the substructures, scaffolds and property ranges on which a model fails",
    paper="Eyuboglu et al. 2022, ICLR",
    systems=(
        SystemCard(
            "domino",
            left_out="images and a cross-modal model: names are functional groups, scaffolds and ranges of properties",
            off="slices(gamma=0)",
            beside=("a Gaussian mixture of the vectors alone",),
            command="molgraph study slices builtin:chembl2321810 -m 'random_forest(n_estimators=20)' -o slices.csv",
            modules=("molgraph.evaluate.error_slices", "molgraph.evaluate.slice_names", "molgraph.study.held_out"),
        ),
    ),
)
class SliceStudy(Study):
    """Groups of molecules on which a model errs more often than on others of the class, each with a name and a test.

    A mixture model of vectors, labels and predictions (``molgraph.evaluate.error_slices``) finds groups of errors in
    one half of the rows; their names are tested in the other half, so that a group of chance errors, which any search
    finds, is not confirmed. A model's name is fitted fold by fold, a file predicts what it did not learn from.
    Controls: planted errors on one functional group of the table are named first; errors by chance have no name.

    Args:
        k: slices, at most one in twenty rows of a half.
        gamma: weight of labels and predictions beside the molecule; 0: groups of molecules alone.
        folds: of a model's name.
        rows: rows that are read, at most.
        epochs: of a network in each fold, at most.

    Raises:
        DataError: molecules that no functional group divides.
    """

    needs = ("data", "model")
    small = MappingProxyType({"folds": 2})

    def __init__(
        self,
        *,
        k: Annotated[int, Range(2, 1000)] = 25,
        gamma: NotNegative = 10.0,
        folds: Annotated[int, Range(2, 100)] = 5,
        rows: Annotated[int, Range(40, 1_000_000)] = 2000,
        epochs: Count = 20,
    ) -> None:
        self.k, self.gamma, self.folds, self.rows, self.epochs = k, gamma, folds, rows, epochs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Predict, find slices, and test their names; then the controls."""
        how: dict[str, Any] = {"folds": self.folds, "rows": self.rows, "epochs": self.epochs}
        predictions = held_out(subject, **how, seed=seed, seconds=0.6 * seconds)
        known = describe([str(text) for text in predictions.table.smiles], seed)
        group = usual_group(known)
        settings: dict[str, Any] = {"k": self.k, "gamma": self.gamma, "seed": seed}
        errors = errors_of(predictions.y, predictions.p, predictions.target)
        frame = name_slices(known, errors, **settings)
        share, half = float((errors.fault >= 0).mean()), len(known.x) - len(known.x) // 2
        first = name_slices(known, planted(known, known.has[:, group], derive(seed, "group")), **settings).head(1)
        name, q = ("nothing", 1.0) if first.empty else (first["name"].iloc[0], first["q"].iloc[0])
        holds = q < Q and known.alike(known.names.index(name), group) > 0.5
        false = 0
        for run in range(NULLS):
            none = name_slices(known, planted(known, None, derive(seed, "chance", run)), **settings)
            false += bool((none["q"] < Q).any())
        model = subject.model if isinstance(subject.model, str) else subject.fitted().name
        what = f"on {subject.data}" if isinstance(subject.data, str) else "on a table"
        return Findings(
            f"Error slices of {model} {what}: {len(known.x):,} rows, {share:.0%} wrong", tell(known, frame), frame,
            Control(f"errors on all {known.words[group]}", "it is named first", f"{name}, q = {q:.2g}", holds),
            Control("errors by chance", f"names in {ALARMS} of {NULLS} runs at most", f"in {false}", false <= ALARMS),
            notes=(*predictions.notes, f"names are tested in {half:,} rows in which they were not found"),
        )  # fmt: skip


def tell(known: Described, frame: pd.DataFrame) -> str:
    """The names that are confirmed in a sentence, without those of nearly the same molecules."""
    sure, shown = frame[frame["q"] < Q], list[int]()
    words = []
    for row in sure.itertuples():
        m = known.names.index(row.name)
        if any(known.alike(m, other) > 0.5 for other in shown) or len(shown) == 3:
            continue
        shown.append(m)
        what = f"{row.words} ({row.name})" if row.words else row.name
        rates = f"{row.wrong:.0%} of {row.rows} rows are {row.error}, {row.others:.0%} of the others"
        words.append(f"{what}: {rates}, q = {row.q:.2g}")
    if words:
        return f"It fails on {'; '.join(words)}."
    nearest = f"; the nearest to it is {frame['name'].iloc[0]} (q = {frame['q'].iloc[0]:.2g})" if len(frame) else ""
    return f"No group of molecules is confirmed on which it fails more often than on others of the class{nearest}."

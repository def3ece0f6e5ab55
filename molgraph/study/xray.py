"""Measure how far the test molecules of each split lie from the training molecules, before any training."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Literal

import numpy as np

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.base.table import Target
from molgraph.data.splits import split_table
from molgraph.data.table import Table
from molgraph.evaluate.split_decisions import DecisionRows, decision_rows
from molgraph.evaluate.split_report import SPLITTERS, Xray, xray
from molgraph.evaluate.split_summary import SHIFTED, find_shifts
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

SHARES = (0.8, 0.1, 0.1)
CHANCE = 4.0  # standard errors that a shift by chance stays within
LEVEL, RARE = 0.05, 0.005  # p-values of a shift, and of one where there is none


@register(
    "study",
    "xray",
    summary="what each split of a table asks: distances, shifts of labels, leaks; by=ridge: shifts that matter",
    paper="Zhao et al. 2022, ICLR",
    systems=(
        SystemCard(
            "h-divergence",
            left_out="densities and generated samples as decisions; log loss",
            off="xray",
            beside=("the divergence of permuted rows", "shifts of labels alone"),
            command="molgraph study 'xray(by=ridge)' builtin:chembl2321810 -o xray.csv",
            modules=("molgraph.evaluate.h_divergence", "molgraph.evaluate.split_decisions"),
        ),
    ),
)
class XrayStudy(Study):
    """Distances of test molecules to training, shifts of labels, leaks and classes of several splits of one table.

    ``molgraph bench xray`` has more options. Controls: a planted label, the length of a row's SMILES, is far off
    in a test part that holds its largest values, and not in one that is drawn at random.

    With ``by`` each split has an H-divergence of training from test rows (Zhao et al. 2022, ICLR): what one decision
    for both parts costs above one for each, as a share of the variance of the labels. ``ridge`` decides by a
    ridge regression of the first target on principal components of fingerprints, so that molecules that differ and
    follow the same rule shift nothing; ``mean`` by the labels' mean alone. ``h`` stands beside its mean over permuted
    rows and the p-value. Controls are then a label whose rule is turned round in half of the rows, drawn at random,
    and the label as it is in the same halves.

    Args:
        splits: names of splits, joined by ``+``; molgraph's own and the field's if empty.
        by: the decision whose shift is measured; none if empty.
        components: principal components that ``ridge`` reads.

    Raises:
        LabelError: ``by`` of a table without a target that varies.
    """

    small = {"splits": "random+scaffold/balanced"}  # noqa: RUF012 # settings of trials

    def __init__(
        self,
        *,
        splits: str = "",
        by: Literal["", "ridge", "mean"] = "",
        components: Annotated[int, Range(1, 256)] = 16,
    ) -> None:
        self.splits, self.by, self.components = splits, by, components

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Look through the splits."""
        table = subject.table()
        asked = self.splits.split("+") if self.splits else SPLITTERS
        report = xray(table, asked, seed=seed, title=subject.data if isinstance(subject.data, str) else None)
        middle = {part.name: float(np.median(part.distance)) for part in report.parts if part.distance is not None}
        far, near = max(middle, key=middle.__getitem__), min(middle, key=middle.__getitem__)
        sentence = f"{far} tests farthest from training (median distance {middle[far]:.2f})"
        sentence += f", {near} nearest ({middle[near]:.2f})." if far != near else "."
        if self.by:
            return self._by_decision(report, decision_rows(table, self.by, self.components, seed=seed), seed)
        planted = _planted(table)
        order = np.argsort(planted.y[:, 0], kind="stable")  # type: ignore[index]
        column = np.full(len(table), "train", dtype=object)
        column[order[-max(len(order) // 10, 1) :]] = "test"
        top, chance = (
            split_table(planted, "column", column=column.tolist(), quiet=True),
            split_table(planted, "random", fractions=SHARES, seed=seed, quiet=True),
        )
        high, low = (find_shifts(planted, split)[0].size for split in (top, chance))
        limit = CHANCE / np.sqrt(max(len(chance.test), 1))
        return Findings(
            f"X-ray of {report.title}, {report.rows}", sentence, report.to_frame(),
            Control("longest SMILES as the test part", f"a shift above {SHIFTED:g}", f"{high:+.2f}", high > SHIFTED),
            Control("a random test part", f"a shift within {limit:.2f}", f"{low:+.2f}", abs(low) < limit),
            report.picture,
        )  # fmt: skip

    def _by_decision(self, found: Xray, decided: DecisionRows, seed: int) -> Findings:
        """The same with the divergence of each split's test rows, and controls of it."""
        frame, shown = found.to_frame(), {}
        for part in found.parts:
            shift = None if part.split is None else decided.of_split(part.split, seed=seed)
            if shift is not None:
                shown[part.name] = shift
        for place, (column, name) in enumerate((("h", "value"), ("h_chance", "chance"), ("h_p", "p")), 1):
            frame.insert(place, column, [getattr(shown.get(part.name), name, np.nan) for part in found.parts])
        most = sorted((name for name in shown if shown[name].p <= LEVEL), key=lambda name: -shown[name].excess)
        what = f"{self.by} of {decided.target}"
        words = f"No split shifts what decides {decided.target}, by {self.by}."
        if most:
            first = shown[most[0]]
            words = (
                f"{most[0]} shifts the {what} most: one for training and test costs {first.value:.1%} of the variance "
                f"above one for each, {first.chance:.1%} by chance (p = {first.p:.3f}); "
                f"{len(most)} of {len(shown)} splits shift it."
            )
        rng = generator(seed, "halves")
        halves = np.array_split(rng.permutation(decided.rows), 2)
        true = decided.x[:, :1] if decided.x.shape[1] else np.ones((len(decided.rows), 1))
        label = true + 0.5 * rng.standard_normal(true.shape)
        turned = np.where(np.isin(decided.rows, halves[1])[:, None], -label, label)
        planted, none = (decided._replace(y=y).compare(*halves, seed=seed) for y in (turned, label))
        assert planted is not None and none is not None, "ten rows or more"
        return Findings(
            f"X-ray of {found.title}, {found.rows}, by the {what}", words, frame,
            Control("a rule turned round in half of the rows", f"p <= {LEVEL}", f"{planted.p:.3f}", planted.p <= LEVEL),
            Control("the rule as it is in the same halves", f"p > {RARE}", f"{none.p:.3f}", none.p > RARE),
            found.picture,
        )  # fmt: skip


def _planted(table: Table) -> Table:
    """The table with the length of each row's SMILES as its one target."""
    lengths = np.array([[float(len(text))] for text in table.smiles])
    return replace(table, targets=(Target("length"),), y=lengths, packed={}, weights=None)

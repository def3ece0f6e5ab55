"""Measure how far the test molecules of each split lie from the training molecules, before any training."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.base.registry import register
from molgraph.base.table import Target
from molgraph.data.splits import split_table
from molgraph.data.table import Table
from molgraph.evaluate.split_report import SPLITTERS, xray
from molgraph.evaluate.split_summary import SHIFTED, find_shifts
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject

SHARES = (0.8, 0.1, 0.1)
CHANCE = 4.0  # standard errors that a shift by chance stays within


@register("study", "xray", summary="what each split of a table asks: distances, shifts of labels, leaks")
class XrayStudy(Study):
    """Distances of test molecules to training, shifts of labels, leaks and classes of several splits of one table.

    ``molgraph bench xray`` has more options. Controls: a planted label, the length of a row's SMILES, is far off
    in a test part that holds its largest values, and not in one that is drawn at random.

    Args:
        splits: names of splits, joined by ``+``; molgraph's own and the field's if empty.
    """

    small = {"splits": "random+scaffold/balanced"}  # noqa: RUF012 # settings of trials

    def __init__(self, *, splits: str = "") -> None:
        self.splits = splits

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Look through the splits."""
        table = subject.table()
        asked = self.splits.split("+") if self.splits else SPLITTERS
        found = xray(table, asked, seed=seed, title=subject.data if isinstance(subject.data, str) else None)
        middle = {part.name: float(np.median(part.distance)) for part in found.parts if part.distance is not None}
        far, near = max(middle, key=middle.__getitem__), min(middle, key=middle.__getitem__)
        sentence = f"{far} tests farthest from training (median distance {middle[far]:.2f})"
        sentence += f", {near} nearest ({middle[near]:.2f})." if far != near else "."
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
            f"X-ray of {found.title}, {found.rows}", sentence, found.to_frame(),
            Control("longest SMILES as the test part", f"a shift above {SHIFTED:g}", f"{high:+.2f}", high > SHIFTED),
            Control("a random test part", f"a shift within {limit:.2f}", f"{low:+.2f}", abs(low) < limit),
            found.picture,
        )  # fmt: skip


def _planted(table: Table) -> Table:
    """The table with the length of each row's SMILES as its one target."""
    lengths = np.array([[float(len(text))] for text in table.smiles])
    return replace(table, targets=(Target("length"),), y=lengths, packed={}, weights=None)

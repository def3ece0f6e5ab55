"""Hold the metrics of samples and control rows, and tell them in words, frames, Markdown and a page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base.csv_text import csv_text
from molgraph.base.paths import check_ending, write_whole
from molgraph.evaluate.generation.embeddings import EMBEDDINGS
from molgraph.evaluate.generation.measures import FIRST, MEASURES, Measure
from molgraph.evaluate.generation.sample import Sample
from molgraph.evaluate.statistics import Interval

DASH = "\N{EM DASH}"


@dataclass(frozen=True)
class Row:
    """One sample, or one control, and its metrics.

    Args:
        name: as tables call it.
        kind: ``sample`` or ``control``.
        n: how many were drawn.
        values: name of a measure -> value with its 95% interval.
    """

    name: str
    kind: str
    n: int
    values: Mapping[str, Interval]


@dataclass(frozen=True)
class GenerationReport:
    """Samples of generators beside control rows, all of one size.

    Args:
        rows: samples first, then controls.
        embedding: what Fréchet's distance is taken in.
        n: draws of each sample.
        n_reference: readable molecules of the reference; 0 where there is none.
        n_train: readable molecules that were learned from; 0 where they are not known.
        samples: what was drawn, by row.
        reference: what it was compared with.
        standardiser: what all of them went through before they were compared.
        notes: warnings to read before the numbers.
    """

    rows: tuple[Row, ...]
    embedding: str
    n: int
    n_reference: int
    n_train: int
    samples: Mapping[str, Sample]
    reference: Sample | None
    standardiser: str = "none"
    notes: tuple[str, ...] = ()

    @property
    def measures(self) -> tuple[Measure, ...]:
        """Those that some row has."""
        return tuple(measure for measure in MEASURES if any(measure.name in row.values for row in self.rows))

    def label(self, measure: Measure) -> str:
        """What tables call a measure."""
        valid = [len(sample.readable) for sample in self.samples.values()]  # uniqueness is of these
        return label_of(measure, self.embedding, min([self.n, *valid]))

    def value(self, row: str, measure: str) -> float:
        """A row's value of a measure.

        Example:
            >>> from molgraph.evaluate.generation.judge import Draws, judge_samples
            >>> judge_samples({"mine": Draws(["CCO", "CCN", "C1C"])}, halves=0).value("mine", "valid")
            0.6666666666666666
        """
        return next(entry for entry in self.rows if entry.name == row).values[measure].value

    @property
    def controls(self) -> tuple[Row, ...]:
        """The rows of trivial generators."""
        return tuple(row for row in self.rows if row.kind == "control")

    def matched(self, row: Row) -> dict[str, list[str]]:
        """Control -> labels of the measures on which it is better than a sample, or not told from it.

        A measure that nothing but copying the training set does well is no praise. Half against half is no generator,
        and has no part in it.
        """
        matches: dict[str, list[str]] = {}
        for control in self.controls[-2:]:
            for measure in self.measures:
                mine, theirs = row.values.get(measure.name), control.values.get(measure.name)
                if measure.higher is None or mine is None or theirs is None or not np.isfinite(theirs.value):
                    continue
                sign = 1 if measure.higher else -1
                ahead = sign * (mine.value - theirs.value)
                room = [abs(interval.high - interval.low) / 2 for interval in (mine, theirs)]
                if ahead <= float(np.nan_to_num(np.hypot(room[0], room[1]))):
                    matches.setdefault(control.name, []).append(self.label(measure))
        return matches

    @property
    def sentence(self) -> str:
        """What came out, in words, a sentence a sample."""
        return "\n".join(self._told(row) for row in self.rows if row.kind == "sample")

    def _told(self, row: Row) -> str:
        value = {name: row.values[name].value for name in ("valid", "unique", "novel") if name in row.values}
        share = {name: f"{part:.1%}" for name, part in value.items() if np.isfinite(part)}
        words = [f"{share[name]} {name}" for name in share]
        if (none := row.values.get("no_molecule")) and none.value:
            words.insert(1, f"{none.value:.1%} read by RDKit but no molecules")
        if "frechet" in row.values:
            others = [f"{c.name} {c.values['frechet'].value:.3g}" for c in self.controls if "frechet" in c.values]
            beside = f" (beside it: {', '.join(others)})" if others else ""
            words.append(f"Fréchet distance in {self.embedding} {row.values['frechet'].value:.3g}{beside}")
        compared = "" if self.standardiser == "none" else f"; all molecules standardised ({self.standardiser})"
        return f"{row.name}: {row.n:,} drawn, {', '.join(words)}{compared}"

    def to_frame(self) -> pd.DataFrame:
        """A row for each sample or control and measure: row, kind, n, metric, value, low, high, higher_is_better."""
        return pd.DataFrame(
            [
                (row.name, row.kind, row.n, measure.name, *row.values[measure.name], measure.higher)
                for row in self.rows
                for measure in self.measures
                if measure.name in row.values
            ],
            columns=["row", "kind", "n", "metric", "value", "low", "high", "higher_is_better"],
        )

    def table(self) -> pd.DataFrame:
        """A row a measure, a column a sample or control, as text: the value, with half its interval's width."""
        cells = {row.name: [cell_text(row.values.get(measure.name)) for measure in self.measures] for row in self.rows}
        return pd.DataFrame(cells, index=[self.label(measure) for measure in self.measures])

    def markdown(self) -> str:
        """The table as Markdown, controls in italics."""
        names = [f"*{row.name}*" if row.kind == "control" else row.name for row in self.rows]
        lines = ["| metric | better | " + " | ".join(names) + " |", "|---|---|" + "---:|" * len(names)]
        for measure, (label, cells) in zip(self.measures, self.table().iterrows(), strict=True):
            lines.append(f"| {label} | {direction(measure)} | " + " | ".join(map(str, cells)) + " |")
        return "\n".join([*self._warned("**", "**\n"), *lines, "", self.about, ""])

    def _warned(self, before: str = "", behind: str = "") -> list[str]:
        """The warnings as lines."""
        return [f"{before}Warning: {note}.{behind}" for note in self.notes]

    @property
    def about(self) -> str:
        """How the numbers were made, in words."""
        against = [
            f"against {self.n_reference:,} reference molecules" * bool(self.n_reference),
            f"{self.n_train:,} training molecules" * bool(self.n_train),
        ]
        sizes = sorted({row.n for row in self.rows} - {self.n})
        smaller = f"; controls of {' and '.join(f'{n:,}' for n in sizes)} where training has no more" if sizes else ""
        compared = (
            "molecules as written" if self.standardiser == "none" else f"molecules standardised ({self.standardiser})"
        )
        compared_with = " and ".join(filter(None, against))
        words = f"{self.n:,} draws a row {compared_with}{smaller}; {compared}; value and 95% interval."
        return words.replace("row ;", "row;")

    def save(self, path: str | Path) -> Path:
        """Write a page (.html), tables (.md), or the frame (.csv).

        Raises:
            UsageError: another ending.
        """
        path = Path(path)
        check_ending(path, ".html", ".md", ".csv")
        if path.suffix == ".html":
            return write_whole(path, self._page())
        return write_whole(path, self.markdown() if path.suffix == ".md" else csv_text(self.to_frame()))

    def _page(self) -> str:
        from molgraph.evaluate.generation.report_page import page  # with matplotlib, which few runs need

        pairs = [(row.name, self.matched(row)) for row in self.rows if row.kind == "sample"]
        rows = [
            (self.label(m), direction(m), [(row.kind, cell_text(row.values.get(m.name))) for row in self.rows])
            for m in self.measures
        ]
        return page(
            self.samples,
            self.reference,
            title=", ".join(self.samples),
            sentences=self.sentence.splitlines(),
            notes=self._warned(),
            matched=[(name, list(matches.items())) for name, matches in pairs if matches],
            names=[(row.name, row.kind, row.n) for row in self.rows],
            rows=rows,
            about=self.about,
            embedding=EMBEDDINGS[self.embedding].summary,
        )

    def __repr__(self) -> str:
        return "\n".join([self.sentence, *self._warned(), self.table().to_string(), self.about])

    def _repr_html_(self) -> str:
        warned = "".join(self._warned("<p><b>", "</b></p>"))
        return f"<p>{self.sentence}</p>{warned}{self.table().to_html(border=0)}<p>{self.about}</p>"


def label_of(measure: Measure, embedding: str, n: int = FIRST) -> str:
    """What tables call a measure: Fréchet's distance with its embedding, uniqueness with the number of valid draws."""
    if measure.name == f"unique@{FIRST}" and n < FIRST:
        return f"unique@{n:,}"
    return f"{measure.label} ({embedding})" if measure.name == "frechet" else measure.label


def cell_text(found: Interval | None) -> str:
    """A value and the half-width of its interval, to the digits that it stands for."""
    if found is None or not np.isfinite(found.value):
        return DASH
    half = (found.high - found.low) / 2
    digits = 3 if not np.isfinite(half) or half <= 0 else int(np.clip(1 - np.floor(np.log10(half)), 1, 4))
    room = f" ±{half:.{digits}f}" if half > 0 else ""  # NaN, and shares of 0 and 1, have none
    return f"{found.value:.{digits}f}{room}"


def direction(measure: Measure) -> str:
    """The direction in which a measure is better."""
    return "" if measure.higher is None else "\N{UPWARDS ARROW}" if measure.higher else "\N{DOWNWARDS ARROW}"

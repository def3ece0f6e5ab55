"""Compare the splits of a table before any training: distances, shifts of labels, leaks, classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import AmbiguousColumnError, DataError, MissingOptionError
from molgraph.base.paths import check_ending, write_whole
from molgraph.base.progress import track
from molgraph.base.registry import full_name, get
from molgraph.base.seeds import generator
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.datasets import Dataset
from molgraph.data.read import read_table
from molgraph.data.reading.roles import Targets
from molgraph.data.splits import Split, one_class, split_table
from molgraph.data.splits.split import PARTS
from molgraph.data.splits.unused_rows import RowCount, unused_rows
from molgraph.evaluate.split_summary import SplitXray, find_shifts

SPLITTERS = (
    "random",
    "scaffold/balanced",
    "scaffold/generic",
    "cluster/butina",
    "scaffold/chemprop",
    "scaffold/chemprop1",
    "scaffold/deepchem",
    "scaffold/gem-chiral",
)
MOST_TESTED = 2_000  # test rows whose distance is measured; more change no figure that a reader can see


@dataclass(frozen=True)
class Xray:
    """What a table's splits ask, one entry a split."""

    title: str  # what the table is called
    n_rows: int  # its rows
    targets: tuple[str, ...]  # names of its row-level targets
    parts: tuple[SplitXray, ...]  # one entry a split, in the order asked for
    sampled: bool = False  # whether distances are those of 2,000 test rows drawn by the seed
    left_out: Mapping[str, int] = field(default_factory=dict)  # why rows are in no part of any split -> how many are

    @property
    def rows(self) -> RowCount:
        """Its rows, and those that no split can use."""
        return RowCount(self.n_rows, self.left_out)

    def unlike(self, part: SplitXray) -> str:
        """What one split leaves out, in a sentence, where that is not what all of them do."""
        if part.split is None or dict(part.left_out) == dict(self.left_out):
            return ""
        return f"It uses {RowCount(self.n_rows, part.left_out)}."

    def to_frame(self) -> pd.DataFrame:
        """One row a split: sizes, what is left out and why, groups, leaks, distances, the largest shift, one class."""
        return pd.DataFrame([part.row() for part in self.parts])

    def shifts_frame(self) -> pd.DataFrame:
        """One row a split and target: label means or rates of the parts, their shift, Kolmogorov-Smirnov."""
        columns = ["split", "target", "kind", *PARTS, *(f"n_{part}" for part in PARTS), "shift", "ks", "p"]
        rows = [{"split": part.name} | shift.row() for part in self.parts for shift in part.shifts]
        return pd.DataFrame(rows, columns=columns)

    def text(self) -> str:
        """What each split asks and how far its test is from training, two lines or three a split."""
        lines = []
        for part in self.parts:
            lines.append(f"{part.name}: {'' if part.split is None else _sizes(part.split)}".rstrip(": "))
            lines += [f"  {line}" for line in (part.asks, part.verdict(), self.unlike(part)) if line]
        return "\n".join(lines)

    def save(self, path: str | Path) -> Path:
        """Write a picture (.png, .svg) or a page that needs nothing else (.html)."""
        path = Path(path)
        check_ending(path, ".html", ".png", ".svg")
        return write_whole(path, self._page() if path.suffix == ".html" else self.picture(path.suffix[1:]))

    def __repr__(self) -> str:
        return f"X-ray of {self.title}, {self.rows}\n{self.text()}"

    def _repr_html_(self) -> str:
        return f"<p><b>{escape(self.title)}</b>, {escape(str(self.rows))}</p>{self.picture('svg').decode()}"

    def picture(self, form: str) -> bytes:
        """The histograms of all splits, as ``png`` or ``svg``."""
        from molgraph.evaluate.report_splits import draw_xray  # with matplotlib, which few runs need

        return draw_xray(self.parts, self.targets, f"{self.title}, {self.n_rows:,} rows", form)

    def _page(self) -> str:
        from molgraph.evaluate.report_splits import xray_html  # with matplotlib

        frame = self.to_frame().to_dict("records")
        rows = [row | {"unlike": self.unlike(part)} for row, part in zip(frame, self.parts, strict=True)]
        shifts, heading = self.shifts_frame().to_dict("records"), f"{self.title}, {self.n_rows:,} rows"
        about = {"title": self.title, "counts": str(self.rows), "targets": self.targets, "sampled": self.sampled}
        return xray_html(self.parts, shifts, heading, rows=rows, **about)


def xray(
    data: Any,
    splits: Iterable[str | Split] | Mapping[str, str | Split] | None = None,
    *,
    smiles: str | None = None,
    targets: Targets = None,
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1),
    seed: int = 0,
    title: str | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Xray:
    """Look through a table's splits before any training.

    Distances are those of the nearest training molecule by Morgan fingerprints (radius 2, 2,048 bits), 1 - Tanimoto.

    Args:
        data: rows of one molecule column: a table, a dataset as ``load_dataset`` gives it, or anything else that
            ``read_table`` reads, such as a path, a frame, or ``dataset:esol`` (with its card's targets).
        splits: splitters by name, splits that were made for this table, or a mapping of labels to either; by default
            molgraph's own splitters and the field's.
        smiles: the column of SMILES; found by its name where it is not given.
        targets: labels, for their shifts and classes.
        fractions: train, valid and test of the splitters.
        seed: of the splitters, and of the draw of test rows where there are more than 2,000.
        title: what the table is called; the file's or dataset's name where it has one.
        settings: a splitter's name to its own settings.

    Raises:
        UsageError: an unknown splitter.
        DataError: a table without a molecule column, or none that can be read.
        StorageError: a file that is not there.

    Example:
        >>> found = xray("builtin:chembl2321810", ["random", "scaffold/deepchem"])
        >>> found.title, found.to_frame()["split"].tolist()
        ('builtin:chembl2321810', ['random', 'scaffold/deepchem'])
    """
    title = title or _title(data)
    table = read_table(data.table if isinstance(data, Dataset) else data, smiles=smiles, targets=targets)
    if [e.kind for e in table.entities] != ["molecule"]:
        raise AmbiguousColumnError(
            "an X-ray needs one molecule column", hint="tables of graphs and pairs are divided by `molgraph data split`"
        )
    asked = dict(splits) if isinstance(splits, Mapping) else {_label(spec): spec for spec in splits or SPLITTERS}
    for spec in asked.values():  # what is wrong with the question is said before anything is computed
        if isinstance(spec, Split):
            spec.check(table)
        else:
            get("split", spec)
    prints = morgan(list(table.smiles))
    parts, sampled = [], False
    for label, spec in track(list(asked.items()), label="splits"):
        splitter = get("split", spec.splitter if isinstance(spec, Split) else spec)
        try:
            known: dict[str, Any] = {"fractions": fractions, "seed": seed, "quiet": True}
            split = (
                spec if isinstance(spec, Split) else split_table(table, spec, **known, **(settings or {}).get(spec, {}))
            )
        except DataError as why:
            parts.append(SplitXray(label, None, splitter.asks, problem=str(why).splitlines()[0]))
            continue
        test, train = (rows[prints.ok[rows]] for rows in (split.test, split.train))
        if len(test) > MOST_TESTED:
            sampled = True
            test = np.sort(generator(seed, "xray").choice(test, MOST_TESTED, replace=False))
        distance = 1 - find_nearest(prints.x[test], prints.x[train], label=label).similarity
        known = {"one_class": one_class(table, split), "left_out": unused_rows(table, [split])}
        parts.append(SplitXray(label, split, splitter.asks, distance, find_shifts(table, split), **known))
    split_list = [part.split for part in parts if part.split is not None]
    if not split_list:
        if not parts:
            raise MissingOptionError("no split asked")
        raise DataError(f"no split can divide this table: {parts[0].problem}")
    left_out = unused_rows(table, split_list)
    return Xray(title, len(table), tuple(t.name for t in table.row_targets), tuple(parts), sampled, left_out)


def _title(data: Any) -> str:
    return data.name if isinstance(data, Dataset) else Path(data).name if isinstance(data, str | Path) else "table"


def _label(each: str | Split) -> str:
    return each.splitter if isinstance(each, Split) else full_name("split", each)


def _sizes(split: Split) -> str:
    left = f", {len(split.left_out):,} left out" if split.left_out else ""
    groups = "" if split.groups is None else f", {split.groups:,} groups"
    return f"{len(split.train):,} train, {len(split.valid):,} valid, {len(split.test):,} test{left}{groups}"

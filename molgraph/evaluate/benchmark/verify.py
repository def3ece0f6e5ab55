"""Verify a benchmark's folder against its manifests, splits and datasets, and compare it with a published record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.errors import MolgraphError
from molgraph.base.paths import missing_file
from molgraph.data.content import content_hash
from molgraph.data.splits import Split
from molgraph.data.splits.split import PARTS, row_contents, split_hash
from molgraph.evaluate.benchmark.cells import Cell, cell_key, file_of_split
from molgraph.evaluate.benchmark.plan import PLAN, DatasetPlan
from molgraph.evaluate.benchmark.run_folder import SCORES, Record, Records, read_records
from molgraph.evaluate.benchmark.scoring import read_scores, score_records, stored_scores
from molgraph.evaluate.benchmark.store import read_manifest
from molgraph.evaluate.generation.draws import read_draws

SHOWN = 50  # faults that are printed
SAME = 1e-6  # of a score's size: what processors may make of the same computation
CELL = ["dataset", "split", "repeat", "fold", "method", "seed"]  # what names a cell, in scores too
SCORE = [*CELL, "target", "metric"]
SHA256 = "predictions_sha256"
Sound = dict[tuple[str, str, int, int], tuple[np.ndarray, np.ndarray | None]]  # dataset and part -> test rows, their y


@dataclass(frozen=True, repr=False)
class Verified:
    """What a check found; cells that are not there are no fault, as a run may be unfinished."""

    cells: int  # that are as they were written: no fault is theirs, nor their scores'
    faults: tuple[tuple[str, str], ...]  # where, and what is wrong
    scores: pd.DataFrame  # made anew from the predictions
    there: int  # cells that were computed, damaged ones too
    wanted: int  # cells that the plans ask for
    begun: int  # datasets that have a plan
    datasets: int  # that the recipe names
    whole: tuple[Record, ...] = ()  # cells without a fault of their own

    @property
    def ok(self) -> bool:
        """Whether there is something, and nothing is wrong."""
        return self.there > 0 and not self.faults

    def __repr__(self) -> str:
        lines = [f"{where}: {fault}" for where, fault in self.faults]
        lines[SHOWN:] = [f"and {len(lines) - SHOWN:,} more"] * (len(lines) > SHOWN)
        of = "" if self.begun == self.datasets else f" of {self.begun} of {self.datasets} datasets"
        counts = [f"{self.there:,} of {self.wanted:,} cells{of} are there"] if self.there < self.wanted or of else []
        counts += [f"{self.cells:,} cells are as they were written, {len(self.scores):,} scores made anew"]
        if not self.there:
            counts = [f"there is nothing to verify: none of {self.wanted:,} cells{of} is there"]
        return "\n".join([*lines, "; ".join(counts)])


def verify_records(out: str | Path) -> Verified:
    """Hash data, splits and predictions once more, compare predictions' rows and measured values, score all anew."""
    records = read_records(out)
    faults, sound, stored = list[tuple[str, str]](), Sound(), None
    try:
        stored = stored_scores(records.out)
    except (OSError, ValueError, KeyError) as error:
        faults.append((SCORES, f"it cannot be read: {error}"))
    scored = set() if stored is None else set(stored["dataset"])
    for name in records.recipe.datasets:
        if name in records.problems:
            faults += _check_dataset(records, records.problems[name], sound)
        elif name in scored or any((records.out / folder / name).is_dir() for folder in ("cells", "splits")):
            faults.append((name, f"its plan is gone ({PLAN}/{name}.json): run the recipe again"))
    there, whole = [cell for cell in records.cells if cell.folder(records.out).is_dir()], []
    for cell in progress.track(there, label="verifying"):
        issues: list[str] = []
        try:
            manifest = read_manifest(records.out, cell)
            for fault in _check_cell(records, cell, manifest, sound):
                issues.append(fault)  # one by one, as its files may turn out to be damaged
        except MolgraphError as error:
            issues.append(error.message)
        faults += [(str(cell), fault) for fault in issues]
        if not issues:
            whole.append(Record(cell, manifest or {}))
    scores = score_records(records, whole)  # what is damaged has no scores
    if stored is not None:
        faults += _check_scores(records, there, scores, stored)
    spoilt = {where for where, _ in faults}
    good = sum(str(c) not in spoilt and (c.dataset, *c.part) in sound for c, _ in whole)
    counts = (len(there), records.wanted, len(records.problems), len(records.recipe.datasets))
    return Verified(good, tuple(faults), scores, *counts, tuple(whole))


def _check_dataset(records: Records, problem: DatasetPlan, sound: Sound) -> Iterator[tuple[str, str]]:
    """What is wrong with a dataset and its splits; the test rows of those that are sound are added."""
    name = problem.dataset
    if problem.refused:
        yield name, f"refused: {problem.refused}"
        return
    try:
        table = records.table(name)
    except MolgraphError as error:
        yield name, error.message
        return
    if changed := (digest := content_hash(table)) != problem.data_hash:
        yield name, f"the dataset's hash is {digest}, the plan has {problem.data_hash}"
    contents = row_contents(table)
    for part, stated in problem.split_hash.items():
        file = file_of_split(records.out, name, *part)
        try:
            split = Split.load(file)
        except MolgraphError as error:
            yield str(file), error.message
            continue
        settings = {key: getattr(split, key) for key in ("seed", "fractions", "params")} | {"recipe": split.splitter}
        digest = split_hash(contents, {key: getattr(split, key) for key in PARTS}, settings)
        if digest != split.hash:
            yield str(file), f"the split's rows give the hash {digest}, the file has {split.hash}"
        elif digest != stated:
            yield str(file), f"the split's hash is {digest}, the plan has {stated}"
        elif not changed:
            sound[name, *part] = split.test, None if table.y is None else table.y[split.test]


def _check_cell(records: Records, cell: Cell, manifest: Mapping[str, Any] | None, sound: Sound) -> Iterator[str]:
    """What is wrong with one cell; nothing where it is as it was written."""
    if manifest is None:
        yield "its manifest is gone"
        return
    problem = records.problems[cell.dataset]
    method = next((m for m in records.recipe.method if m.row == cell.method), None)
    stated = problem.split_hash.get(cell.part, "")
    if manifest["data_hash"] != problem.data_hash or manifest["split_hash"] != stated:
        yield "its manifest has another dataset's or split's hash than the plan"
    if method is None:
        yield "the recipe has no method of its name"
    elif method.kind != "external":
        resolved, version = manifest.get("resolved", {}), manifest.get("versions", {}).get("molgraph", "")
        drawn = records.recipe.generation if records.recipe.generates else None
        key = cell_key(problem.data_hash, stated, method, cell.seed, resolved, version, drawn)
        if cell.key != key or manifest.get("params") != method.params:
            yield "its key is not that of the recipe's data, split, method, parameters and seed"
    if manifest["status"] != "ok":
        return
    if not records.path(cell).is_file():
        yield "its predictions are gone"
    elif records.recipe.generates:
        read_draws(records.path(cell), str(manifest["predictions_sha256"]))
    else:
        predicted = records.predictions(cell, manifest)
        rows, y = sound.get((cell.dataset, *cell.part), (predicted.rows, None))
        names, columns = {t.name for t in problem.targets}, {name for t in problem.targets for name in t.columns}
        if not names <= {*predicted.y} or not columns <= {*predicted.p}:
            yield "its predictions lack a target's column"
        elif not np.array_equal(predicted.rows, rows):
            yield "its rows are not the split's test rows"
        elif y is not None and not np.array_equal([predicted.y[t.name] for t in problem.targets], y.T, equal_nan=True):
            yield "its measured values are not the dataset's"


def _check_scores(
    records: Records, there: list[Cell], scores: pd.DataFrame, stored: pd.DataFrame
) -> Iterator[tuple[str, str]]:
    """Stored scores of cells that are not there, or that differ from those made anew."""
    both = scores.merge(stored, how="outer", on=SCORE, suffixes=("", "_stored"), indicator=True)
    lost = both.loc[both["_merge"] == "right_only", CELL].drop_duplicates()
    known = {str(cell) for cell in there}
    for key in lost.itertuples(index=False, name=None):
        begun = key[0] in records.problems or key[0] not in records.recipe.datasets
        if begun and _name(key) not in known:
            yield _name(key), f"{SCORES} has rows of it, and the cell is not there: run the recipe again"
    values, before = both["value"], both["value_stored"]
    changed = (both["_merge"] == "both") & (values != before) & (values.notna() | before.notna())
    for row in both[changed].to_dict("records"):
        words = f"scores {row['value']!r}, {SCORES} has {row['value_stored']!r}"
        yield _name(row[name] for name in CELL), f"{row['target']}, {row['metric']}: {words}"


def _name(values: Iterable[Any]) -> str:
    """What the cell with these values of ``CELL`` is called."""
    return str(Cell(**dict(zip(CELL, values, strict=True)), key=""))


def compare_with_record(found: Verified, record: str | Path) -> tuple[str, bool]:
    """Compare the sound cells of a run with those of a record: the result in a line, and if scores of some agree."""
    path, columns = Path(record) / f"{SCORES}.gz", [*CELL, SHA256]
    if not path.is_file():
        raise missing_file(path, "record's file of scores")
    theirs = read_scores(path).dropna(subset=SHA256)  # cells that failed have no predictions
    ours = pd.DataFrame([vars(c) | {SHA256: m[SHA256]} for c, m in found.whole], columns=columns)
    cells = ours.dropna().merge(theirs[columns].drop_duplicates(), "outer", CELL, indicator=True)
    counts, both = cells["_merge"].value_counts(), cells[cells["_merge"] == "both"]
    hashes = ["data_hash", "split_hash"]
    stood = found.scores.merge(theirs, on=SCORE)[[f"{name}_{side}" for name in hashes for side in "xy"]]
    if other := [name for name in hashes if (stood[f"{name}_x"] != stood[f"{name}_y"]).any()]:
        return f"{path.parent.name} stands on other rows or folds ({other[0]}): nothing can be compared", False
    differ = both[both[f"{SHA256}_x"] != both[f"{SHA256}_y"]]
    pairs = found.scores.merge(theirs, on=SCORE)[["value_x", "value_y"]]
    apart = (pairs["value_x"] - pairs["value_y"]).abs() / pairs.abs().max(axis=1)
    most = apart.mask(pairs.isna().sum(axis=1) == 1, np.inf).max()
    words = f"{len(both) - len(differ):,} cells have the same bytes as in {path.parent.name}, {len(differ):,} differ"
    if len(differ):
        named = [_name(key) for key in differ[CELL].head(3).itertuples(index=False, name=None)]
        words += f" ({', '.join(named)}{', ...' * (len(differ) > 3)}; scores by at most {most:.1g} of their size)"
    words += f", {counts['left_only']:,} are here only, {counts['right_only']:,} there only"
    return words, len(both) > 0 and not most > SAME

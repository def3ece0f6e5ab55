"""Plan the run of a benchmark: write its datasets, frozen splits and cells to disk."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError, MolgraphError, StorageError, UsageError, nearest
from molgraph.base.paths import atomic_write
from molgraph.base.registry import get
from molgraph.base.toml_config import parse_json
from molgraph.data.cards import card
from molgraph.data.content import content_hash as hash_of
from molgraph.data.datasets import load_dataset
from molgraph.data.splits import Split, repeated_kfold, split_table
from molgraph.data.splits.split import content_hash, row_contents
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import Cell, cell_key, file_of_split
from molgraph.evaluate.benchmark.own_split import settings_of
from molgraph.evaluate.benchmark.recipe import BenchRecipe, BenchSplit, Quoted
from molgraph.evaluate.benchmark.table_parquet import target_of, write_table
from molgraph.evaluate.benchmark.unused_rows import unused_rows
from molgraph.evaluate.metrics import default_metrics, get_metric

logger = logging.getLogger("molgraph")
WORK, PLAN = ".work", "plan"


@dataclass(frozen=True)
class DatasetPlan:
    """One dataset of a benchmark, as its plan file keeps it.

    Args:
        dataset: its name, with its edition.
        edition: ``raw`` or a curated one.
        data_hash: of its content.
        rows: how many.
        targets: what is predicted.
        metrics: target -> metrics, the one that leads first.
        refused: why it cannot be used, else empty.
        split_hash: (split label, repeat, fold) -> the frozen split's hash.
        cells: everything that the recipe asks for on it.
        left_out: reason -> rows that are in no part of any of its splits, since no method can use them.
        refused_splits: split label -> why that split cannot divide it, where others can; it has no cells under it.
    """

    dataset: str
    edition: str = "raw"
    data_hash: str = ""
    rows: int = 0
    targets: tuple[Target, ...] = ()
    metrics: Mapping[str, tuple[str, ...]] = None  # type: ignore[assignment]
    refused: str = ""
    split_hash: Mapping[tuple[str, int, int], str] = None  # type: ignore[assignment]
    cells: tuple[Cell, ...] = ()
    left_out: Mapping[str, int] = field(default_factory=dict)
    refused_splits: Mapping[str, str] = field(default_factory=dict)

    def save(self, out: Path) -> None:
        """Write the plan file."""
        raw = asdict(self) | {"metrics": dict(self.metrics or {})}
        raw["split_hash"] = [[*key, value] for key, value in (self.split_hash or {}).items()]
        path = out / PLAN / f"{self.dataset}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, "w") as file:
            json.dump(raw, file, indent=1)

    @classmethod
    def load(cls, path: Path) -> DatasetPlan:
        """Read a plan file."""
        try:
            raw = parse_json(path.read_text(encoding="utf-8"))
            raw["targets"] = tuple(target_of(t) for t in raw["targets"])
            raw["metrics"] = {name: tuple(each) for name, each in raw["metrics"].items()}
            raw["split_hash"] = {(a, b, c): value for a, b, c, value in raw["split_hash"]}
            raw["cells"] = tuple(Cell(**cell) for cell in raw["cells"])
            return cls(**raw)
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{path} is no plan of a benchmark: {error}", hint="run the recipe again") from error

    @property
    def refusals(self) -> tuple[str, ...]:
        """What was refused of it, a line each."""
        whole = (f"{self.dataset} is refused: {self.refused}",) if self.refused else ()
        return whole + tuple(f"{self.dataset}, {label} is refused: {why}" for label, why in self.refused_splits.items())

    @property
    def unused(self) -> str:
        """Which of its rows no method is given, in one line; empty where there are none.

        Example:
            >>> DatasetPlan("bbbp", rows=2050, left_out={"cannot be read": 11}).unused
            'bbbp: 11 of 2,050 rows cannot be used: 11 cannot be read'
        """
        reasons = ", ".join(f"{n:,} {reason}" for reason, n in self.left_out.items())
        lost = sum(self.left_out.values())
        return f"{self.dataset}: {lost:,} of {self.rows:,} rows cannot be used: {reasons}" if lost else ""

    def table_file(self, out: Path) -> Path:
        """Where its table lies for the cells' processes."""
        return out / WORK / "tables" / f"{self.dataset}-{self.data_hash[:16]}.parquet"


def check_recipe(recipe: BenchRecipe, factory: Any, tables: Mapping[str, Table]) -> None:
    """Refuse what no run can do, before anything runs: unknown datasets, splits, metrics, methods and parameters.

    Raises:
        UsageError: with the nearest known names.
    """

    for name in recipe.datasets:
        if name not in tables:
            try:
                known, edition = card(name), name.partition("@")[2]
            except UsageError as error:
                hint = f"{error.hint}; a file of your own is said with a [[table]] of that name in the recipe"
                raise UsageError(error.message, hint=hint) from None
            if edition not in ("", "raw", *known.edition):
                raise UsageError(f"{known.name} has no edition {edition!r}", hint=f"it has: {', '.join(known.edition)}")
    for split in recipe.split:
        known_split = get("split", split.recipe)
        known_split.settings(split.params)
        if split.folds is not None and known_split.group is None and known_split.own_folds is None:
            raise UsageError(f"the split {split.recipe!r} has no folds", hint="give it fractions and seeds")
    for metric in (*recipe.metrics, *(t.metric for t in recipe.table if t.metric)):
        get_metric(metric)
    for quoted in recipe.quoted:
        _check_quoted(recipe, quoted)
    for method in recipe.method:
        made = factory(method.name, **method.params)
        if method.search is not None and not made.space():
            raise UsageError(f"{method.name} has no parameters to search", hint="leave its search out")


def _check_quoted(recipe: BenchRecipe, quoted: Quoted) -> None:
    """Refuse a quoted number that no board of the recipe could show."""
    splits = [split.name for split in recipe.split_of(quoted.dataset)]
    for what, name, known in (("dataset", quoted.dataset, recipe.datasets), ("split", quoted.split, splits)):
        if name not in known:
            of = "" if what == "dataset" else f" of {quoted.dataset}"
            raise UsageError(
                f"a [[quoted]] names the {what} {name!r}, which is none{of} in the recipe", hint=nearest(name, known)
            )
    get_metric(quoted.metric)
    if recipe.metrics and quoted.metric not in recipe.metrics:
        raise UsageError(
            f"a [[quoted]] names the metric {quoted.metric!r}, which is none of the recipe's",
            hint=nearest(quoted.metric, recipe.metrics),
        )


def prepare(recipe: BenchRecipe, out: Path, name: str, table: Table | None, *, write: bool = True) -> DatasetPlan:
    """Load a dataset, freeze its splits, and list its cells; what stands there already is used again.

    Args:
        recipe: the benchmark.
        out: its folder.
        name: the dataset.
        table: its rows, where they are at hand; else it is loaded by its card.
        write: False leaves the disk as it is.

    Returns:
        The problem; ``refused`` says why where it cannot be used, such as a hash that is not the card's. A split that
        cannot divide it is refused by itself, unless all are.

    Raises:
        StorageError: the folder cannot be written.
    """
    try:
        if table is None:
            loaded = load_dataset(name)
            table, digest, edition, leading = loaded.table, loaded.hash, loaded.edition, loaded.card.metric
        else:
            digest, edition = hash_of(table), "own"
            leading = next((t.metric for t in recipe.table if t.name == name), "")
            if not table.targets:
                raise DataError(f"{name} has no targets: read its table with them, as read_table(file, targets=[...])")
        if table.packed:
            raise DataError(f"{name} has targets of atoms or bonds", hint="benchmarks take targets of whole rows")
        if not table.row_targets or table.y is None:
            raise DataError(f"{name} has no targets", hint="it is a set to generate from: leave it out")
        metrics = metrics_of(recipe, table.row_targets, leading, pairs=len(table.entities) > 1)
        problem = DatasetPlan(name, edition, digest, len(table), table.row_targets, metrics)
    except MolgraphError as error:
        return DatasetPlan(name, refused=_why(error), metrics={}, split_hash={})
    try:
        if write and not problem.table_file(out).exists():
            problem.table_file(out).parent.mkdir(parents=True, exist_ok=True)
            write_table(table, problem.table_file(out))
        made, refused = _splits(recipe, out, name, table, write=write)
    except StorageError:
        raise
    except MolgraphError as error:
        return DatasetPlan(name, refused=_why(error), metrics={}, split_hash={})
    if refused and not made:
        whys = dict.fromkeys(refused.values())  # splits that are refused for one reason say it once
        return DatasetPlan(name, refused="; ".join(whys), metrics={}, split_hash={})
    hashes = {part: split.hash for part, split in made.items()}
    cells = [
        Cell(name, label, repeat, fold, method.row, seed, cell_key(digest, split_hash, method, seed))
        for (label, repeat, fold), split_hash in hashes.items()
        for method in recipe.method
        if name not in method.skip
        for seed in recipe.seeds_of(recipe.of_split(label))
    ]
    left_out = unused_rows(table, made.values())
    return replace(problem, split_hash=hashes, cells=tuple(cells), left_out=left_out, refused_splits=refused)


def _splits(
    recipe: BenchRecipe, out: Path, name: str, table: Table, *, write: bool
) -> tuple[dict[tuple[str, int, int], Split], dict[str, str]]:
    """The splits of a dataset by label, repeat and fold, and why others cannot divide it by their label."""
    found, refused = dict[tuple[str, int, int], Split](), dict[str, str]()
    for split in recipe.split_of(name):
        try:
            parts = frozen(recipe, out, name, split, table, write=write)
        except StorageError:  # no fault of the split's: the folder cannot be written
            raise
        except MolgraphError as error:
            refused[split.name] = _why(error)
        else:
            found |= {(split.name, *part): one for part, one in parts.items()}
    return found, refused


def _why(error: MolgraphError) -> str:
    """What is wrong and what to do, in one line."""
    return "; ".join(filter(None, (error.message, " ".join(error.hint.split()))))


def metrics_of(
    recipe: BenchRecipe, targets: Sequence[Target], leading: str, *, pairs: bool = False
) -> dict[str, tuple[str, ...]]:
    """Metrics of each target: the recipe's that fit it, else the card's and those of its kind.

    Raises:
        UsageError: none of the recipe's metrics can judge a target.
    """
    found = {}
    for target in targets:
        names = list(recipe.metrics) or [
            *([leading] if leading else []),
            *(m.name for m in default_metrics(target.kind, pairs)),
        ]
        fitting = tuple(n for n in dict.fromkeys(names) if target.kind in get_metric(n).kinds)
        if not fitting:
            raise UsageError(f"none of {', '.join(names)} can judge {target.name}, which is {target.kind}")
        found[target.name] = fitting
    return found


def frozen(
    recipe: BenchRecipe, out: Path, dataset: str, split: BenchSplit, table: Table, *, write: bool
) -> dict[tuple[int, int], Split]:
    """The splits of one label by repeat and fold: those that lie in the folder, where they are the ones asked for."""
    files = {part: file_of_split(out, dataset, split.name, *part) for part in split.parts}
    asked = split.model_dump(mode="json", exclude={"label", "method_seeds", "datasets"})
    mark = out / "splits" / dataset / split.name / "asked.json"
    content = content_hash(row_contents(table))
    settings, source = settings_of(recipe, dataset, split, table)
    wanted = json.dumps({"content": content, **asked} | ({"source": source} if source else {}), sort_keys=True)
    if mark.is_file() and mark.read_bytes() == wanted.encode():
        return {part: Split.load(file) for part, file in files.items()}
    logger.info("splitting %s: %s", dataset, split.name)
    made = _draw(split, table, settings)
    if write:
        mark.parent.mkdir(parents=True, exist_ok=True)
        if mark.is_file():
            mark.unlink()
            for old in mark.parent.glob("r[0-9]*-f[0-9]*.json"):
                old.unlink()
        for part, one in made.items():
            one.save(files[part])
        with atomic_write(mark, "w") as file:  # last: it says that all are there
            file.write(wanted)
    return made


def _draw(split: BenchSplit, table: Table, settings: Mapping[str, Any]) -> dict[tuple[int, int], Split]:
    if split.folds is not None:
        folds = repeated_kfold(table, split.repeats, split.folds, split.recipe, split.seeds[0], **settings)
        return dict(zip(split.parts, folds, strict=True))
    made = {
        part: split_table(table, split.recipe, fractions=split.fractions, seed=seed, quiet=True, **settings)
        for part, seed in zip(split.parts, split.seeds, strict=True)
    }
    n = made[0, 0].params.get("folds")
    if n is not None and settings.get("fold") is None:
        raise DataError(
            f"its column holds the folds 0 to {n - 1}, and one split tests one of them",
            hint=f"say folds = {n} in the [[split]], or which one is tested: params = {{ fold = 0 }}",
        )
    return made

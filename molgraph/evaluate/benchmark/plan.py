"""Plan the run of a benchmark: write its datasets, frozen splits and cells to disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from molgraph.base.code import code_hash
from molgraph.base.contracts import Target
from molgraph.base.errors import (
    AmbiguousColumnError,
    FormatError,
    LabelError,
    MolgraphError,
    UnknownNameError,
    UnsupportedError,
    UsageError,
    nearest,
)
from molgraph.base.paths import write_whole
from molgraph.base.registry import get
from molgraph.base.toml_config import parse_json
from molgraph.data.cards import card
from molgraph.data.content import content_hash
from molgraph.data.datasets import edition_names, load_dataset
from molgraph.data.splits.unused_rows import RowCount, unused_rows
from molgraph.data.table import Table
from molgraph.data.table_parquet import write_table
from molgraph.evaluate.benchmark.cells import Cell, cell_key
from molgraph.evaluate.benchmark.frozen_splits import freeze
from molgraph.evaluate.benchmark.job import make_method
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.metrics import default_metrics, get_metric

WORK, PLAN = ".work", "plan"
OWN = "own"  # the edition of a table without a card
Resolved = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True)
class DatasetPlan:
    """One dataset of a benchmark, as its plan file keeps it; ``refused`` says why where it cannot be used.

    A split that cannot divide it is refused by itself, and has no cells, unless all splits are.
    """

    dataset: str  # its name, with its edition
    edition: str = "raw"
    data_hash: str = ""
    rows: int = 0
    targets: tuple[Target, ...] = ()
    metrics: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # by target, the one that leads first
    refused: str = ""
    split_hash: Mapping[tuple[str, int, int], str] = field(default_factory=dict)  # by split label, repeat, fold
    cells: tuple[Cell, ...] = ()  # everything that the recipe asks for on it
    left_out: Mapping[str, int] = field(default_factory=dict)  # reason -> rows that are in no part of any split
    notes: tuple[str, ...] = ()  # how the values of a table of one's own were read
    refused_splits: Mapping[str, str] = field(default_factory=dict)  # split label -> why
    resolved: Resolved = field(default_factory=dict)  # row of the board -> parameters, defaults included, and code

    def save(self, out: Path) -> None:
        """Write the plan file."""
        raw = asdict(self) | {"split_hash": [[*key, value] for key, value in self.split_hash.items()]}
        path = out / PLAN / f"{self.dataset}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, json.dumps(raw, indent=1))

    @classmethod
    def load(cls, path: Path) -> DatasetPlan:
        """Read a plan file."""
        try:
            raw = parse_json(path.read_text(encoding="utf-8"))
            raw["split_hash"] = {(a, b, c): value for a, b, c, value in raw["split_hash"]}
            return TypeAdapter(cls).validate_python(raw)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{path} is no plan of a benchmark: {error}", hint="run the recipe again") from error

    @property
    def refusals(self) -> tuple[str, ...]:
        """What was refused of it, a line each."""
        whole = (f"{self.dataset} is refused: {self.refused}",) if self.refused else ()
        return whole + tuple(f"{self.dataset}, {label} is refused: {why}" for label, why in self.refused_splits.items())

    @property
    def row_count(self) -> RowCount:
        """Its rows, and those that no method is given."""
        return RowCount(self.rows, self.left_out, self.notes)

    def table_file(self, out: Path) -> Path:
        """Where its table lies for the cells' processes."""
        return out / WORK / "tables" / f"{self.dataset}-{self.data_hash[:16]}.parquet"


class Planned:
    """What the plans of a benchmark tell together, for classes that hold them."""

    problems: Mapping[str, DatasetPlan]

    @property
    def cells(self) -> list[Cell]:
        """Everything that the recipe asks for."""
        return [cell for problem in self.problems.values() for cell in problem.cells]

    @property
    def refused(self) -> dict[str, str]:
        """Dataset -> why it was refused."""
        return {name: problem.refused for name, problem in self.problems.items() if problem.refused}

    @property
    def refused_splits(self) -> dict[tuple[str, str], str]:
        """(dataset, split) -> why that split cannot divide it, where others can."""
        return {(name, s): why for name, problem in self.problems.items() for s, why in problem.refused_splits.items()}

    @property
    def refusals(self) -> tuple[str, ...]:
        """Datasets and splits that were refused, and why, a line each."""
        return tuple(line for problem in self.problems.values() for line in problem.refusals)


def check_recipe(
    recipe: BenchRecipe, factory: str, tables: Mapping[str, Table]
) -> tuple[Resolved, dict[str, tuple[str, ...]]]:
    """Refuse what no run can do, before anything runs: unknown datasets, splits, metrics, methods and parameters.

    Returns:
        Row of the board -> the parameters of its method, defaults included, as plain values, and a hash of its code;
        and row -> the libraries that it needs.
    """
    for name in recipe.datasets:
        if name not in tables:
            try:
                known, edition = card(name), name.partition("@")[2]
            except UsageError as error:
                hint = f"{error.hint}; a file of your own is said with a [[table]] of that name in the recipe"
                raise type(error)(error.message, hint=hint) from None
            if edition not in ("", *(there := edition_names(known))):
                raise UnknownNameError(f"{known.name} has no edition {edition!r}", hint=f"it has: {', '.join(there)}")
    for split in recipe.split:
        known_split = get("split", split.splitter)
        known_split.settings(split.params)
        if split.folds is not None and known_split.group is None and known_split.own_folds is None:
            raise UnsupportedError(f"the split {split.splitter!r} has no folds", hint="give it fractions and seeds")
    for metric in (*recipe.metrics, *(t.metric for t in recipe.table if t.metric), *(q.metric for q in recipe.quoted)):
        get_metric(metric)
    for quoted in recipe.quoted:
        splits = [split.name for split in recipe.split_of(quoted.dataset)]
        for what, name, near, of in (
            ("dataset", quoted.dataset, recipe.datasets, "in the recipe"),
            ("split", quoted.split, splits, f"of {quoted.dataset} in the recipe"),
            ("metric", quoted.metric, recipe.metrics or (quoted.metric,), "of the recipe's"),
        ):
            if name not in near:
                words = f"a [[quoted]] names the {what} {name!r}, which is none {of}"
                raise UnknownNameError(words, hint=nearest(name, near))
    resolved, needs = {}, {}
    for method in recipe.method:
        model = make_method(method, factory, method.params)
        if method.search is not None and not model.space():
            raise UnsupportedError(f"{method.name} has no parameters to search", hint="leave its search out")
        plain = json.dumps(model.resolved_params(), default=lambda value: type(value).__qualname__)
        parts = [part for member in model.with_members for part in member.code_parts()]
        resolved[method.row] = {**json.loads(plain), "code": code_hash(parts)}
        needs[method.row] = (*model.needs, *(["optuna"] if method.search else []))
    return resolved, needs


def prepare(
    recipe: BenchRecipe, out: Path, name: str, table: Table | None, resolved: Resolved, *, write: bool = True
) -> DatasetPlan:
    """Load a dataset, freeze its splits, and list its cells; what stands there already is used again."""
    try:
        plan, table = _open(recipe, name, table)
    except MolgraphError as error:
        return DatasetPlan(name, refused=error.in_one_line)
    if write and not plan.table_file(out).exists():
        plan.table_file(out).parent.mkdir(parents=True, exist_ok=True)
        write_table(table, plan.table_file(out))
    splits, refused = freeze(recipe, out, name, table, write=write)
    if refused and not splits:
        return DatasetPlan(name, refused="; ".join(dict.fromkeys(refused.values())))  # one reason of several, once
    params = {method.row: resolved.get(method.row, {}) for method in recipe.method if name not in method.skip}
    drawn = recipe.generation if recipe.generates else None
    cells = []
    for part, split in splits.items():
        methods = [method for method in recipe.method if not method.skips(name, part[0])]
        for method, seed in product(methods, recipe.seeds_of(recipe.of_split(part[0]))):
            key = cell_key(plan.data_hash, split.hash, method, seed, params[method.row], generation=drawn)
            cells.append(Cell(name, *part, method.row, seed, key))
    return replace(
        plan,
        split_hash={part: split.hash for part, split in splits.items()},
        cells=tuple(cells),
        left_out=unused_rows(table, splits.values()),
        refused_splits=refused,
        resolved=params,
    )


def _open(recipe: BenchRecipe, name: str, table: Table | None) -> tuple[DatasetPlan, Table]:
    """The plan of a dataset without its splits, and its table."""
    if table is None:
        loaded = load_dataset(name)
        table, digest, edition, leading = loaded.table, loaded.hash, loaded.edition, loaded.card.metric
    else:
        digest, edition = content_hash(table), OWN
        leading = next((t.metric for t in recipe.table if t.name == name), "")
    if recipe.generates:
        if [entity.kind for entity in table.entities] != ["molecule"]:
            raise AmbiguousColumnError(f"{name} has no single column of molecules", hint="generators learn from one")
        return DatasetPlan(name, edition, digest, len(table)), table
    if table.packed:
        raise LabelError(f"{name} has targets of atoms or bonds", hint="benchmarks take targets of whole rows")
    if not table.row_targets or table.y is None:
        way = "read its table with them, as read_table(file, targets=[...]); or leave out a set to generate from"
        raise LabelError(f"{name} has no targets: {way}")
    metrics = metrics_of(recipe, table.row_targets, leading, pairs=len(table.entities) > 1)
    notes = table.notes if edition == OWN else ()
    return DatasetPlan(name, edition, digest, len(table), table.row_targets, metrics, notes=notes), table


def metrics_of(
    recipe: BenchRecipe, targets: Sequence[Target], leading: str, *, pairs: bool = False
) -> dict[str, tuple[str, ...]]:
    """Metrics of each target: the recipe's that fit it, else the card's and those of its kind."""
    metrics = {}
    for target in targets:
        usual = [leading] * bool(leading) + [m.name for m in default_metrics(target.kind, pairs)]
        names = list(recipe.metrics) or usual
        fitting = tuple(n for n in dict.fromkeys(names) if target.kind in get_metric(n).kinds)
        if not fitting:
            raise UnsupportedError(f"none of {', '.join(names)} can judge {target.name}, which is {target.kind}")
        metrics[target.name] = fitting
    return metrics

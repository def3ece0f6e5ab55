"""Read and check the recipe of a benchmark: datasets, splits, methods and budget."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from molgraph.base.errors import nearest
from molgraph.base.recipe_keys import NotNegative, Positive
from molgraph.base.registry import full_name
from molgraph.base.split_keys import SPLITTER
from molgraph.base.toml_config import Section, read_toml, write_toml


def _of(signs: str) -> AfterValidator:
    """A text that names files: letters and digits without marks, and after the first of them these signs."""

    def check(text: str) -> str:
        if not re.fullmatch(f"([A-Za-z0-9][A-Za-z0-9{re.escape(signs)}]*)?", text):
            raise ValueError(f"only letters A to Z, digits and {' '.join(signs)} may be used, a letter or digit first")
        return text

    return AfterValidator(check)


def _once(values: tuple) -> tuple:
    if twice := [value for value in values if values.count(value) > 1]:
        raise ValueError(f"{twice[0]!r} is given twice")
    return values


MOST_FOLDS = 100_000  # of one split: each is a file
Label = Annotated[str, Field(max_length=80), _of("._+@=-")]  # names folders
Params = dict[str, Any]
Once = AfterValidator(_once)
Seeds = Annotated[tuple[NotNegative, ...], Field(min_length=1), Once]


class BenchSplit(Section):
    """One question: a splitter, once for each seed, or as repeated cross-validation."""

    #: a registered split, or a .json or .csv file of rows, as ``train --split`` takes it
    splitter: Annotated[str, Field(validation_alias=SPLITTER)]
    label: Label = ""  # on the board and in paths; by default the splitter's, with folds where there are some
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1)  # of a split without folds
    seeds: Seeds = (0,)  # a split for each; cross-validation takes one
    folds: Annotated[int, Field(ge=2)] | None = None
    repeats: Positive = 1  # how often the rows are divided into folds anew
    method_seeds: tuple[NotNegative, ...] | None = None  # where they differ from the recipe's
    datasets: tuple[str, ...] | None = None  # which of the recipe's it divides; all by default
    params: Params = Field(default_factory=dict)  # column may be any column of a [[table]]'s file

    @model_validator(mode="before")
    @classmethod
    def _files(cls, values: Any) -> Any:
        """A file in the place of a splitter's name; and the full name of a short one."""
        key = "splitter" if not isinstance(values, Mapping) or "splitter" in values else "recipe"
        asked = values.get(key) if isinstance(values, Mapping) else None
        if not isinstance(asked, str):
            return values
        if asked.endswith((".json", ".csv")):
            return {**values, key: "file", "params": {"path": asked}}
        return {**values, key: full_name("split", asked)}

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if min(self.fractions) < 0 or abs(sum(self.fractions) - 1) > 1e-6 or 0 in self.fractions[::2]:
            raise ValueError("fractions are three shares (train, valid, test) that sum to 1, train and test above 0")
        if self.folds is not None and len(self.seeds) > 1:
            raise ValueError("cross-validation takes one seed: ask for repeats instead")
        if self.folds is None and self.repeats > 1:
            raise ValueError("repeats need folds: a split without folds takes several seeds")
        if (self.folds or 1) * self.repeats > MOST_FOLDS:
            raise ValueError(f"{self.repeats} times {self.folds} folds are more than {MOST_FOLDS:,}")
        return self

    @property
    def name(self) -> str:
        """The label, or one made of the splitter."""
        folds = "" if self.folds is None else f"-{self.repeats}x{self.folds}"
        return self.label or self.splitter.replace("/", "-") + folds

    @property
    def test_over_train(self) -> float:
        """Test rows over training rows of a split; pairs whose ends are both new are tested in a fold of each."""
        if self.folds is None:
            return self.fractions[2] / (self.fractions[0] + self.fractions[1])
        return (self.folds - 1.0) ** (-2 if self.splitter == "cold-both" else -1)

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Repeat and fold of each split that it stands for; a split without folds is fold 0 of its repeat."""
        return [*product(range(self.repeats if self.folds else len(self.seeds)), range(self.folds or 1))]


class OwnTable(Section):
    """A dataset of your own: a file without a card."""

    name: Annotated[Label, Field(min_length=1)]  # what the recipe's datasets call it, on the board and in paths
    path: str  # as ``read_table`` takes it; counted from the folder that the run is started in
    smiles: str | tuple[str, ...] | None = None  # its column of SMILES, where it is not plain, or several
    sequence: str | tuple[str, ...] | None = None  # its column of protein sequences, or several
    geometry: str | tuple[str, ...] | None = None  # its column of atoms in space; geometry: those of an SD file
    reaction: str | tuple[str, ...] | None = None  # its column of mapped reactions
    id: str | None = None  # its column of ids; one named id, or the rows' numbers, where not given
    split_column: str | None = None  # read by the splits column, time and group where their params name no other
    targets: tuple[str, ...] = ()  # with a kind where it is not plain (active:binary); generators read none
    weight: str | None = None  # its column of weights, by which methods learn
    features: tuple[str, ...] = ()  # columns of numbers beside the molecule
    qualifiers: Literal["refuse", "drop", "strip"] = "refuse"  # of censored labels, such as >8.0: left out, or 8.0
    censoring: str | None = None  # a column of <, > or = that says so of the numbers that are to be learnt
    metric: str = ""  # the one that leads its board; the usual one of its kind where not given
    margin: Annotated[float, Field(gt=0)] | None = None  # the smallest difference of that metric which matters

    @property
    def columns(self) -> dict[str, Any]:
        """What holds its entities, ids, weights and features, as ``read_table`` takes it."""
        return self.model_dump(
            include={"smiles", "sequence", "geometry", "reaction", "id", "weight", "features", "qualifiers"}
        )


class Tuning(Section):
    """How a method's own parameters are searched, inside the training rows."""

    trials: Positive = 20  # how many sets of parameters are tried
    folds: Annotated[int, Field(ge=2)] = 3  # inner folds that each is judged on
    fraction: Annotated[float, Field(gt=0, lt=1)] | None = None  # in place of folds: the share of the rows that judges
    seed: NotNegative = 0  # of the sampler and the inner split
    params: Params = Field(default_factory=dict)  # that trials alone have, such as fewer epochs


class BenchMethod(Section):
    """One row of the board."""

    name: str  # a registered method or encoder, a registered generator, or an import path, module:object
    kind: Literal["method", "generator", "external"] = "method"  # external: submitted predictions
    label: Label = ""  # on the board and in paths; by default the method's name
    params: Params = Field(default_factory=dict)
    inputs: Annotated[tuple[str, ...], Field(min_length=1)] | None = None  # the entity columns that it is given, or all
    side: str = ""  # of pairs, the one side that it is given, as ``sides_of`` names it: ligand, protein or a column
    search: Tuning | None = None
    skip: tuple[str, ...] = ()  # datasets, or labels of splits, that it is not run on; the recipe's comments say why

    @model_validator(mode="before")
    @classmethod
    def _path(cls, values: Any) -> Any:
        """``path = "module:object"`` as its name, with the object's name on the board."""
        if not isinstance(values, Mapping) or "path" not in values:
            return values
        path = values["path"]
        if "name" in values or not isinstance(path, str) or not re.fullmatch(r"[\w.]+:\w+", path):
            raise ValueError(f"path is {path!r}: give module:object, and no name, only a label")
        rest = {key: value for key, value in values.items() if key != "path"}
        return {"name": path, "label": path.partition(":")[2], **rest}

    @property
    def row(self) -> str:
        """Its name on the board and in paths."""
        return self.label or self.name

    def skips(self, dataset: str, split: str) -> bool:
        """Whether it is not run on a dataset under a split."""
        return dataset in self.skip or split in self.skip


class Generation(Section):
    """How generators are trained and judged."""

    draws: Positive = 10_000  # of each generator, all of which are judged
    most_train: Positive | None = None  # training molecules that all generators are given; all by default
    embedding: Literal["descriptors", "fingerprint", "chemnet"] = "descriptors"  # of Fréchet's distance


class Budget(Section):
    """What one cell may use: wall seconds, and memory over its whole process tree."""

    seconds: Annotated[float, Field(gt=0)] = 3600.0
    memory_gb: Annotated[float, Field(gt=0)] = 8.0


class RunSection(Section):
    """How cells run: how many at once, threads of each, and modules that register further methods."""

    jobs: Positive = 1
    threads: Positive = 1
    imports: tuple[str, ...] = ()


class Quoted(Section):
    """A number from a paper: shown in grey with its protocol and source, never ranked."""

    dataset: str
    split: str  # the label of one of the recipe's
    method: str  # what the paper calls it
    metric: str
    value: float
    protocol: str  # how the paper's split and seeds differ from the board's
    source: str


class BenchRecipe(Section):
    """A whole benchmark, as plain values.

    Example:
        >>> recipe = BenchRecipe.from_dict({
        ...     "name": "small", "datasets": ["chembl2321810"], "split": [{"splitter": "random", "folds": 5}],
        ...     "method": [{"name": "mean"}],
        ... })
        >>> recipe.split[0].name, len(recipe.split[0].parts)
        ('random-1x5', 5)
    """

    name: Annotated[str, Field(min_length=1), _of("._-")]
    title: str = ""
    datasets: Annotated[tuple[str, ...], Field(min_length=1), Once]
    table: tuple[OwnTable, ...] = ()
    split: Annotated[tuple[BenchSplit, ...], Field(min_length=1)]
    method: Annotated[tuple[BenchMethod, ...], Field(min_length=1)]
    seeds: Seeds = (0,)
    metrics: Annotated[tuple[str, ...], Once] = ()
    reference: str = ""  # the method that every other is held against; the forest without it
    budget: Budget = Budget()
    run: RunSection = RunSection()
    generation: Generation = Generation()
    quoted: tuple[Quoted, ...] = ()
    sides: bool = True  # whether each graph model of pairs has rows of one side alone beside it

    @model_validator(mode="before")
    @classmethod
    def _generators(cls, values: Any) -> Any:
        """Each ``[[generator]]`` as a method of that kind."""
        if not isinstance(values, Mapping) or "generator" not in values:
            return values
        entries = [{**entry, "kind": "generator"} for entry in values["generator"]]
        return {k: v for k, v in values.items() if k != "generator"} | {"method": [*values.get("method", ()), *entries]}

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if {"method", "generator"} <= {m.kind for m in self.method}:
            raise ValueError("methods and generators have boards of their own: give each a recipe")
        if self.generates and (self.metrics or self.quoted or any(m.search or m.inputs for m in self.method)):
            raise ValueError("generators have no metrics, quoted, search or inputs: leave them out")
        if not self.generates and (bare := [t.name for t in self.table if not t.targets]):
            raise ValueError(f"the [[table]] {bare[0]!r} names no targets, which methods learn")
        splits, methods = [s.name for s in self.split], [m.row for m in self.method]
        for what, labels in (("splits", splits), ("methods", methods), ("tables", [t.name for t in self.table])):
            if twice := [label for label in labels if labels.count(label) > 1]:
                raise ValueError(f"two {what} are called {twice[0]!r}: give one of them another name")
        if self.reference and self.reference not in methods:
            raise ValueError(f"the reference {self.reference!r} is no method here; {nearest(self.reference, methods)}")
        of_splits = [name for s in self.split for name in s.datasets or ()]
        for name in (*of_splits, *(t.name for t in self.table)):
            if name not in self.datasets:
                raise ValueError(f"{name!r} is none of the recipe's datasets; {nearest(name, self.datasets)}")
        known = (*self.datasets, *splits)
        for name in (name for m in self.method for name in m.skip):
            if name not in known:
                raise ValueError(f"{name!r} is none of the recipe's datasets or splits; {nearest(name, known)}")
        return self

    @classmethod
    def from_toml(cls, path: str | Path) -> Self:
        """Read a recipe file; its name is the file's where it says none."""
        return cls.from_dict({"name": Path(path).stem} | read_toml(path, 'name = "mine"'))

    def to_toml(self) -> str:
        """The recipe as TOML text that ``from_toml`` reads back to the same recipe."""
        return write_toml(self.model_dump(mode="json", exclude_defaults=True))

    @property
    def generates(self) -> bool:
        """Whether its rows are generators."""
        return self.method[0].kind == "generator"

    def of_split(self, name: str) -> BenchSplit:
        """The split of that label."""
        return next(s for s in self.split if s.name == name)

    def split_of(self, dataset: str) -> list[BenchSplit]:
        """The splits that divide a dataset."""
        return [s for s in self.split if dataset in (s.datasets or self.datasets)]

    def of_method(self, row: str) -> BenchMethod:
        """The method of that row."""
        return next(m for m in self.method if m.row == row)

    def seeds_of(self, split: BenchSplit) -> tuple[int, ...]:
        """Seeds of the methods under a split."""
        return self.seeds if split.method_seeds is None else split.method_seeds

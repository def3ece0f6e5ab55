"""List the published methods that molgraph implements, each with its command and the state of its checks."""

from __future__ import annotations

import ast
import csv
import hashlib
import inspect
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from molgraph.api.catalogue import command_of
from molgraph.base import registry
from molgraph.base.registry import Entry
from molgraph.base.resources import shipped_dir
from molgraph.base.systems import System, SystemCard, table

STATES = ("absent", "built", "exact", "works", "honest null", "stale")


class Built(NamedTuple):
    """One implementation of a system: its card, and the registered thing, verb or option that is it."""

    card: SystemCard
    kind: str
    name: str
    module: str
    paper: str
    command: str

    @property
    def place(self) -> str:
        """Its file in the repository."""
        return f"{self.module.replace('.', '/')}.py"

    def without(self) -> str:
        """The command with the mechanism taken out; empty where the card says no way.

        Example:
            >>> next(each for each in built() if each.card.id == "fspool").without()
            'molgraph train dataset:chembl2321810 -m dmpnn -s params.readout=sum'
        """
        if not self.card.off.startswith("-"):
            own = rf"(?<=[ =])({re.escape(self.name)}|'{re.escape(self.name)}\([^']*\)')(?= |$)"  # with its settings
            return self.card.off and re.sub(own, lambda _: self.card.off, self.command)
        kept, options = self.command, re.findall(r"(-\S+) ([^\s=]+)(\S*)", self.card.off)
        for flag, first, rest in options:  # an option takes the place of the one that it contradicts
            same = rf"{flag} {re.escape(first)}=\S+" if rest else rf"{flag} [^\s=]+(?= |$)"
            kept = re.sub(rf" {same}", "", kept)
        return f"{kept} {self.card.off}"


class Check(NamedTuple):
    """A line of the results: a check that was run, with its sabotage."""

    system: str
    rung: str
    check: str
    outcome: str
    expected: str
    got: str
    beside: str
    seconds: str
    commit: str
    source: str


@dataclass(frozen=True)
class Status:
    """Where a system stands.

    Args:
        id: of the table, or another published name.
        system: its row of the table, if it has one.
        built: what implements it.
        checks: what its checks found.
        state: absent, built, exact, works, honest null or stale.
    """

    id: str
    system: System | None
    built: tuple[Built, ...]
    checks: tuple[Check, ...]
    state: str

    @property
    def shown(self) -> str:
        """The state, and whether a part alone stands."""
        return self.state + ", in part" * bool(self.built and self.missing)

    @property
    def missing(self) -> bool:
        """Whether all or a part of it is still to be written."""
        return not self.built or all(each.card.part for each in self.built)

    def matches(self, words: str) -> bool:
        """Whether each of some words stands in its id, paper, summary, or what implements it."""
        row = self.system
        names = [f"{each.name} {each.place} {each.paper}" for each in self.built]
        text = " ".join([self.id, *([row.paper, row.family, row.summary] if row else []), *names]).lower()
        return all(word in text for word in words.lower().split())


#: systems that are a verb, an option of one or a recipe
VERBS = (
    Built(
        SystemCard(
            "dvd",
            left_out="the bandit that adapts the weight; batches are chosen, no population of policies is trained",
            off="--diversity 0",
            beside=("the batch of best scores",),
            modules=("molgraph.generate.run_search",),
        ),
        "option",
        "--diversity",
        "molgraph.generate.diversity",
        "Parker-Holder et al. 2020, NeurIPS",
        "molgraph optimise jtvae-zinc --oracle qed --search bayes --diversity 0.7 -o best.csv",
    ),
    Built(
        SystemCard(
            "adamw-sgdw",
            left_out="the same of plain gradient descent",
            off="adam",
            beside=("adam with the penalty in its gradient",),
            modules=("molgraph.train.phases",),
            part=True,
        ),
        "optimizer",
        "adamw",
        "molgraph.train.optimizers",
        "Loshchilov and Hutter 2019, ICLR",
        "molgraph train dataset:chembl2321810 -m dmpnn --optimizer adamw --weight-decay 0.1",
    ),
    Built(
        SystemCard(
            "smoothness-clipped-gd",
            left_out="the probe of smoothness, and a limit that it sets",
            off="--gradient-clip 1000",
            beside=("steps as they are",),
            part=True,
        ),
        "option",
        "--gradient-clip",
        "molgraph.train.engine",
        "Zhang et al. 2020, ICLR",
        "molgraph train dataset:chembl2321810 -m dmpnn --gradient-clip 0.1",
    ),
    Built(
        SystemCard(
            "nerfies",
            left_out="the radiance field, the network and the latents of the deformation; bands that open in training",
            off="--straight",
            beside=("straight lines",),
            modules=("molgraph.chem.rigidity", "molgraph.chem.turn_field"),
            part=True,
        ),
        "verb",
        "morph",
        "molgraph.chem.morph",
        "Park et al. 2020, ICCV 2021",
        "molgraph morph folded.sdf open.sdf --rigid -o way.sdf",
    ),
    Built(
        SystemCard(
            "muse",
            left_out="the adversarial start without a dictionary: the anchors are the molecules that both sides have",
            off="--align none",
            beside=("vectors as they are",),
            modules=("molgraph.embed.csls", "molgraph.embed.heads"),
        ),
        "option",
        "--align",
        "molgraph.embed.align",
        "Conneau et al. 2018, ICLR",
        "molgraph embed encoder.mgm dataset:chembl2321810 --align old.parquet -o new.parquet",
    ),
    Built(
        SystemCard(
            "muse",
            left_out="the adversarial start without a dictionary",
            off="--cosine",
            beside=("the cosine",),
        ),
        "option",
        "--csls",
        "molgraph.embed.csls",
        "Conneau et al. 2018, ICLR",
        "molgraph nearest old.parquet old.parquet --csls -o near.csv",
    ),
    Built(
        SystemCard(
            "ae-comm",
            left_out="the agents and their policies: a code of frozen vectors stands, which no task changes",
            off="--code-by projection",
            beside=("a random projection", "principal components", "the whole vector"),
            modules=("molgraph.embed.heads",),
        ),
        "option",
        "--code",
        "molgraph.embed.code",
        "Lin et al. 2021, NeurIPS",
        "molgraph embed encoder.mgm dataset:chembl2321810 --code 4 -o codes.csv",
    ),
    Built(
        SystemCard(
            "embedding-grammars",
            left_out="words and their learned vectors: fragments by properties, or by an encoder; the other rules than "
            "a ball around exemplars",
            off="--eps 0",
            beside=("the exemplars alone", "Morgan fingerprints", "random vectors"),
            modules=("molgraph.api.soft_search", "molgraph.chem.substituents"),
        ),
        "option",
        "--smarts",
        "molgraph.embed.grammar",
        "Wingate et al. 2018, arXiv 1808.04891",
        'molgraph nearest library.smi --smarts "c1ccccc1[*:1]" --like "[*:1]C(=O)O" --eps 0.8 -o matches.csv',
    ),
    Built(
        SystemCard(
            "musicvae",
            left_out="the decoder of two levels, and vectors of attributes; the way between two molecules stands",
            beside=("a straight line",),
            part=True,
        ),
        "verb",
        "latent interpolate",
        "molgraph.api.latent_space",
        "Roberts et al. 2018, ICML",
        "molgraph latent interpolate jtvae-zinc CCO c1ccccc1O -o way.csv",
    ),
    Built(
        SystemCard(
            "moleculenet",
            left_out="Tox21, ToxCast, MUV, PCBA and the quantum sets in the stored run; HIV is a recipe of its own",
            beside=("mean", "random_forest"),
        ),
        "recipe",
        "moleculenet",
        "molgraph.evaluate.benchmark.recipe",
        "Wu et al. 2018, Chem. Sci. 9:513",
        "molgraph bench run moleculenet",
    ),
)


def built() -> list[Built]:
    """The verbs, and every registered thing with a card, by id and name.

    Example:
        >>> next(each.place for each in built() if each.card.id == "dmpnn")
        'molgraph/models/dmpnn.py'
    """
    entries = [registry.entry(kind, name) for kind in registry.kinds() for name in registry.names(kind)]
    own = [_built(entry, card) for entry in entries for card in entry.systems]
    return sorted([*VERBS, *own], key=lambda each: (each.card.id, each.kind, each.name))


def _built(entry: Entry, card: SystemCard) -> Built:
    value = entry.value if inspect.isclass(entry.value) or inspect.isfunction(entry.value) else type(entry.value)
    return Built(card, entry.kind, entry.name, value.__module__, entry.paper, card.command or command_of(entry))


def statuses(results: Path | None = None) -> list[Status]:
    """All systems of the table in its order, then other published names that are implemented.

    Args:
        results: the file of results; the one that ships with molgraph if not given.
    """
    found: dict[str, list[Built]] = {}
    for each in built():
        found.setdefault(each.card.id, []).append(each)
    checks = read_checks(results)
    others = [name for name in found if name not in table()]
    made = []
    for name in [*table(), *others]:
        here, rows = tuple(found.get(name, ())), tuple(row for row in checks if row.system == name)
        made.append(Status(name, table().get(name), here, rows, _state(here, rows)))
    return made


def read_checks(path: Path | None = None) -> list[Check]:
    """The lines of a file of results; none where there is no such file."""
    path = path or shipped_dir("pipelines") / "systems.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Check(**row) for row in csv.DictReader(file)]


def _state(here: Iterable[Built], rows: Iterable[Check]) -> str:
    if not here:
        return "absent"
    rows = list(rows)
    if any(row.source != source_of(here) for row in rows):
        return "stale"
    reached = {row.rung for row in rows if row.outcome != "failed"} - {
        row.rung for row in rows if row.outcome == "failed"
    }
    if "exact" not in reached:
        return "built"
    null = any(row.outcome == "null" for row in rows)
    return "honest null" if null else "works" if "works" in reached else "exact"


def source_of(here: Iterable[Built]) -> str:
    """A hash of the code of the modules that implement a system: without blank lines, comments and docstrings."""
    modules = sorted({name for each in here for name in (each.module, *each.card.modules)})
    return hashlib.sha256("".join(_code(name) for name in modules).encode()).hexdigest()[:12]


@cache
def _code(module: str) -> str:
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return module
    text = Path(spec.origin).read_text(encoding="utf-8")
    words: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            words |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = [line.strip() for n, line in enumerate(text.splitlines(), 1) if n not in words]
    return "\n".join(line for line in lines if line and not line.startswith("#"))

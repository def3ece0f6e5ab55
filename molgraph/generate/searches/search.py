"""Define ``Search``: asks for molecules to be scored, and learns from their scores."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from molgraph.base.contracts import Generator
from molgraph.base.errors import NotInstalledError, UnsupportedError
from molgraph.base.optional import how_to_install, missing
from molgraph.base.parameters import check_params
from molgraph.base.parts import read_part, settings_of
from molgraph.base.registry import get
from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.chem.identity import canonical_smiles
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.sources import builtin

if TYPE_CHECKING:
    from molgraph.generate.oracles.term_scores import TermScores

FEWEST = 4  # scores that a model is fitted to
ENOUGH = 10  # known molecules, from which a search need not score others first
DRUG_LIKE = re.compile(r"(?:Cl|Br|[CNOFScnos0-9()=#\[\]H+@/\\-]){15,60}")  # no metals and salts, nothing tiny or huge


class Proposals(NamedTuple):
    """Molecules that a search would like to see scored.

    Args:
        smiles: m texts; one that is no molecule costs nothing.
        promise: float64 [m], how good the search takes each to be, in any unit; equal where it cannot tell.
    """

    smiles: list[str]
    promise: np.ndarray


class Search(ABC):
    """The base class of searches over molecules.

    ``begin`` once, then ``ask`` and ``tell`` in turn. The same seed and scores give the same proposals, so that a run
    that was stopped can go on. A subclass is registered with ``@register("search", name)``; its parameters are the
    constructor's keyword arguments; ``initial`` is one where molecules are scored before it learns.

    ``needs``: importable names of libraries that molgraph does not install. ``small``: parameters for trials.
    ``generator``: a fitted one, or None. ``starts``: SMILES to begin at. ``n_known``: molecules whose scores it was
    told first. ``standardiser``: the preset that proposals go through. ``batch``: proposals that it is asked for, but
    at the end. ``fixed``: whether a person chose ``initial``. ``batch_size``: proposals of a batch where nobody says
    otherwise. ``chooses``: whether more are asked for than are scored, and a diverse batch is chosen of them; not where
    it learns from its own draws as they fall. ``default_model``: the shipped model that it takes where none is
    named; empty for none. ``offline``: whether it learns from known molecules alone, and must have some.
    ``terms``: gives the scores by parts of the oracle, ``(smiles, score) -> float64 [n, parts]``, and their ``labels``;
    None where there is no oracle.
    """

    name: str = ""
    needs: tuple[str, ...] = ()
    small: Mapping[str, Any] = MappingProxyType({})
    initial: int = 0
    fixed: bool = False
    n_known: int = 0
    batch_size: int = 20
    chooses: bool = True
    default_model: str = ""
    offline: bool = False
    terms: TermScores | None = None

    def begin(
        self,
        generator: Generator | None = None,
        *,
        starts: Sequence[str] = (),
        known: tuple[Sequence[str], np.ndarray] | None = None,
        standardiser: str = "standard",
        batch: int = 20,
        seed: int = 0,
    ) -> None:
        """Set the generator, the molecules to begin at, and those whose scores are known.

        Raises:
            UsageError: a library or a generator that it needs is not there.
        """
        if lacking := missing(self.needs):
            words = f"the search {self.name!r} needs {' and '.join(lacking)}"
            raise NotInstalledError(words, hint=how_to_install(lacking))
        self.generator, self.starts, self.standardiser = generator, list(starts), standardiser
        self.batch, self.seed = batch, derive(seed, "search")
        if known is not None:
            self.n_known = self.learn_known(*known)

    @abstractmethod
    def ask(self, n: int, step: int) -> Proposals:
        """At least ``n`` proposals where there are so many; ``step`` counts the calls, from 0."""

    @abstractmethod
    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Learn scores: float [n], higher is better; NaN of what is no molecule or failed.

        Told are the texts as they were proposed, and the starts. A molecule that was met before is told again.
        """

    def learn_known(self, smiles: Sequence[str], score: np.ndarray) -> int:
        """Learn scores that are known before the first proposal: how many molecules were of use."""
        self.tell(smiles, score)
        return len(smiles)

    def notes(self, starts: Sequence[str]) -> list[str]:
        """What a person should know of the molecules that it begins at; by default nothing."""
        return []

    def forget(self) -> None:  # noqa: B027 - what learns as it goes keeps what it learned
        """Forget the scores: the oracle has changed. The best molecules so far are then given to ``learn_known``."""

    def ask_wider(self, n: int, step: int, idle: int, outside: bool) -> Proposals:
        """Proposals after ``idle`` batches without a new molecule: it turns in circles or is ``outside`` the bounds."""
        return self.ask(n * (1 + idle), step)

    def draws(self, n: int, step: int) -> list[str]:
        """``n`` molecules without any learning: the generator's, or without one of the built-in list (NCI's)."""
        if self.generator is not None:
            texts = self.generator.sample(n, derive(self.seed, "draws", step))
        else:
            rows = random_numbers(self.seed, "draws", step).permutation(len(builtin_molecules()))[:n]
            texts = [builtin_molecules()[row] for row in rows]
        texts = [str(text) for text in standardise_smiles(texts, self.standardiser).values]
        return [written or text for text, (written, _) in zip(texts, canonical_smiles(texts), strict=True)]

    def fit_into(self, budget: int) -> str:
        """Leave two thirds of a small budget to the search: a shorter ``initial``, and a note that says so."""
        if self.n_known >= ENOUGH or self.initial <= budget // 3:
            return ""
        if not self.fixed:
            self.initial = max(budget // 3, FEWEST)
        if self.initial >= budget:
            return f"a budget of {budget:,} calls is spent before {self.name} learns: this is plain sampling"
        return "" if self.fixed else f"{self.name} learns after {self.initial:,} calls, a third of the small budget"

    def trained_generator(self) -> Generator:
        """The generator as the search trained it; raises ``UnsupportedError`` for a search that trains none."""
        words = f"the search {self.name!r} trains no generator that could be kept"
        raise UnsupportedError(words, hint="take one that trains a language model, such as reinvent or shared-prior")


@cache
def builtin_molecules() -> tuple[str, ...]:
    """Molecules that a search begins from where nothing else is named: those of the NCI list without rare elements."""
    return tuple(str(text) for text in builtin.nci().smiles if DRUG_LIKE.fullmatch(str(text)))


def make_search(name: str, **params: Any) -> Search:
    """A registered search.

    Raises:
        UsageError: no such search, or parameters that it does not have.
    """
    part = read_part(name, "search")
    cls = get("search", part.name)
    settings = {**settings_of(cls, part), **params}
    check_params(cls, settings, owner=part.name)
    search: Search = cls(**settings)
    search.fixed = "initial" in settings
    return search

"""Trials that every registered search meets: with a small latent space, or without a model where it needs none."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from molgraph.base.contracts import Generator
from molgraph.base.registry import entry, names
from molgraph.chem.smiles import why_unreadable
from molgraph.data.sources import builtin
from molgraph.generate.known import Told
from molgraph.generate.language import LanguageGenerator
from molgraph.generate.oracles.calls import OracleCalls, Scored
from molgraph.generate.oracles.oracle import FunctionOracle
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.run_search import run_search, standard_starts
from molgraph.generate.searches.latent import LatentSearch
from molgraph.generate.searches.search import Proposals, Search, make_search
from tests.latent import NearestMolecule, latent_generator
from tests.tiny import series

STARTS = ["CCOc1ccccc1", "CC(=O)Nc1ccc(O)cc1"]


@pytest.fixture(scope="module")
def latent() -> NearestMolecule:
    return latent_generator(builtin.chembl2321810(), d=4)


class Stopped(OracleCalls):
    """Calls that end with Ctrl-C after so many."""

    stop = -1

    def _compute(self, *args: Any, **how: Any) -> list[Scored]:
        if len(self.scored) == self.stop:
            raise KeyboardInterrupt
        return super()._compute(*args, **how)


@cache
def writer() -> LanguageGenerator:
    """A small language model of SELFIES, each of whose texts is a molecule."""
    return LanguageGenerator(**LanguageGenerator.small, tokens="selfies", threads=1).fit(series(48))


def made(name: str, latent: NearestMolecule) -> tuple[Generator | None, Search]:
    """A small search, with the generator that it needs."""
    cls = entry("search", name).value
    needed = writer() if cls.default_model else latent if issubclass(cls, LatentSearch) else None
    return needed, make_search(name, **cls.small)


def known(search: Search) -> Any:
    """Molecules with scores for a search that learns from those alone."""
    return (["CCO", "CCC", "OCCN"], np.array([1.0, 2.0, 0.5])) if search.offline else None


def asked(name: str, latent: NearestMolecule, *steps: tuple[int, int]) -> list[Proposals]:
    """What a search asks for that was told the lengths of three batches' texts."""
    generator, search = made(name, latent)
    search.begin(generator, known=known(search), seed=1)
    for step in range(3):
        smiles = search.ask(20, step).smiles
        search.tell(smiles, np.array([np.nan if i == 7 else len(text) for i, text in enumerate(smiles)], dtype=float))
    return [search.ask(n, step) for n, step in steps]


@pytest.mark.parametrize("name", names("search"))
class TestEverySearch:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("search", name)
        assert issubclass(found.value, Search) and found.summary and found.value.__doc__ and found.value.name == name

    def test_proposals_are_molecules_with_a_promise_each(self, name: str, latent: NearestMolecule) -> None:
        for (n, _), found in zip(steps := ((1, 4), (5, 5), (12, 6)), asked(name, latent, *steps), strict=True):
            assert len(found.smiles) >= n and found.promise.shape == (len(found.smiles),)
            assert np.isfinite(found.promise).all() and not any(map(why_unreadable, found.smiles))

    def test_the_same_seed_and_scores_ask_the_same(self, name: str, latent: NearestMolecule) -> None:
        np.random.seed(3)  # noqa: NPY002 - the global state on purpose
        first, later = asked(name, latent, (6, 4), (6, 5))
        np.random.seed(4)  # noqa: NPY002
        (again,) = asked(name, latent, (6, 4))
        assert first.smiles == again.smiles and np.array_equal(first.promise, again.promise)
        assert first.smiles != later.smiles

    def test_a_stopped_run_goes_on_as_if_it_never_stopped(
        self, name: str, latent: NearestMolecule, tmp_path: Path
    ) -> None:
        counted = list[str]()

        def letters(text: str) -> float:
            counted.append(text)
            return len(text)

        def run(journal: str, stop: int = -1) -> list[str]:
            generator, search = made(name, latent)
            calls = Stopped(read_oracle(FunctionOracle(letters, version="1")), 40, journal=tmp_path / journal)
            calls.stop = stop
            starts = standard_starts([str(latent.smiles[3])])
            try:
                told = known(search) and Told(*known(search), "trial", {})
                run_search(generator, calls, search, starts=starts, known=told, batch=8, seed=2)
            finally:
                calls.close()
            assert next(iter(calls.scored)) == starts[0] and len(calls.scored) <= 40
            return [*calls.scored]

        whole, n = run("whole"), len(counted)
        assert n == len(whole) > 30, "each molecule is one call"
        counted.clear()
        with pytest.raises(KeyboardInterrupt):
            run("cut", stop=27)
        assert len(counted) == 27 and run("cut") == whole and len(counted) == n

    def test_scores_that_say_nothing_end_no_search(self, name: str, latent: NearestMolecule) -> None:
        for value in (0.0, np.nan):
            generator, search = made(name, latent)
            search.begin(generator, starts=STARTS, known=known(search), seed=1)
            for step in range(4):
                smiles = search.ask(6, step).smiles
                search.tell(smiles, np.full(len(smiles), value))
            assert isinstance(search.ask_wider(6, 5, 3, True), Proposals)

"""Trials that every registered objective meets: one engine trains, stops and resumes all of them."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from molgraph.base import registry
from molgraph.base.contracts import State
from molgraph.base.registry import entry, names
from molgraph.data.graph_values import Geometry
from molgraph.data.read import read_table
from molgraph.data.sources.graph_files import plain_table
from molgraph.data.table import Table, Target, make_table
from molgraph.train.method import GraphMethod
from molgraph.train.objective import Objective, StepState
from molgraph.train.runtime import Interrupted
from tests.tiny import OF_WORDS, curve_points, same_bits, series, weights_of

N = 48
PAIRED = ("match", "views")  # those that read two columns


def table(name: str, seed: int = 0) -> Table:
    """Molecules with numbers, some of them missing, and for labelled ones classes; one molecule cannot be read."""
    rng = np.random.default_rng(seed)
    if "atom.position" in entry("objective", name).value.needs:
        return geometries(rng)
    if entry("objective", name).value.learns_points:
        return read_table(curve_points(N, seed), targets="response:curve")
    smiles = [*(analogues() if name == "edit-vectors" else series(N - 1).smiles), "not a molecule"]
    sizes = np.array([[len(text), len(text) - text.count("c")] for text in smiles], dtype=float)  # to be learned
    y = np.column_stack([sizes, sizes > np.median(sizes, axis=0)])
    y[rng.random(y.shape) < 0.2] = np.nan
    targets = (Target("a"), Target("b"), Target("c", "binary"), Target("d", "binary"))
    made = make_table(smiles, targets=targets, y=y)
    if name in PAIRED:
        made = replace(made, entities=(*made.entities, replace(made.entities[0], name="text")))
    kind = entry("objective", name).value
    if kind.labelled and not kind.classes_only:
        return made
    return made.with_targets(["c", "d"] if kind.classes_only else ["a", "b"])  # of one kind


def analogues() -> list[str]:
    """Series in which the same groups are replaced."""
    groups = ("F", "Cl", "Br", "C", "OC", "N#C", "FC(F)(F)", "N")
    rests = (
        "c1cccnc1C",
        "c1ccc2ccccc2c1",
        "c1ccc(C(=O)NC2CC2)cc1",
        "C1CCN(CC1)c1ccccn1",
        "c1ccc(cc1)N1CCOCC1",
        "C1CCCCC1O",
    )
    return [f"{group}{rest}" for rest in rests for group in groups][: N - 1]


def geometries(rng: np.random.Generator) -> Table:
    """Pairs of atoms on a spring with its forces; the last row is no geometry."""
    length, none = rng.uniform(1, 2, N - 1), np.zeros(1)
    at = np.array([[[0, 0, 0], [0, 0, d]] for d in length])
    forces = np.array([[[0, 0, d - 1.5], [0, 0, 1.5 - d]] for d in length])
    values = [Geometry(np.array([6, 8]), at[i], forces[i] if i % 9 else None) for i in range(N - 1)]
    columns: dict[Any, Any] = {"geometry": [*values, None]}
    return plain_table(columns, (Target("energy"),), np.concatenate([(length - 1.5) ** 2 / 2, none]))


def method(name: str, **params: Any) -> GraphMethod:
    encoder = "schnet" if "atom.position" in entry("objective", name).value.needs else "dmpnn"
    encoder = "grover" if name == "grover" else encoder  # the one with two views
    encoder = "hard_subgraphs" if name == "saccader" else encoder
    encoder = "dmpnn+tokens" if name in PAIRED else encoder
    encoder = "mol2vec" if name == "skip-gram" else "tokens" if name in OF_WORDS else encoder
    prefixes = {each: f"{each}." if "+" in encoder else "" for each in encoder.split("+")}
    own = {f"{prefixes[e]}{k}": v for e in prefixes for k, v in registry.get("encoder", e).small.items()}
    small = {**registry.get("method", "graph").small, "params": own}
    return GraphMethod(encoder, **{**small, "epochs": 3, "threads": 1, "objective": name, **params})


@cache
def fitted(name: str) -> GraphMethod:
    """Fitted once, for the trials that compare with it."""
    return method(name).fit(table(name), table(name, 1))


@pytest.mark.parametrize("name", names("objective"))
class TestEveryObjective:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("objective", name)
        assert issubclass(found.value, Objective) and found.summary and found.value.__doc__

    @pytest.mark.slow
    def test_it_trains_by_gradient_descent(self, name: str) -> None:
        fitted = method(name, epochs=40, batch_size=64, patience=None, learning_rate=0.01).fit(
            table(name), table(name, 1)
        )
        assert fitted.curves is not None
        losses = fitted.curves["valid_loss" if name == "mixmatch" else "train_loss"].to_numpy()  # its guesses sharpen
        assert np.isfinite(losses).all() and losses[-8:].mean() < losses[:4].mean()
        assert np.isfinite(fitted.curves["valid_loss"]).all()

    def test_another_seed_gives_other_weights(self, name: str) -> None:
        other = method(name, seed=4).fit(table(name), table(name, 1))
        assert not same_bits(weights_of(fitted(name)), weights_of(other))

    def test_a_fit_that_was_stopped_goes_on_exactly(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """And so the same seed gives the same weights."""
        left, after_step = iter(range(4)), entry("objective", name).value.after_step

        def stopping(self: Objective, network: Any, state: StepState) -> None:
            after_step(self, network, state)
            if next(left, None) is None:
                raise Interrupted("stopped")

        with monkeypatch.context() as patch:
            patch.setattr(entry("objective", name).value, "after_step", stopping)
            with pytest.raises(Interrupted):
                method(name, checkpoint_seconds=0.0).fit(table(name), table(name, 1), workdir=tmp_path)
        again = method(name, checkpoint_seconds=0.0).fit(table(name), table(name, 1), workdir=tmp_path)
        assert same_bits(weights_of(again), weights_of(fitted(name)))

    def test_what_it_taught_is_kept(self, name: str) -> None:
        state = fitted(name).state()
        again = GraphMethod.from_state(State(dict(state.arrays), state.meta))
        assert fitted(name).predict(table(name)).value.tobytes() == again.predict(table(name)).value.tobytes()

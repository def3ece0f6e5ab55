"""Trials that every registered callback meets: it trains, stacks, is stopped and goes on."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import State
from molgraph.base.parts import part_names
from molgraph.base.registry import entry, get, names
from molgraph.base.table import Table, Target
from molgraph.train.callback import Callback
from molgraph.train.method import GraphMethod
from molgraph.train.objective import StepState
from molgraph.train.runtime import Interrupted
from tests.tiny import same_bits, series, small, weights_of


@pytest.fixture(scope="module")
def starts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Files of encoders to start from."""
    folder, found = tmp_path_factory.mktemp("start"), {}
    for model in ("dmpnn", "gin"):
        made = molgraph.pretrain(series(24), model=model, params={"d_hidden": 8}, epochs=1, threads=1)
        found[model] = str(made.save(folder / f"{model}.mgm"))
    for name in names("callback"):
        if objective := get("callback", name).starts_from:
            (folder / objective).mkdir()
            size = {"d_hidden": 8, "head_width": 8}
            rows = labelled(series(64), classes=get("callback", name).classes_only)
            made = molgraph.pretrain(rows, objective=objective, params=size, epochs=1, threads=1)
            found[objective] = str(made.save(folder / objective / "dmpnn.mgm"))
    return found


@pytest.fixture
def start(name: str, starts: dict[str, str]) -> str:
    """The file of an encoder that a callback can start from."""
    return starts[get("callback", name).starts_from or ("gin" if get("callback", name).needs_layers else "dmpnn")]


def fine_tuned(callback: str | None, start: str, workdir: Path | None = None, **params: Any) -> GraphMethod:
    how: dict[str, Any] = {"encoder": Path(start).stem, "threads": 1, "epochs": 4, "checkpoint_seconds": 0.0}
    named = part_names(callback) if callback else ()
    classes = params.pop("classes", any(get("callback", each).classes_only for each in named))
    if any(get("callback", each).solves_head and get("callback", each).starts_from for each in named):
        how["head_layers"] = 1
    method = small(**{**how, "init": start, "callback": callback, **params})
    rows = [labelled(each, classes=classes) for each in (series(32), series(16, 100))]
    return method.fit(rows[0], rows[1], workdir=workdir)


def labelled(table: Table, *, classes: bool) -> Table:
    """The table as it is, or with the label whether its value is above the median."""
    if not classes:
        return table
    y = (table.y > np.median(table.y)).astype(float)
    return replace(table, targets=(Target("above", "binary"),), y=y)


@cache
def plain(start: str, classes: bool) -> dict[str, np.ndarray]:
    return weights_of(fine_tuned(None, start, classes=classes))


@pytest.mark.parametrize("name", names("callback"))
class TestEveryCallback:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("callback", name)
        assert issubclass(found.value, Callback) and found.summary and found.value.__doc__

    def test_changes_training_and_the_same_seed_gives_the_same_weights(self, name: str, start: str) -> None:
        one, two = (fine_tuned(name, start) for _ in range(2))
        assert same_bits(weights_of(one), weights_of(two))
        assert (
            same_bits(weights_of(one), plain(start, get("callback", name).classes_only))
            != get("callback", name).changes_training
        )
        assert one.curves is not None and np.isfinite(one.curves.to_numpy()).all()
        assert all(value.requires_grad for value in one.ready().network.parameters()), "it can be trained again"

    def test_a_fit_that_was_stopped_goes_on_exactly(
        self, name: str, start: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole, after_step = fine_tuned(name, start), get("callback", name).after_step
        for stop in (3, 5):  # in the middle of an epoch of each half
            left = iter(range(stop))

            def stopping(self: Callback, network: Any, state: StepState, left: Any = left) -> None:
                after_step(self, network, state)
                if next(left, None) is None:
                    raise Interrupted("stopped")

            with monkeypatch.context() as patch:
                patch.setattr(get("callback", name), "after_step", stopping)
                with pytest.raises(Interrupted):
                    fine_tuned(name, start, tmp_path / str(stop))
            again = fine_tuned(name, start, tmp_path / str(stop))
            assert same_bits(weights_of(again), weights_of(whole))

    def test_stacks_with_another(self, name: str, start: str) -> None:
        other = next(each for each in ("l2-sp(alpha=10)", "lp-ft") if not each.startswith(name))
        classes = get("callback", name).classes_only
        both = weights_of(fine_tuned(f"{name}+{other}", start, classes=classes))
        fixed = get("callback", name).solves_head and get("callback", name).starts_from  # nothing moves
        assert fixed or not same_bits(both, weights_of(fine_tuned(name, start)))
        assert (
            same_bits(both, weights_of(fine_tuned(other, start, classes=classes)))
            != get("callback", name).changes_training
        )

    def test_what_it_taught_is_kept(self, name: str, start: str) -> None:
        fitted = fine_tuned(name, start)
        state = fitted.state()
        again = GraphMethod.from_state(State(dict(state.arrays), state.meta))
        assert again.callback == name
        assert fitted.predict(series(8)).value.tobytes() == again.predict(series(8)).value.tobytes()

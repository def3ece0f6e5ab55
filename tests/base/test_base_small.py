"""Seeds, progress, errors, the registry and the contracts."""

from __future__ import annotations

import io
import subprocess
import sys
from pkgutil import iter_modules
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import molgraph.models
from molgraph.base import progress, registry, seeds
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.errors import ConflictError, UnknownNameError, nearest

words = st.lists(st.text(max_size=8) | st.integers(-9, 9), max_size=3)


def test_seeds_are_the_same_on_every_machine() -> None:
    assert seeds.derive(0) == 8584251947051802233
    assert seeds.derive(1, "split", 3) == 2731388104354938177


@given(st.integers(0, 2**63), words, words)
def test_other_words_give_another_seed(seed: int, one: list[str | int], two: list[str | int]) -> None:
    assert 0 <= seeds.derive(seed, *one) < 2**63
    assert (seeds.derive(seed, *one) == seeds.derive(seed, *two)) == ([repr(w) for w in one] == [repr(w) for w in two])


def test_numpy_integers_are_integers() -> None:
    assert seeds.derive(np.int64(3)) == seeds.derive(3)  # type: ignore[arg-type]


class Terminal(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    screen = Terminal()
    monkeypatch.delenv("MOLGRAPH_QUIET")
    for name, value in {"TERM": "xterm-256color", "COLUMNS": "100", "NO_COLOR": "1"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(progress, "sys", SimpleNamespace(stderr=screen))
    return screen


def test_a_bar_shows_what_and_how_many(terminal: Terminal) -> None:
    assert list(progress.track(iter(range(3)), total=3, label="reading rows")) == [0, 1, 2]
    assert "reading rows" in terminal.getvalue()
    assert " of 3" in terminal.getvalue()


def test_bars_inside_bars_share_the_display(terminal: Terminal) -> None:
    with progress.bar("outer", 2) as outer:
        for _ in progress.track([1, 2], label="inner"):
            outer.advance()
            outer.describe("outer, still")
    assert not progress._shown
    assert "inner" in terminal.getvalue()


def test_a_failure_gives_the_terminal_back(terminal: Terminal) -> None:
    with pytest.raises(ValueError, match="stop"), progress.bar("work"):
        raise ValueError("stop")
    assert not progress._shown
    assert "\x1b[?25h" in terminal.getvalue()  # the cursor is shown again


@pytest.mark.parametrize("how", ["pipe", "quiet", "environment"])
def test_silence(terminal: Terminal, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    if how == "environment":
        monkeypatch.setenv("MOLGRAPH_QUIET", "1")
    if how == "pipe":
        monkeypatch.setattr(terminal, "isatty", lambda: False)
    assert list(progress.track([1, 2], quiet=how == "quiet")) == [1, 2]
    assert terminal.getvalue() == ""


def test_silence_loads_no_rich() -> None:
    code = "import sys\nfrom molgraph.base.progress import track\nlist(track([1]))\nassert 'rich' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, stderr=subprocess.DEVNULL)


def test_nearest_names_known_ones_in_order() -> None:
    assert nearest("mpn", ["dmpnn", "mpnn"]).startswith("did you mean 'mpnn'")
    assert nearest("q", ["a", "b"]) == "known: a, b"
    assert nearest("radom", ["mean", "random_forest"]) == "did you mean 'random_forest'?"
    assert nearest("epoch", ["warmup_epochs", "epochs"]) == "did you mean 'epochs' or 'warmup_epochs'?"
    splits = ["cluster/butina", "random", "scaffold/balanced", "scaffold/chemprop", "scaffold/deepchem"]
    assert nearest("scafold", splits).startswith("did you mean 'scaffold/balanced' or")
    assert nearest("butina", splits) == "did you mean 'cluster/butina'?"
    assert nearest("DMPNN", ["dmpnn"]) == "did you mean 'dmpnn'?"
    assert nearest("n_trees", []) == "there is none to choose"
    assert nearest("?", map(str, range(500))).endswith("18, 19 and 480 more")


@pytest.fixture
def empty_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_entries", {})
    monkeypatch.setattr(registry, "_kinds_loaded", set())
    monkeypatch.setattr(registry, "KINDS", {})
    monkeypatch.setattr(registry, "_plugins_loaded", True)


@pytest.mark.usefixtures("empty_registry")
def test_the_registry_finds_what_was_registered() -> None:
    registry.register("split", "b", summary="two")(len)
    registry.register("split", "a")(max)
    assert registry.names("split") == ["a", "b"]
    assert registry.kinds() == ["split"]
    assert registry.get("split", "b") is len
    assert registry.entry("split", "b").summary == "two"


@pytest.mark.usefixtures("empty_registry")
def test_a_cell_that_is_run_again_registers_its_class_anew() -> None:
    cell = "@register('method', 'mine')\nclass Mine: ..."
    spaces: list[dict[str, object]] = [{"register": registry.register, "__name__": "__main__"} for _ in range(2)]
    for space in spaces:
        exec(cell, space)
    assert registry.get("method", "mine") is spaces[1]["Mine"] is not spaces[0]["Mine"]
    with pytest.raises(ConflictError, match="'mine'"):
        exec(cell, spaces[0] | {"__name__": "another"})


@pytest.mark.usefixtures("empty_registry")
def test_the_registry_refuses_a_second_thing_of_the_same_name() -> None:
    registry.register("split", "a")(max)
    registry.register("split", "a")(max)
    with pytest.raises(ConflictError, match="'a'"):
        registry.register("split", "a")(min)


@pytest.mark.usefixtures("empty_registry")
def test_an_unknown_name_answers_with_the_nearest() -> None:
    registry.register("split", "scaffold")(max)
    with pytest.raises(UnknownNameError, match="'scaffold'"):
        registry.get("split", "scafold")


def test_plugins_are_loaded_once_at_the_first_question(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: list[str] = []
    point = SimpleNamespace(load=lambda: loaded.append("plugin"))
    monkeypatch.setattr(registry, "_plugins_loaded", False)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: [point] if group == "molgraph" else [])
    registry.names("split")
    registry.names("metric")
    assert loaded == ["plugin"]


@pytest.mark.slow
def test_the_registry_knows_molgraphs_own_without_being_told() -> None:
    code = "from molgraph.base import registry\nfor kind in registry.kinds(): print(kind, *registry.names(kind))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    found = {line.split()[0]: line.split()[1:] for line in done.stdout.splitlines()}
    assert set(found) == set(registry.KINDS), done.stderr
    assert {"ensemble", "graph", "mean", "random_forest", "knn", "maplight", "chemprop"} <= set(found["method"])
    assert {module.name for module in iter_modules(molgraph.models.__path__)} <= {
        *found["encoder"],
        *found["generator"],
    }
    assert "norm" in found["readout"]
    assert "rmse" in found["metric"] and "scaffold/balanced" in found["split"] and "standard" in found["standardiser"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "name", "idle"),
    [("encoder", "dmpnn", "molgraph.models.mpnn"), ("method", "mean", "torch"), ("metric", "rmse", "molgraph.models")],
)
def test_asking_for_one_name_imports_no_other(kind: str, name: str, idle: str) -> None:
    code = f"import sys\nfrom molgraph.base import registry\nassert registry.get({kind!r}, {name!r})\n"
    code += f"assert {idle!r} not in sys.modules\nassert len(registry.names({kind!r})) > 2"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.usefixtures("empty_registry")
def test_an_entry_names_its_system_and_has_tags() -> None:
    registry.register("encoder", "weave_ish", system="weave", tags=("pairs",))(len)
    assert [card.id for card in registry.entry("encoder", "weave_ish").systems] == ["weave"]
    assert registry.entry("encoder", "weave_ish").tags == ("pairs",)
    registry.register("encoder", "plain")(max)
    assert (registry.entry("encoder", "plain").systems, registry.entry("encoder", "plain").tags) == ((), ())


class Constant(Method):
    """A method for these tests."""

    def __init__(self, value: float = 1.0, seed: int = 0) -> None:
        self.value, self.seed = value, seed

    def fit(self, table, valid=None, *, workdir=None):  # type: ignore[no-untyped-def]
        return self

    def predict(self, table):  # type: ignore[no-untyped-def]
        raise NotImplementedError

    def state(self) -> State:
        return State({}, {})

    @classmethod
    def from_state(cls, state: State) -> Constant:
        return cls()


def test_parameters_are_the_constructors_keywords() -> None:
    method = Constant(value=2.0)
    assert method.get_params() == {"value": 2.0, "seed": 0}
    assert method.set_params(seed=5) is method
    assert method.seed == 5
    with pytest.raises(UnknownNameError, match="'value'"):
        method.set_params(valeu=3)


def _prediction(**changes: object) -> Prediction:
    targets = (Target("y"), Target("c", "multiclass", classes=("a", "b")))
    fields: dict[str, object] = {
        "ids": np.array(["007", "x"], dtype=object),
        "targets": targets,
        "value": np.array([[1.0, 0.2, 0.8], [np.nan] * 3]),
        "status": np.array(["ok", "unreadable"], dtype=object),
        "reason": np.array(["", "syntax"], dtype=object),
    }
    return Prediction(**(fields | changes))  # type: ignore[arg-type]


def test_a_prediction_has_one_row_for_each_row() -> None:
    prediction = _prediction(spread=np.ones((2, 3)), interval=(np.zeros((2, 3)), np.ones((2, 3))))
    frame = prediction.to_frame()
    assert prediction.columns == ("y", "c:a", "c:b")
    assert prediction.ok.tolist() == [True, False]
    assert frame["id"].tolist() == ["007", "x"]
    assert list(frame)[:5] == ["id", "y", "y_spread", "y_low", "y_high"]
    assert "syntax" in prediction._repr_html_()


@pytest.mark.parametrize(
    "changes", [{"value": np.zeros((2, 2))}, {"value": np.zeros((3, 3))}, {"status": np.array(["ok"], dtype=object)}]
)
def test_a_prediction_of_another_shape_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="expected"):
        _prediction(**changes)

"""Trials that every registered view meets: it keeps what it says it keeps, and training sees it."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from molgraph.base.errors import ConflictError, UnusedSettingError
from molgraph.base.registry import entry, get, names, register
from molgraph.base.seeds import generator
from molgraph.base.table import OK, Entities
from molgraph.chem.identity import canonical_smiles
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featuriser import DEFAULT_FEATURISERS
from molgraph.data.sources import builtin
from molgraph.data.view import View, ViewedColumn, make_views
from molgraph.train.engine import Fit
from molgraph.train.method import GraphMethod
from molgraph.train.runtime import Interrupted
from tests.tiny import same_bits, series, weights_of

N = 50
STEREO = (
    "C[C@H](N)C(=O)O",
    "F/C=C/C[C@@H]1CC[C@H](C)CC1",
    "C/C=C\\[C@@](O)(Cl)[13CH3]",
    "[NH3+][C@@H](C)C([O-])=O.[Na+]",
)


@cache
def molecules() -> np.ndarray:
    return np.array([*builtin.chembl2321810().take(np.arange(N - len(STEREO))).smiles, *STEREO], dtype=object)


def viewed(name: str, featuriser: str, seed: int | None) -> tuple[GraphBatch, list[str]]:
    """The molecules as a featuriser's graphs seen through a view, or plain, and their texts if it sees texts."""
    maker, view = get("featuriser", featuriser)(), get("view", name)()
    store = maker.featurise(molecules())
    assert (store.status == OK).all()
    column = Entities("smiles", "molecule", molecules())
    if seed is None:
        return collate(store, np.arange(N)), list(molecules())
    texts = view(column, generator(seed)).values if view.sees == "column" else molecules()
    made = ViewedColumn((view,), column, maker, store.spec).batch(store, np.arange(N), generator(seed))
    return made, list(texts)


def rows_of(batch: GraphBatch) -> list[bytes]:
    """All that a batch holds of each graph."""
    found = []
    for i in range(batch.n_graphs):
        parts = []
        for name, level in batch.levels.items():
            own = slice(*level.offsets[i : i + 2].tolist())
            parts += [level.arrays[key][own].numpy().tobytes() for key in level.arrays if key not in ("code", *INDEX)]
            parts.append(batch.features(name)[own].numpy().tobytes())
        found.append(b"|".join(parts))
    return found


INDEX = ("source", "target", "reverse")  # count over the batch


def reads(view: type[View]) -> str:
    """A featuriser whose graphs the view can change."""
    return "smiles" if view.graph_invariant else DEFAULT_FEATURISERS["molecule"]


@pytest.mark.parametrize("name", names("view"))
class TestEveryView:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("view", name)
        assert issubclass(found.value, View) and found.summary and found.value.__doc__
        assert found.value.sees in ("batch", "column") and {*found.value.kinds} <= {*DEFAULT_FEATURISERS}

    def test_the_same_seed_gives_the_same_view_and_most_graphs_look_different(self, name: str) -> None:
        maker = reads(get("view", name))
        plain, one, two, other = (rows_of(viewed(name, maker, seed)[0]) for seed in (None, 1, 1, 2))
        assert one == two
        for a, b in ((plain, one), (one, other)):
            assert len(a) == len(b) == N and sum(x != y for x, y in zip(a, b, strict=True)) > 0.8 * N

    def test_the_graph_stays_the_same_where_it_says_so(self, name: str) -> None:
        view, graph = get("view", name), DEFAULT_FEATURISERS["molecule"]
        if view.sees == "column":
            texts = viewed(name, graph, 1)[1]
            same = [
                a.smiles == b.smiles != "" for a, b in zip(*map(canonical_smiles, (texts, molecules())), strict=True)
            ]
        else:
            same = [a == b for a, b in zip(*(rows_of(viewed(name, graph, seed)[0]) for seed in (1, None)), strict=True)]
        assert all(same) if view.graph_invariant else sum(same) < 0.2 * N

    def test_it_leaves_the_plain_batch_as_it_was(self, name: str) -> None:
        view = get("view", name)()
        plain = (
            viewed(name, reads(type(view)), None)[0] if view.sees == "batch" else Entities("a", "molecule", molecules())
        )
        before = rows_of(plain) if isinstance(plain, GraphBatch) else list(plain.values)
        view(plain, generator(0))
        assert before == (rows_of(plain) if isinstance(plain, GraphBatch) else list(plain.values))

    def test_training_sees_it_validation_does_not_and_a_stopped_fit_goes_on_exactly(
        self, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = list[bool]()
        call = get("view", name).__call__

        def counted(self: View, *args: Any) -> Any:
            seen.append(True)
            return call(self, *args)

        monkeypatch.setattr(get("view", name), "__call__", counted)
        whole = fitted(name)
        assert len(seen) == 2 * 2, "two batches of two epochs of training"
        assert not same_bits(weights_of(whole), weights_of(fitted(name, views=None)))
        before, stop = Fit._pause, iter(range(3))

        def stopping(self: Fit, *args: Any) -> None:
            before(self, *args)
            if next(stop, None) is None:
                raise Interrupted("stopped")

        with monkeypatch.context() as patch:
            patch.setattr(Fit, "_pause", stopping)
            with pytest.raises(Interrupted):
                fitted(name, tmp_path)
        assert same_bits(weights_of(fitted(name, tmp_path)), weights_of(whole))


def fitted(name: str, workdir: Path | None = None, **params: Any) -> GraphMethod:
    encoder = "tokens" if get("view", name).graph_invariant else "dmpnn"
    small = {
        "views": name,
        "params": dict(get("encoder", encoder).small),
        "head_width": 8,
        "epochs": 2,
        "batch_size": 16,
    }
    method = GraphMethod(encoder, **{**small, "threads": 1, "checkpoint_seconds": 0.0, **params})
    return method.fit(series(32), series(16, 100), workdir=workdir)


def test_what_changes_nothing_and_what_breaks_labels_is_refused() -> None:
    with pytest.raises(UnusedSettingError, match="graphs of a molecule"):
        GraphMethod("dmpnn", views="random_smiles", epochs=1).fit(series(16))
    with pytest.raises(ConflictError, match="masked-atoms"):
        GraphMethod("gin", views="mask", objective="masked-atoms", epochs=1).fit(series(16))

    @register("view", "breaks_labels_in_a_test", summary="for this test")
    class Breaks(get("view", "mask")):  # type: ignore[misc]
        """Another molecule."""

        keeps_label = False

    with pytest.raises(ConflictError, match="labels"):
        GraphMethod("dmpnn", views="breaks_labels_in_a_test", epochs=1).fit(series(16))


def test_views_stack_columns_first() -> None:
    maker = get("featuriser", "smiles")()
    store, column = maker.featurise(molecules()), Entities("smiles", "molecule", molecules())
    both = [
        rows_of(
            ViewedColumn(tuple(make_views(text)), column, maker, store.spec).batch(store, np.arange(N), generator(0))
        )
        for text in ("random_smiles+mask(p=0.3)", "mask(p=0.3)+random_smiles")
    ]
    assert both[0] == both[1]
    hidden = viewed("mask", "smiles", 0)[0]
    share = (hidden.features("token").sum(dim=1) == 0).float().mean()
    assert 0.1 < share < 0.2, "a tenth and one token of each"

"""A corpus of junction trees that is kept beside a checkpoint is the one that was read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from molgraph.data.graph_store import GraphStore
from molgraph.data.table import make_table
from molgraph.generate import jtvae_corpus
from molgraph.generate.jtvae import JTVAE
from molgraph.generate.jtvae_corpus import FILE, Language, read_trees
from molgraph.train.checkpoint import FILE_NAME
from tests.tiny import series

SMALL = {"d_hidden": 8, "d_latent": 4, "batch_size": 8}


def same(a: GraphStore, b: GraphStore) -> bool:
    return a.spec == b.spec and all(
        np.array_equal(a.levels[name].offsets, level.offsets)
        and a.levels[name].index == level.index
        and all(
            np.array_equal(a.levels[name].arrays[k], v) and a.levels[name].arrays[k].dtype == v.dtype
            for k, v in level.arrays.items()
        )
        for name, level in b.levels.items()
    )


def test_a_kept_corpus_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, valid = series(30), make_table(["OC1CCCC1", "CC(N)C(=O)O", "not a molecule", "C1CC[Se]C1"])
    read = [0]
    decompose = jtvae_corpus.read_corpus

    def counted(*args: object, **how: object) -> object:
        read[0] += 1
        return decompose(*args, **how)

    monkeypatch.setattr(jtvae_corpus, "read_corpus", counted)
    first, again = (read_trees(table, valid, folder=tmp_path) for _ in range(2))
    assert read == [1] and same(first.train.stores[0], again.train.stores[0])
    assert first.valid is not None and again.valid is not None and same(first.valid.stores[0], again.valid.stores[0])
    assert (first.content, first.notes) == (again.content, again.notes) and len(first.valid) < 4
    a, b = (each.vocabulary for each in (first, again))
    assert isinstance(a, Language) and a.clusters == b.clusters and len(a.graphs) == len(b.graphs) > 1
    whole = np.arange(len(a.graphs))
    for name, level in a.graphs.collate(whole).levels.items():
        other = b.graphs.collate(whole).levels[name]
        assert all(level.arrays[key].equal(value) for key, value in other.arrays.items())
    assert a.graphs._of_hash == b.graphs._of_hash
    read_trees(table, None, folder=tmp_path)
    read_trees(table, None, folder=tmp_path, min_count=2)
    assert read == [3], "other molecules, other options"
    (tmp_path / "train" / "000.npy").write_bytes(b"half")
    read_trees(table, None, folder=tmp_path, min_count=2)
    (tmp_path / FILE).write_text('{"key": ')
    read_trees(table, None, folder=tmp_path, min_count=2)
    assert read == [5], "what is damaged"


def test_training_on_a_kept_corpus_gives_the_same_weights(tmp_path: Path) -> None:
    table = series(20)
    fresh = JTVAE(epochs=1, **SMALL).fit(table)
    JTVAE(epochs=1, **SMALL).fit(table, workdir=tmp_path)
    (tmp_path / FILE_NAME).unlink()
    kept = JTVAE(epochs=1, **SMALL).fit(table, workdir=tmp_path)
    assert (tmp_path / "corpus" / FILE).exists()
    weights = fresh.ready().network.state_dict()
    assert all(value.equal(weights[name]) for name, value in kept.ready().network.state_dict().items())

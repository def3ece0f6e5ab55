"""Cached features: computed once, the same bits, whole whatever happens to the files."""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import numpy as np
import pytest

from molgraph.auxiliary.random_forest import RandomForest
from molgraph.auxiliary.tabular.feature_cache import WRITTEN_FROM, cached_features
from molgraph.auxiliary.tabular.features import Features
from molgraph.auxiliary.tabular.table_featuriser import CHOICES, TableFeaturiser
from molgraph.base.errors import StorageError
from molgraph.chem.fingerprints import Fingerprints
from tests.tiny import series

SMILES = [f"{'C' * i}{tail}" for i in range(1, 11) for tail in ("O", "N", "Cl")]
WIDTH = 3


class Counting:
    """Features that say how often they were asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, smiles: list[str], threads: int) -> Fingerprints:
        self.asked += smiles
        ok = np.array([text != "bad" for text in smiles])
        x = np.array([[len(text), text.count("C"), 0.5] for text in smiles], dtype=np.float32).reshape(-1, WIDTH)
        return Fingerprints(x, ok, np.where(ok, "", "not read").astype(object))


def ask(folder: Path | None, smiles: list[str]) -> tuple[Fingerprints, list[str]]:
    compute = Counting()
    return cached_features(TableFeaturiser("example", WIDTH, compute), smiles, 1, folder), compute.asked


def files(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.npz"))


def test_each_molecule_is_computed_once_and_in_any_order(tmp_path: Path) -> None:
    first, asked = ask(tmp_path, [*SMILES, "bad", SMILES[0]])
    assert sorted(asked) == sorted({*SMILES, "bad"}), "a molecule that stands twice is computed once"
    plain = ask(None, [*SMILES, "bad", SMILES[0]])[0]
    np.testing.assert_array_equal(first.x[first.ok], plain.x[plain.ok])
    assert first.ok.tolist() == plain.ok.tolist() and first.reasons.tolist() == plain.reasons.tolist()
    order = np.random.default_rng(0).permutation(len(SMILES))
    again, asked = ask(tmp_path, [SMILES[i] for i in order] + ["bad"])
    assert asked == ["bad"], "what cannot be read is asked again, which costs nothing"
    np.testing.assert_array_equal(again.x[:-1], first.x[order])
    assert ask(tmp_path, [])[1] == []


def test_new_molecules_join_those_that_are_there(tmp_path: Path) -> None:
    more = [f"{text}F" for text in SMILES]
    ask(tmp_path, SMILES)
    found, asked = ask(tmp_path, SMILES + more)
    assert sorted(asked) == sorted(more) and len(files(tmp_path)) == 2
    np.testing.assert_array_equal(found.x[:, 0], [len(text) for text in SMILES + more])
    ask(tmp_path, ["CCCCCCCCCCCCBr"])
    assert len(files(tmp_path)) == 2 and WRITTEN_FROM > 1, "so few are not worth a file"


@pytest.mark.parametrize("fault", ["cut", "flipped", "empty", "text"])
def test_a_damaged_file_is_made_again(tmp_path: Path, fault: str) -> None:
    first = ask(tmp_path, SMILES)[0]
    (path,) = files(tmp_path)
    data = bytearray(path.read_bytes())
    if fault == "flipped":
        with np.load(path) as file:
            assert file["x"].shape == (len(SMILES), WIDTH)
        data[len(data) // 2] ^= 0xFF
    path.write_bytes({"cut": data[: len(data) // 2], "flipped": data, "empty": b"", "text": b"hello"}[fault])
    found, asked = ask(tmp_path, SMILES)
    assert sorted(asked) == sorted(SMILES)
    np.testing.assert_array_equal(found.x, first.x)
    assert ask(tmp_path, SMILES)[1] == [], "and stands again"


def test_an_array_of_another_width_is_not_believed(tmp_path: Path) -> None:
    ask(tmp_path, SMILES)
    (path,) = files(tmp_path)
    with np.load(path) as file:
        keys = file["keys"]
    np.savez_compressed(path, keys=keys, x=np.zeros((len(keys), WIDTH + 1), np.float32))
    assert sorted(ask(tmp_path, SMILES)[1]) == sorted(SMILES)


def test_nothing_of_a_file_is_run(tmp_path: Path) -> None:
    ask(tmp_path, SMILES)
    (path,) = files(tmp_path)
    with np.load(path) as file:
        keys = file["keys"]
    np.savez_compressed(path, keys=keys, x=np.full((len(keys), WIDTH), None, dtype=object))  # pickled by numpy
    assert sorted(ask(tmp_path, SMILES)[1]) == sorted(SMILES)


def _many(folder: str) -> bytes:
    return ask(Path(folder), SMILES)[0].x.tobytes()


def test_processes_share_a_folder(tmp_path: Path) -> None:
    with multiprocessing.get_context("fork").Pool(4) as pool:
        found = set(pool.map(_many, [str(tmp_path)] * 8))
    assert len(found) == 1 and len(files(tmp_path)) == 1 and not list(tmp_path.rglob("*.tmp"))


def test_a_folder_that_cannot_be_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match="file"):
        ask(tmp_path / "file", SMILES)


@pytest.mark.parametrize("choice", [each for each in CHOICES if each != "vectors"])
def test_features_are_the_same_with_a_store_and_without(tmp_path: Path, choice: str) -> None:
    table = series(24)
    plain = Features(choice, 2, 64).fit(table, 1)[1]
    for _ in range(2):
        found = Features(choice, 2, 64).fit(table, 1, str(tmp_path))[1]
        np.testing.assert_array_equal(found.x, plain.x)
    other = Features(choice, 1, 64).fit(table, 1, str(tmp_path))[1]
    assert (other.x != plain.x).any(), "another radius is another feature"


def test_a_model_names_no_folder_of_this_machine(tmp_path: Path) -> None:
    state = RandomForest(5, features="morgan", n_bits=64, store=str(tmp_path)).fit(series(24)).state()
    assert state.meta["params"]["store"] is None

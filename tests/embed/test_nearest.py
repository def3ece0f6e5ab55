"""The nearest rows of a library: equal to brute force over any blocks, for vectors and for fingerprints."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import rdFingerprintGenerator
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import BadValueError, ConflictError, MismatchError, MissingOptionError
from molgraph.cli.main import app
from molgraph.embed import search, vectors
from molgraph.embed.csls import csls_search
from molgraph.embed.search import nearest_vectors, unit
from tests.tiny import series


def test_the_best_are_those_of_brute_force_whatever_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    queries, library = rng.integers(-2, 3, (7, 3)) + 0.0, rng.integers(-2, 3, (101, 3)) + 0.0  # many ties
    cosine = unit(queries) @ unit(library).T
    wanted = np.argsort(-cosine, axis=1, kind="stable")[:, :9]
    for cells in (7, 70, 1 << 20):
        monkeypatch.setattr(search, "CELLS", cells)
        found = nearest_vectors(queries, library, 9)
        np.testing.assert_allclose(found.score, np.take_along_axis(cosine, wanted, 1), atol=1e-6)
        if cells == 1 << 20:
            assert found.row.tolist() == wanted.tolist()
    assert nearest_vectors(queries, library[:3], 9).row[:, 3:].max() == -1


def test_fingerprints_are_compared_as_rdkit_does() -> None:
    smiles = [str(text) for text in series(40).smiles]
    found = molgraph.nearest(smiles[:3], [*smiles[3:], "not a molecule"], k=5, threads=1)
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048).GetFingerprint
    prints = [make(Chem.MolFromSmiles(text)) for text in smiles]
    for i in range(3):
        wanted = sorted(DataStructs.BulkTanimotoSimilarity(prints[i], prints[3:]), reverse=True)[:5]
        own = found[found["query"] == smiles[i]]
        np.testing.assert_allclose(own["similarity"], wanted, atol=1e-6)
        assert own["rank"].tolist() == [1, 2, 3, 4, 5]


def test_molecules_vectors_and_files_of_them_give_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = molgraph.pretrain(series(40), model="gin", params={"d_hidden": 8, "depth": 2}, epochs=1, threads=1)
    file, lib, near = model.save(tmp_path / "enc.mgm"), tmp_path / "lib.csv", tmp_path / "near.csv"
    made = str(tmp_path / "lib.parquet")
    pd.DataFrame({"id": [f"m{i}" for i in range(41)], "smiles": [*series(40).smiles, "xx"]}).to_csv(lib, index=False)
    runner = CliRunner()
    done = runner.invoke(app, ["embed", str(file), str(lib), "-o", made, "--threads", "1"])
    assert done.exit_code == 0, done.output
    monkeypatch.setattr(vectors.vector_blocks, "__defaults__", (7,))
    query = [str(series(40).smiles[5]), "yy"]
    wanted = molgraph.nearest(query, str(lib), by=model, k=3, threads=1)
    for library, by in ((tmp_path / "lib.parquet", file), (str(lib), file)):
        found = molgraph.nearest(query, library, by=by, k=3, threads=1)
        pd.testing.assert_frame_equal(found, wanted, rtol=1e-5)
    assert wanted["id"].iloc[0] == "m5" and wanted["similarity"].iloc[0] == pytest.approx(1, abs=1e-6)
    assert len(wanted) == 4 and wanted["reason"].iloc[3] and wanted["rank"].iloc[3] is pd.NA
    done = runner.invoke(app, ["nearest", made, made, "-o", str(near)])
    assert done.exit_code == 0 and len(pd.read_csv(near)) == 401, done.output
    done = runner.invoke(app, ["nearest", query[0], made])
    assert done.exit_code == 2 and "--by encoder.mgm" in done.output


def test_csls_is_the_equation() -> None:
    rng = np.random.default_rng(0)
    queries, library = rng.normal(size=(20, 4)), rng.normal(size=(50, 4))
    cosine = unit(queries) @ unit(library).T
    of_query, of_row = np.sort(cosine, axis=1)[:, -10:].mean(axis=1), np.sort(cosine, axis=0)[-10:].mean(axis=0)
    wanted = 2 * cosine - of_query[:, None] - of_row
    found = csls_search(queries, library, 3)
    np.testing.assert_allclose(found.score, -np.sort(-wanted, axis=1)[:, :3], atol=1e-5)
    frame = molgraph.nearest(queries, library, k=3, csls=True)
    np.testing.assert_allclose(frame["csls"], found.score.ravel(), atol=1e-5)
    np.testing.assert_allclose(frame["similarity"], np.take_along_axis(cosine, found.row, 1).ravel(), atol=1e-5)


def test_what_cannot_be_compared_is_refused() -> None:
    x = np.ones((2, 3))
    with pytest.raises(MismatchError, match="width 3"):
        molgraph.nearest(x, np.ones((2, 4)))
    with pytest.raises(MissingOptionError, match="one side holds vectors"):
        molgraph.nearest(["CCO"], x)
    with pytest.raises(ConflictError, match="both sides hold vectors"):
        molgraph.nearest(x, x, by="fingerprint")
    with pytest.raises(BadValueError, match="one query"):
        molgraph.nearest(x[:1], x, csls=True)
    with pytest.raises(BadValueError, match="k is 0"):
        molgraph.nearest(x, x, k=0)

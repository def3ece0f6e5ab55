"""Temporary and home folders that are full or not there: a sentence that says what to do, never a traceback."""

from __future__ import annotations

import gzip
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from molgraph.auxiliary.maplight import MapLight
from molgraph.base.errors import CannotWriteError, FormatError
from molgraph.cli.main import app
from molgraph.data.read import read_table
from tests.evaluate.bench_tables import small

resource = pytest.importorskip("resource", reason="limits and users of Unix")
Place = Callable[[], AbstractContextManager[None]]


@contextmanager
def full() -> Iterator[None]:
    """No file may be longer than 4 KiB."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def gone() -> Iterator[None]:
    """The folder for temporary files is not there."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tempfile, "tempdir", "/nowhere")
        yield


@pytest.mark.parametrize("place", [full, gone])
def test_boosted_trees_without_temporary_files(place: Place) -> None:
    pytest.importorskip("catboost")
    with place(), pytest.raises(CannotWriteError, match="TMPDIR"):
        MapLight(iterations=3).fit(small(20))


@pytest.mark.parametrize("place", [full, gone])
def test_packed_parquet_needs_no_temporary_files(place: Place, tmp_path: Path, rng: np.random.Generator) -> None:
    plain, packed = tmp_path / "t.parquet", tmp_path / "t.parquet.gz"
    pd.DataFrame({"smiles": "CCO", "y": rng.normal(size=2000)}).to_parquet(plain)
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    with place():
        assert len(read_table(packed)) == 2000
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(FormatError, match=packed.name):  # no fault of the disk's
        read_table(packed)


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    """A user without a home folder: none in the environment, none in the list of users."""
    import pwd

    def unknown(_: object) -> None:
        raise KeyError

    for name in ("HOME", "XDG_CACHE_HOME", "MOLGRAPH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


@pytest.mark.usefixtures("homeless")
@pytest.mark.parametrize("words", [("doctor",), ("data", "list")], ids=" ".join)
def test_no_home_folder(words: tuple[str, ...]) -> None:
    done = CliRunner().invoke(app, list(words))
    assert done.exit_code == 5 and "no home folder is known for '~/.cache'" in done.output, done.output
    assert "MOLGRAPH_CACHE" in done.output


@pytest.mark.parametrize("name", ["MOLGRAPH_CACHE", "MOLGRAPH_DATA", "DEEPCHEM_DATA_DIR"])
def test_the_home_of_an_unknown_user(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "~nosuchuser/x")
    done = CliRunner().invoke(app, ["data", "list"])
    assert done.exit_code == 5 and "no home folder is known for '~nosuchuser/x'" in done.output, done.output


def test_a_store_in_the_home_of_an_unknown_user(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("smiles,y\n" + "".join(f"{'C' * n}O,{n}\n" for n in range(1, 41)))
    words = ["train", str(tmp_path / "t.csv"), "-t", "y", "-m", "random_forest", "--split", "random"]
    done = CliRunner().invoke(app, [*words, "--store", "~nosuchuser/x", "-o", str(tmp_path / "m.mgm")])
    assert done.exit_code == 5 and "no home folder is known for '~nosuchuser/x'" in done.output, done.output

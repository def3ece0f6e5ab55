"""Datasets by name: where they are looked for, what is checked, and what is said where one is not there."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import CannotReadError, DataError, DownloadError, MismatchError, UnknownNameError
from molgraph.data import cards, datasets
from molgraph.data.content import content_hash
from molgraph.data.sources import dataset_files
from molgraph.data.sources.dataset_files import whereabouts
from molgraph.data.table import make_table
from tests.data.web import Web, serving

CSV = b"smiles,y\nCCO,1.5\nc1ccccc1,2\nC(C,3\nCCN,\n"
HEAD = """name = "toy"
title = "Toy"
about = "A toy."
collection = "MoleculeNet"
rows = 4
{hash}
metric = "rmse"
grade = "C"
grade_reason = "made up"
licence = "none"
citation = "nobody"
[[target]]
names = ["y"]
"""
MakeCard = Callable[..., None]


def sha(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def expected_hash() -> str:
    table = make_table(["CCO", "c1ccccc1", "C(C", "CCN"], targets=(Target("y"),), y=[1.5, 2, 3, np.nan])
    return content_hash(table)


@pytest.fixture
def web() -> Iterator[Web]:
    with serving(Web(**{"toy.csv": CSV})) as one:
        yield one


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakeCard:
    """Writes the card of ``toy`` and looks for it, data and cache below the test's own folder alone."""
    for folder in ("cards", "data", "cache"):
        (tmp_path / folder).mkdir()
    monkeypatch.setattr(cards, "shipped_dir", lambda kind: tmp_path / "cards")
    monkeypatch.setenv("MOLGRAPH_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("MOLGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("DEEPCHEM_DATA_DIR", raising=False)

    def write(*sources: dict[str, str], digest: str = "", **files: bytes) -> None:
        text = HEAD.format(hash=f'hash = "{digest}"' if digest else "")
        for source in sources:
            known = source.pop("sha256", "unverified")
            text += f'[[source]]\nfiles = {{ table = "{source.pop("at")}" }}\nsha256 = {{ table = "{known}" }}\n'
            text += "".join(f'{key} = "{value}"\n' for key, value in source.items())
        (tmp_path / "cards" / "toy.toml").write_text(text, encoding="utf-8")
        for name, data in files.items():
            (tmp_path / "data" / name).write_bytes(data)

    return write


def test_the_folder_of_data_comes_first_and_every_row_stays(toy: MakeCard, web: Web) -> None:
    toy({"place": "data", "at": "a", "sha256": sha(CSV)}, {"place": "url", "at": web.url("toy.csv")}, a=CSV)
    data = datasets.load_dataset("toy")
    assert (len(data), data.origin, web.asked) == (4, "MOLGRAPH_DATA", [])
    assert data.table.ids.tolist() == ["0", "1", "2", "3"]
    assert data.hash == expected_hash()
    assert molgraph.read_table("dataset:toy").smiles.tolist() == data.table.smiles.tolist()


def test_the_hash_is_that_of_the_content_whatever_the_file(toy: MakeCard) -> None:
    other = gzip.compress(b"nothing,y,x,smiles\n,1.5,7,CCO\n,2.0,7,c1ccccc1\n,3,7,C(C\n,NA,7,CCN\n")
    toy({"place": "data", "at": "a"}, digest=expected_hash(), a=other)
    assert datasets.load_dataset("toy").verified


def test_a_file_of_another_hash_is_refused_with_both(toy: MakeCard) -> None:
    toy({"place": "data", "at": "a", "sha256": sha(CSV)}, a=CSV + b"CCC,4\n")
    with pytest.raises(MismatchError) as caught:
        datasets.load_dataset("toy")
    assert sha(CSV) in str(caught.value)
    assert sha(CSV + b"CCC,4\n") in str(caught.value)


def test_content_of_another_hash_is_refused_with_both_and_loads_as_downloaded(toy: MakeCard, web: Web) -> None:
    toy({"place": "url", "at": web.url("toy.csv")}, digest="0" * 64)
    with pytest.raises(MismatchError) as caught:
        datasets.load_dataset("toy")
    assert "0" * 64 in str(caught.value)
    assert expected_hash() in str(caught.value)
    data = datasets.load_dataset("toy@download")
    assert (data.name, data.verified, data.hash) == ("toy@download", False, expected_hash())


def test_a_download_is_kept_recorded_and_not_fetched_twice(toy: MakeCard, web: Web, tmp_path: Path) -> None:
    toy({"place": "url", "at": web.url("toy.csv")})
    first, second = datasets.load_dataset("toy"), datasets.load_dataset("toy")
    assert len(web.asked) == 1
    assert (first.verified, first.hash) == (False, second.hash)
    noted = json.loads((tmp_path / "cache" / "datasets" / "toy" / dataset_files.RECORD).read_text())
    assert noted["files"]["table-toy.csv"]["sha256"] == sha(CSV)
    assert noted["content"] == {"raw": expected_hash()}


def test_a_later_change_in_the_cache_is_refused_with_both_hashes(toy: MakeCard, web: Web, tmp_path: Path) -> None:
    toy({"place": "url", "at": web.url("toy.csv")})
    datasets.load_dataset("toy")
    file = tmp_path / "cache" / "datasets" / "toy" / "table-toy.csv"
    file.write_bytes(CSV.replace(b"1.5", b"1.6"))
    with pytest.raises(MismatchError) as caught:
        datasets.load_dataset("toy")
    assert sha(CSV) in str(caught.value)
    assert sha(file.read_bytes()) in str(caught.value)


def test_a_later_change_at_the_address_is_refused_and_the_old_file_stays(toy: MakeCard, web: Web) -> None:
    toy({"place": "url", "at": web.url("toy.csv")})
    datasets.load_dataset("toy")
    web.files = {"toy.csv": CSV + b"CCC,4\n"}
    known = cards.card("toy")
    with pytest.raises(MismatchError) as caught:
        dataset_files.fetch(known, known.source[0])
    assert sha(CSV) in str(caught.value)
    assert sha(CSV + b"CCC,4\n") in str(caught.value)
    assert len(datasets.load_dataset("toy")) == 4


def test_a_download_that_is_not_the_card_s_file_is_refused(toy: MakeCard, web: Web, tmp_path: Path) -> None:
    toy({"place": "url", "at": web.url("toy.csv"), "sha256": sha(b"other")})
    with pytest.raises(MismatchError, match=sha(b"other")):
        datasets.load_dataset("toy")
    assert not list((tmp_path / "cache").rglob("*.csv"))


@pytest.mark.parametrize("first", [b"<!DOCTYPE html><html>Please log in</html>", CSV[:30], b"smiles,y\nCCO,1.5\n"])
def test_a_first_download_of_something_else_is_not_kept(toy: MakeCard, web: Web, first: bytes) -> None:
    toy({"place": "url", "at": web.url("toy.csv")}, digest=expected_hash())
    web.files = {"toy.csv": first}
    with pytest.raises(DataError) as caught:
        datasets.load_dataset("toy")
    assert f"what {web.url('toy.csv')} gave is not kept" in str(caught.value.hint)
    web.files = {"toy.csv": CSV}
    assert datasets.load_dataset("toy").verified
    toy({"place": "url", "at": web.url("toy.csv")}, digest="0" * 64)
    with pytest.raises(MismatchError):  # a file that did not come just now stays
        datasets.load_dataset("toy")
    assert len(web.asked) == 2 and whereabouts(cards.card("toy")) == "cache"


def test_deepchems_own_folder_serves(toy: MakeCard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    toy({"place": "url", "at": "http://127.0.0.1:9/deepchemdata/a.csv", "sha256": sha(CSV)}, digest=expected_hash())
    with pytest.raises(DownloadError, match="DEEPCHEM_DATA_DIR"):
        datasets.load_dataset("toy")
    (tmp_path / "cards" / "a.csv").write_bytes(CSV)
    monkeypatch.setenv("DEEPCHEM_DATA_DIR", str(tmp_path / "cards"))
    assert datasets.load_dataset("toy").origin == "DeepChem's data folder"
    assert whereabouts(cards.card("toy")) == "deepchem"
    (tmp_path / "cards" / "a.csv").write_bytes(CSV + b"C,1\n")
    with pytest.raises(MismatchError, match=sha(CSV)):
        datasets.load_dataset("toy")


def test_every_set_of_deepchems_is_looked_for_in_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DEEPCHEM_DATA_DIR", str(tmp_path))
    (tmp_path / "delaney-processed.csv").write_text("smiles\n")
    assert whereabouts(cards.card("esol")) in ("deepchem", "here")


def test_nowhere_says_what_to_do(toy: MakeCard) -> None:
    toy({"place": "data", "at": "a"}, {"place": "url", "at": "http://127.0.0.1:9/toy.csv"})
    with pytest.raises(DownloadError) as caught:
        datasets.load_dataset("toy")
    for words in ("toy is not here", "127.0.0.1", "MOLGRAPH_DATA", "molgraph data get toy", "chembl2321810"):
        assert words in str(caught.value)


def test_another_edition_on_this_machine_is_named(toy: MakeCard) -> None:
    toy({"place": "url", "at": "http://127.0.0.1:9/x"}, {"place": "data", "at": "a", "edition": "part"}, a=CSV)
    with pytest.raises(DownloadError, match="toy@part"):
        datasets.load_dataset("toy")
    assert datasets.load_dataset("toy@part").name == "toy@part"


def test_a_damaged_record_is_said(toy: MakeCard, web: Web, tmp_path: Path) -> None:
    toy({"place": "url", "at": web.url("toy.csv")})
    datasets.load_dataset("toy")
    (tmp_path / "cache" / "datasets" / "toy" / dataset_files.RECORD).write_text("{")
    with pytest.raises(CannotReadError, match=dataset_files.RECORD):
        datasets.load_dataset("toy")


@pytest.mark.parametrize(
    ("name", "near"), [("esoll", "'esol'"), ("tox-21", "'tox21'"), ("chembl2321810@c2", "c1"), ("@", "known")]
)
def test_unknown_names_answer_with_near_ones(name: str, near: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        molgraph.load_dataset(name)
    assert near in caught.value.hint


def test_the_built_in_sets_need_neither_data_nor_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOLGRAPH_DATA", raising=False)
    data = molgraph.load_dataset("chembl2321810")
    assert (len(data), data.verified, data.origin) == (1017, True, "the rdkit package")
    assert molgraph.datasets().loc["nci", "found"] == "built in"
    clean = molgraph.load_dataset("chembl2321810@c1")
    assert clean.hash == cards.card("chembl2321810").edition["c1"].hash
    assert "chembl2321810@c1" in repr(clean)
    assert "known faults" in clean._repr_html_()

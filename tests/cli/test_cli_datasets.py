"""molgraph data list, info, get and audit of datasets: what they print, write and refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from molgraph.base.errors import UsageError
from molgraph.cli.main import app
from molgraph.data import cards
from molgraph.data.cards import card, card_names, read_card
from molgraph.data.datasets import load_dataset
from pipelines.cards import audit as card_audit
from tests.data.web import Web, serving

CSV = b"smiles,y\n" + b"".join(f"{'C' * (i + 1)}O,{i}\n".encode() for i in range(20)) + b"OC,7\nC(C,1\n"
CARD = """name = "toy"
title = "Toy"
about = "A toy."
collection = "MoleculeNet"
rows = 1
metric = "rmse"
grade = "C"
grade_reason = "Made up."
licence = "none"
citation = "nobody"
faults = ["All of it."]

[[target]]
names = ["y"]
tolerance = 0.5

[[source]]
place = "url"
files = { table = "URL" }
"""


def run(*words: str) -> tuple[int, str]:
    """Exit code, and all that was printed."""
    result = CliRunner().invoke(app, list(words))
    return result.exit_code, result.output


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Web:
    """The card of ``toy`` alone, whose file is on a server of the test's own."""
    folder = tmp_path / "cards"
    folder.mkdir()
    for module in (cards, card_audit):
        monkeypatch.setattr(module, "shipped_dir", lambda kind: folder)
    monkeypatch.setenv("MOLGRAPH_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("MOLGRAPH_DATA", raising=False)
    with serving(Web(**{"toy.csv": CSV})) as web:
        (folder / "toy.toml").write_text(CARD.replace("URL", web.url("toy.csv")), encoding="utf-8")
        yield web


def test_the_list_names_every_card_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MOLGRAPH_DATA", raising=False)
    code, text = run("data", "list")
    assert code == 0
    names = [line.split()[0] for line in text.splitlines() if line.strip()]
    assert set(card_names()) <= set(names)
    code, text = run("data", "list", "--json")
    rows = json.loads(text)
    assert {row["name"] for row in rows} == set(card_names())
    assert next(row for row in rows if row["name"] == "pcba")["found"] == "unverified"


def test_one_collection_alone_and_an_unknown_one() -> None:
    code, text = run("data", "list", "--collection", "adme")
    assert code == 0
    assert "adme_hlm" in text
    assert "bbbp" not in text
    code, text = run("data", "list", "-c", "MoleculNet")
    assert code == 2
    assert "'MoleculeNet'" in text


def test_info_shows_the_card_with_audit_and_editions() -> None:
    code, text = run("data", "info", "bbbp")
    assert code == 0
    plain = " ".join(text.split())
    for words in ("bbbp: BBBP", "60 groups (124 rows), 10 contradictory", "known faults", "bbbp@c1", card("bbbp").hash):
        assert words in plain
    code, text = run("data", "info", "bbbpp")
    assert code == 2
    assert "'bbbp'" in text


def test_get_fetches_once_and_again_only_when_asked(toy: Web) -> None:
    code, text = run("data", "get", "toy")
    assert (code, len(toy.asked)) == (0, 1)
    assert "22 rows from the cache, unverified" in text
    assert run("data", "list")[1].split()[-1] != "unverified"
    run("data", "get", "toy")
    assert len(toy.asked) == 1
    run("data", "get", "toy", "--again")
    assert len(toy.asked) == 2
    toy.files = {"toy.csv": CSV + b"C,1\n"}
    code, text = run("data", "get", "toy", "--again")
    assert code == 3
    assert "has changed" in text


def test_get_all_goes_on_after_a_failure_and_says_so(toy: Web) -> None:
    toy.files = {}
    code, text = run("data", "get", "--all")
    assert code == 5
    assert "404" in text
    assert run("data", "get")[0] == 2
    assert run("data", "get", "toy", "--all")[0] == 2
    assert run("data", "get", "toyy")[0] == 2


def test_audit_takes_a_dataset_and_a_script_writes_its_card(toy: Web) -> None:
    code, text = run("data", "audit", "toy")
    assert code == 0
    assert "22 rows" in text
    assert "contradiction in y" in text
    card_audit.write_card(load_dataset("toy"))
    made = read_card(cards.shipped_dir("datasets") / "toy.toml")
    assert (made.rows, made.audit.unreadable, made.audit.written.contradictory_groups) == (22, 1, 1)
    assert (made.edition["c1"].rows, made.verified) == (19, True)
    before = (cards.shipped_dir("datasets") / "toy.toml").read_text()
    card_audit.write_card(load_dataset("toy"))
    assert (cards.shipped_dir("datasets") / "toy.toml").read_text() == before
    code, text = run("data", "audit", "tooy")
    assert code == 2
    assert "neither a file nor a dataset 'tooy'" in text
    assert "'toy'" in text
    with pytest.raises(UsageError, match="curated"):
        card_audit.write_card(load_dataset("toy@c1"))


def test_a_file_of_a_dataset_s_name_is_the_file(toy: Web, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "toy").write_text("smiles\nC\n")
    monkeypatch.chdir(tmp_path)
    code, text = run("data", "audit", "toy")
    assert (code, toy.asked) == (0, [])
    assert "1 row," in text

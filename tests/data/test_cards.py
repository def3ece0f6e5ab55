"""Every card: whole, true to its name, of things that molgraph knows, and true to the files where they are here."""

from __future__ import annotations

import re
import zipfile
from html import escape
from pathlib import Path

import numpy as np
import pytest

from molgraph.base.errors import FormatError, UnknownNameError
from molgraph.base.registry import names
from molgraph.base.resources import recipe_path, shipped_dir
from molgraph.data import datasets
from molgraph.data.cards import Card, card, card_html, card_names, card_text, read_card
from molgraph.data.sources.dataset_files import Found, look
from molgraph.data.sources.download import sha256_of
from molgraph.data.sources.layouts import LAYOUTS, read_layout

MOLECULENET = [
    "qm7",
    "qm7b",
    "qm8",
    "qm9",
    "esol",
    "freesolv",
    "lipo",
    "pcba",
    "muv",
    "hiv",
    "pdbbind",
    "bace",
    "bbbp",
    "tox21",
    "toxcast",
    "sider",
    "clintox",
]
FANG = ["adme_hlm", "adme_rlm", "adme_mdr1er", "adme_sol", "adme_hppb", "adme_rppb"]
TU = ["mutag", "proteins", "enzymes", "dd", "collab", "imdb_binary", "imdb_multi", "nci1", "ptc_mr"]
TDC = [name for name in card_names() if name.startswith("tdc_")]
OTHERS = ["zinc250k", "moses", "guacamol", "davis", "kiba", "chembl2321810", "nci", "pdbbind_complexes", "ppi_yeast"]
SLOW = ("collab", "kiba", "zinc250k", "toxcast")  # their content is checked by whoever writes the audit anew


def test_all_that_were_promised_have_a_card() -> None:
    assert len(MOLECULENET) == 17 and len(TDC) == 22
    assert set(MOLECULENET + FANG + TU + OTHERS) <= set(card_names())
    assert len(names("split")) > 5


@pytest.mark.parametrize("name", card_names())
def test_a_card_is_whole(name: str) -> None:
    one = card(name)
    assert one.name == name
    assert one.split in names("split")
    assert one.metric in names("metric") if one.target else one.metric == ""
    assert one.about.endswith(".")
    assert one.grade_reason.endswith(".")
    assert one.faults, "nothing is without a fault"
    assert len({t.name for t in one.targets}) == len(one.targets)
    for source in one.source:
        assert source.layout in LAYOUTS
        assert source.place == "rdkit" or set(source.sha256) >= set(source.files)
        assert source.place != "url" or all(url.startswith("https://") for url in source.files.values())
        assert source.place != "data" or source.verified
        assert source.edition == "raw" or source.note, "another edition says what differs"
    raw = [s for s in one.source if s.edition == "raw"]
    assert raw
    assert all(s.rows == one.rows for s in raw)
    assert one.verified == any(s.place in ("data", "rdkit") for s in raw)


# Wu et al. 2018, Chem. Sci. 9:513, table 3: recommended metric and split. molgraph's files of PDBbind have no years.
WU = {
    "rmse random": "esol freesolv lipo pdbbind",
    "mae random": "qm8 qm9",
    "mae stratified/deepchem": "qm7 qm7b",
    "prc_auc random": "pcba muv",
    "roc_auc scaffold/deepchem": "hiv bace bbbp",
    "roc_auc random": "tox21 toxcast sider clintox",
}


@pytest.mark.parametrize("what", WU)
def test_moleculenets_own_metric_and_split_are_recommended(what: str) -> None:
    for name in WU[what].split():
        assert f"{card(name).metric} {card(name).split}" == what, name


@pytest.mark.parametrize("name", card_names())
def test_a_card_s_metric_fits_its_task(name: str) -> None:
    one = card(name)
    kinds = {t.kind for t in one.targets}
    good = {"regression": {"rmse", "mae", "spearman"}, "binary": {"roc_auc", "prc_auc"}, "multiclass": {"accuracy"}}
    good["regression"] |= {"ci"} if one.entity == "pair" else set()
    assert all(one.metric in good[kind] for kind in kinds)
    if kinds == {"binary"} and one.audit is not None:
        shares = one.audit.positives
        rare = shares.get("median", sum(shares.values()) / len(shares)) < 0.02
        assert (one.metric == "prc_auc") == rare


def test_moleculenets_own_splits_are_recommended() -> None:
    assert {n for n in MOLECULENET if card(n).split.startswith("scaffold")} == {"hiv", "bace", "bbbp"}
    assert {n for n in MOLECULENET if card(n).metric == "prc_auc"} == {"pcba", "muv"}


@pytest.mark.parametrize("name", card_names())
def test_pages_say_all_and_fit_their_width(name: str) -> None:
    one = card(name)
    page = card_text(one, 80)
    assert max(map(len, page.splitlines())) <= 80 or re.search(r"\S{60}", page)
    for words in (one.title, one.grade_reason, one.citation, *one.faults):
        assert " ".join(words.split()) in " ".join(page.split())
        assert escape(words) in card_html(one)


def test_a_wrong_card_is_refused_by_its_key(tmp_path: Path) -> None:
    text = (shipped_dir("datasets") / "esol.toml").read_text("utf-8")
    file = tmp_path / "esol.toml"
    for old, new, words in (
        ('grade = "C"', 'grade = "D"', "grade"),
        ('metric = "rmse"', 'metrik = "rmse"', "'metric'"),
        ('place = "url"', 'place = "moon"', "place"),
        ("rows = 1128", "rows = ", "not TOML"),
    ):
        file.write_text(text.replace(old, new, 1), encoding="utf-8")
        with pytest.raises(FormatError) as caught:
            read_card(file)
        assert words in str(caught.value)


def test_recipes_are_found_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="no-such-recipe"):
        recipe_path("no-such-recipe")
    own = tmp_path / "own.toml"
    own.write_text("")
    assert recipe_path(own) == own


@pytest.mark.parametrize("name", TDC)
def test_a_tdc_set_is_read_out_of_the_group_s_zip_with_its_published_parts(tmp_path: Path, name: str) -> None:
    one, path = card(name), tmp_path / "group.zip"
    (source,) = one.source
    with zipfile.ZipFile(path, "w") as archive:
        for folder in ("another_set", source.member):
            archive.writestr(f"admet_group/{folder}/train_val.csv", "Drug_ID,Drug,Y\na,CCO,1\nb,c1ccccc1O,0\n")
            archive.writestr(f"admet_group/{folder}/test.csv", "Drug_ID,Drug,Y\nc,CCN,1\n")
    table = read_layout(one, Found(source, {"zip": path}))
    assert table.smiles.tolist() == ["CCO", "c1ccccc1O", "CCN"]
    assert table.split is not None and table.split.tolist() == ["train", "train", "test"]
    assert table.y is not None and table.row_targets == one.targets
    assert table.y[:2, 0].tolist() == [1.0, 0.0]
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"admet_group/{source.member}/train_val.csv", "Drug_ID,Drug,Y\na,CCO,1\n")
    with pytest.raises(FormatError, match=r"/test\.csv"):
        read_layout(one, Found(source, {"zip": path}))


@pytest.mark.data
@pytest.mark.parametrize("name", card_names())
def test_every_file_that_is_here_is_the_card_s(name: str) -> None:
    one: Card = card(name)
    for source in (s for s in one.source if s.place == "data"):
        found = look(one, source)
        assert found is not None, f"{name}@{source.edition} is not here"
        assert {role: sha256_of(path) for role, path in found.files.items()} == source.sha256


@pytest.mark.data
@pytest.mark.parametrize("name", [n for n in card_names() if n not in SLOW])
def test_every_edition_that_is_here_loads_as_its_card_says(name: str) -> None:
    one = card(name)
    for source in (s for s in one.source if s.place in ("data", "rdkit")):
        data = datasets.load_dataset(f"{name}@{source.edition}")
        assert data.verified
        assert len(data) == source.rows
        assert data.table.row_targets == one.targets
        if source.edition != "raw" or data.table.y is None or name == "qm8":  # dark states have the strength 0
            continue
        censored = {name: group.censored for group in one.target for name in group.names}
        for y, target in zip(data.table.y.T, one.targets, strict=True):
            if target.kind == "regression":  # a censored share is that of the lowest or of the highest value
                y = y[np.isfinite(y)]
                share = max((y == y.min()).mean(), (y == y.max()).mean())
                assert round(share, 2) == censored[target.name] or (
                    share < max(0.02, 1.5 / len(y)) and not censored[target.name]
                )


def test_a_card_without_a_curated_edition_says_why() -> None:
    assert "no edition: no tolerance" in card_text(card("pdbbind")) and "were not at hand" in card_text(card("muv"))
    assert not any("no edition" in card_text(card(name)) for name in ("bbbp", "zinc250k", "mutag"))


def test_what_makes_labels_contradictory_stands_beside_each_count() -> None:
    esol, tox21 = (" ".join(card_text(card(name)).split()) for name in ("esol", "tox21"))
    assert "6 contradictory (12 rows; values that differ at all)" in esol
    assert "- out: contradictory (values more than 0.5 log10(mol/L) apart): 2" in esol
    assert "differs between them (a value by more than 0.5 log10(mol/L)) is out" in esol
    assert "59 contradictory (142 rows; different labels)" in tox21
    assert "- label out: contradictory (different labels): 81" in tox21
    assert "a label that differs between them is out" in tox21 and "nothing" not in tox21
    assert ", 0 contradictory (" not in " ".join(card_text(card(name)) for name in card_names())

"""Trials that every registered standardiser meets."""

from __future__ import annotations

from pathlib import Path

import pytest

from molgraph.base.registry import entry, names
from molgraph.chem.smiles import parse_smiles
from molgraph.chem.standardise import Preset, standardise_smiles

NASTY = [line.split("\t")[0] for line in (Path(__file__).parents[1] / "nasty.tsv").read_text("utf-8").splitlines()[1:]]
PLAIN = ["CCO", "c1ccccc1", "CC(=O)[O-].[Na+]", "C[NH3+].[Cl-]", "[2H]OC", "C[C@H](N)C(=O)O", "O=c1cccc[nH]1"]


@pytest.mark.parametrize("name", names("standardiser"))
class TestEveryStandardiser:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("standardiser", name)
        assert isinstance(found.value, Preset) and found.value.name == name and found.summary
        assert found.value.label.startswith(f"{name}/")

    def test_one_text_for_one_and_a_readable_one_stays_readable(self, name: str) -> None:
        texts = [*PLAIN, *NASTY]
        done = standardise_smiles(texts, name, workers=1)
        assert len(done.values) == len(done.reasons) == len(texts)
        for before, after, reason in zip(texts, done.values, done.reasons, strict=True):
            assert not reason or after == before, "what cannot be read stays as it is"
            if parse_smiles(before).mol is not None:
                assert parse_smiles(after).mol is not None, before

    def test_a_second_time_changes_nothing(self, name: str) -> None:
        once = standardise_smiles([*PLAIN, *NASTY], name, workers=1).values
        assert standardise_smiles(once, name, workers=1).values.tolist() == once.tolist()

    def test_what_it_does_not_concern_it_would_not_change(self, name: str) -> None:
        chosen = entry("standardiser", name).value
        for text in PLAIN:
            if not chosen.concerns(text):
                mol = parse_smiles(text).mol
                for step in chosen.steps:
                    assert step(mol) is mol, text

"""Oracles against RDKit and published values, objectives as text, and calls that are cached, counted and bounded."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rdkit import Chem, DataStructs
from rdkit.Chem import QED, Crippen, Descriptors, rdFingerprintGenerator

from molgraph.base import errors
from molgraph.chem.alerts import alerts_of
from molgraph.chem.quality import measure
from molgraph.data.table import make_table
from molgraph.generate.oracles.calls import SPENT, OracleCalls, drop_journal
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.oracle import FunctionOracle, Oracle, Scores
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.oracles.similarity import Molecules, Nearest
from molgraph.generate.oracles.time_limit import ABANDONED
from tests.tiny import series

SMILES = [*series(8).smiles]
RINGS = "C1CCCCCCCCC1"  # ten atoms: four beyond six


@pytest.mark.data
def test_logp_and_sa_are_those_of_the_published_list(data_dir: Path) -> None:
    lines = [line.split() for line in (data_dir / "zinc250k" / "opt.test.logP-SA").read_text().splitlines()]
    smiles, published = [line[0] for line in lines], np.array([float(line[1]) for line in lines])
    gap = np.abs(measure("logp", smiles).value - measure("sa", smiles).value - published)
    assert len(gap) == 800 and (gap < 1e-9).sum() == 799 and gap.max() < 0.2, "one is read otherwise by today's RDKit"
    cycles = measure("cycle_penalty", smiles).value
    assert np.allclose(measure("penalized_logp", smiles).value, published - cycles, atol=0.2) and cycles.max() >= 2


def test_properties_are_rdkit_s() -> None:
    mols = [Chem.MolFromSmiles(text) for text in SMILES]
    assert measure("qed", SMILES).value.tolist() == [QED.qed(mol) for mol in mols]
    logp = np.array([Crippen.MolLogP(mol) for mol in mols])
    sa, cycle = measure("sa", SMILES).value, measure("cycle_penalty", SMILES).value
    scaled = (logp - 2.4570953) / 1.4343244 + (-sa + 3.0525811) / 0.8335207 + (-cycle + 0.0485697) / 0.2860212
    assert np.allclose(measure("penalized_logp_zinc", SMILES).value, scaled)
    assert measure("mw", SMILES).value.tolist() == [Descriptors.MolWt(mol) for mol in mols]
    assert measure("tpsa", SMILES).value.tolist() == [Descriptors.TPSA(mol) for mol in mols]
    aspirin = {"hbd": 1, "hba": 3, "rotatable_bonds": 2, "rings": 1, "heavy_atoms": 13, "charge": 0, "tpsa": 63.6}
    found = {name: float(measure(name, ["CC(=O)Oc1ccccc1C(O)=O"]).value[0]) for name in (*aspirin, "mw")}
    assert found == pytest.approx({**aspirin, "mw": 180.159}) and measure("charge", ["C[NH3+]"]).value == 1
    assert measure("cycle_penalty", [RINGS, "C1CCCCC1", "CC", "C(C"]).value.tolist()[:3] == [4, 0, 0]
    (found,) = alerts_of(["O=Cc1ccc(N=Nc2ccccc2)cc1"])
    assert "aldehyde" in found and len(found) > 1
    with pytest.raises(errors.UnknownNameError, match="'BRENC'"):
        alerts_of(["C"], ["BRENC"])


def test_nearest_is_rdkit_s_tanimoto() -> None:
    make = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    prints = [make.GetFingerprint(Chem.MolFromSmiles(text)) for text in SMILES]
    found = Molecules(SMILES[:5]).nearest(SMILES[5:])
    for i, print_ in enumerate(prints[5:]):
        all_of = DataStructs.BulkTanimotoSimilarity(print_, prints[:5])
        assert found.similarity[i] == max(all_of) and found.smiles[i] == SMILES[int(np.argmax(all_of))]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("qed", "qed"),
        (" qed:1 , sa<4", "qed,sa<4"),
        ("penalized_logp:0.5,sa:2<=4.5,alerts<1", "penalized_logp:0.5,sa:2<=4.5,alerts<1"),
        ("qed,similarity(CC(=O)O[C@H](C)C#N)>0.4", "qed,similarity>0.4"),
        ("qed,logp>1<3", "qed,logp>1<3"),
        ("qed,sa>=4,sa<=4", "qed,sa>=4,sa<=4"),
        ("qed,similarity(CCO)>0.6,similarity(CCN)<0.4", "qed,similarity>0.6,similarity<0.4"),
        ({"qed": 1.0, "sa": {"max": 4}}, "qed,sa<=4"),
        ({"qed": {"weight": -2, "min": 0.1}, "similarity": {"lead": "CCO", "min": 0.4}}, "qed:-2>=0.1,similarity>=0.4"),
    ],
)
def test_objectives_as_texts_and_mappings(given: object, words: str) -> None:
    assert read_oracle(given).words == words  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "kind", "said"),
    [
        ("qedd", errors.UnknownNameError, "'qedd'"),
        ("qed<", errors.BadValueError, "'qed<'"),
        ("sa<4", errors.BadValueError, "bounds alone"),
        ("", errors.BadValueError, "empty"),
        (" , ", errors.BadValueError, "empty"),
        ("qed,sa<4>5", errors.ConflictError, "'sa'"),
        ("qed,alerts<1>=1", errors.ConflictError, "'alerts'"),
        ("qed,sa>5,sa<4", errors.ConflictError, "'sa>5' and 'sa<4'"),
        ("sa>=4,logp<3,sa:2<4", errors.ConflictError, "'sa>=4' and 'sa:2<4'"),
        ("qed,similarity(CCO)>0.6,similarity(CCO)<=0.6", errors.ConflictError, "'similarity<=0.6'"),
        ("qed(3)", errors.UnusedSettingError, "'qed'"),
        ({"qed": {"weigt": 3}}, errors.UnknownNameError, "weigt"),
        ({"qed": "much"}, errors.BadValueError, "'much'"),
        ({"nearest": {}}, errors.MissingOptionError, "table"),
    ],
)
def test_objectives_that_make_no_sense(given: object, kind: type[errors.UsageError], said: str) -> None:
    with pytest.raises(kind, match=said):
        read_oracle(given)  # type: ignore[arg-type]


def test_similarity_needs_a_lead_that_can_be_read(tmp_path: Path) -> None:
    with pytest.raises(errors.DataError, match="--start"):
        read_oracle("qed,similarity>0.4")
    assert read_oracle("qed,similarity>0.4", lead="CCO").score_parts(["CCO"]).parts[0, 1] == 1
    with pytest.raises(errors.CellError, match="'xx'"):
        read_oracle("similarity(xx)").score(["CCO"])
    (tmp_path / "o.toml").write_text("[qed]\nweight = 2\n[sa]\nmax = 4\n")
    assert read_oracle(tmp_path / "o.toml").words == "qed:2,sa<=4"
    (tmp_path / "o.toml").write_text("qed = ")
    with pytest.raises(errors.UsageError, match="TOML"):
        read_oracle(str(tmp_path / "o.toml"))


def test_the_guide_falls_with_the_distance_from_bounds() -> None:
    objective = read_oracle("qed:1,sa:0.1<2")
    found = objective.score_parts(["CCO", RINGS, SMILES[0], "C(C"])
    qed, sa = found.parts.T
    assert np.allclose(found.total[:3], qed[:3] - 0.1 * sa[:3]) and math.isnan(found.total[3])
    assert found.within.tolist() == [True, bool(sa[1] < 2), bool(sa[2] < 2), False]
    assert np.allclose(found.guide[:3], found.total[:3] - (0.2 + 0.1) * np.maximum(sa[:3] - 2, 0))


def test_strict_bounds_leave_their_own_number_outside() -> None:
    aldehyde, none = "O=Cc1ccccc1", "CCO"
    for words, kept in {"<1": [0, 1], "<=1": [1, 1], ">0": [1, 0], ">=0": [1, 1], "<=1<1": [0, 1]}.items():
        found = read_oracle(f"qed,alerts{words}").score_parts([aldehyde, none])
        assert found.parts[0].tolist()[1] == 1 and found.within.tolist() == kept, words
    found = read_oracle("qed,alerts<1").score_parts([aldehyde])
    assert found.guide < found.total, "a search is led away from it"
    assert read_oracle({"qed": 1, "alerts": {"max": 1}}).score_parts([aldehyde]).within.all()


def test_calls_are_counted_once_a_molecule_and_end_with_the_budget() -> None:
    asked: list[str] = []

    def letters(text: str) -> float:
        asked.append(text)
        return len(text)

    calls = OracleCalls(read_oracle(letters), budget=3)
    first = calls.score(["CCO", "OCC", "C(C", "CC"])
    assert asked == ["CCO", "CC"] and calls.left == 1
    assert [one.call for one in first] == [1, 1, 0, 2] and "SMILES" in first[2].reason
    again = calls.score(["C(O)C", "CCC", "CCCC"])
    assert [one.call for one in again] == [1, 3, 0] and again[2].reason == SPENT and calls.left == 0
    with pytest.raises(errors.BadValueError, match="budget is 0"):
        OracleCalls(read_oracle("qed"), budget=0)


def test_no_molecule_ends_the_run() -> None:
    hang = threading.Event()

    def moody(text: str) -> float:
        if text == "CCO":
            raise KeyError("no entry")
        if text == "CCN":
            return math.nan
        if text == "CCS":
            hang.wait(20)
        return 1.0

    calls = OracleCalls(read_oracle(moody), budget=9, seconds=0.2)
    found = calls.score(["CCO", "CCN", "CCS", "CCC"])
    assert [one.reason for one in found[:2]] == ["the oracle failed: 'no entry'", "the score is nan"]
    assert "takes longer than 0.2 s" in found[2].reason and found[3].total == 1.0 and calls.left == 5

    def stuck(text: str) -> float:
        hang.wait(20)
        return 1.0

    calls = OracleCalls(read_oracle(stuck), budget=20, seconds=0.01)
    found = calls.score(["C" * n for n in range(1, ABANDONED + 3)])
    assert "have not come back" in found[-1].reason and "longer" in found[0].reason
    hang.set()


def test_a_failure_in_a_batch_costs_the_others_nothing() -> None:
    class Batch(Combined):
        def score_parts(self, smiles):  # type: ignore[no-untyped-def]
            if "CCO" in smiles:
                raise RuntimeError("all of them")
            return super().score_parts(smiles)

    calls = OracleCalls(Batch(read_oracle("qed").terms), budget=5)
    found = calls.score(["CC", "CCO", "CCC"])
    assert [one.reason for one in found] == ["", "the oracle failed: all of them", ""]


def test_a_slow_batch_is_asked_once_and_has_the_time_of_its_molecules() -> None:
    asked: list[str] = []

    class Docking(Oracle):
        name = "docking"
        wait = 0.0

        def score(self, smiles: Sequence[str]) -> Scores:
            asked.extend(smiles)
            threading.Event().wait(self.wait)
            return Scores(np.ones(len(smiles)), np.full(len(smiles), ""))

    oracle = Docking()
    calls = OracleCalls(read_oracle(oracle), budget=20, seconds=0.2)
    oracle.wait = 0.5
    assert all(one.total == 1 for one in calls.score(["C" * n for n in (1, 2, 3, 4)]))
    oracle.wait = 3
    found = calls.score(["CN", "CO", "CS"])
    assert all("longer" in one.reason for one in found) and asked[4:] == ["CN", "CO", "CS"] and calls.left == 13


def test_a_run_that_was_cut_short_goes_on(tmp_path: Path) -> None:
    asked: list[str] = []

    def letters(text: str) -> float:
        asked.append(text)
        return len(text) if text != "CC" else math.nan

    path = tmp_path / "a.journal"
    kept = FunctionOracle(letters, version="1")
    one = OracleCalls(read_oracle(kept), 10, journal=path)
    assert not path.exists(), "without a call there is nothing to keep"
    first = one.score(["CCO", "CC"])
    one.close()
    path.write_text(path.read_text() + '{"smiles": "CCCC", "cal')
    two = OracleCalls(read_oracle(kept), 10, journal=path)
    again = two.score(["CC", "CCO", "CCC"])
    two.close()
    assert asked == ["CCO", "CC", "CC", "CCC"], "what has a score is not called again, what failed is"
    assert again[1].total == first[0].total and again[0].reason == first[1].reason
    assert [each.call for each in again] == [1, 2, 3] and two.left == 7, "but it is counted"
    assert len(path.read_text().splitlines()) == 4 and all(json.loads(line) for line in path.read_text().splitlines())
    assert drop_journal(path, ["CC", "CCO"]) == 1 and path.exists(), "a call of another search is kept"
    assert drop_journal(path, ["CC", "CCO", "CCC"]) == 0 and not path.exists()


def test_a_journal_of_older_versions_goes_on(tmp_path: Path) -> None:
    path, oracle = tmp_path / "a.journal", read_oracle("qed")
    line = {"smiles": "CCO", "call": 1, "objective": 0.4, "guide": 0.4, "within": True, "parts": [0.4], "reason": ""}
    header = {"objective": oracle.content, "words": "qed"}
    path.write_text(f"{json.dumps(header)}\n{json.dumps(line)}\n")
    calls = OracleCalls(oracle, 10, journal=path)
    assert calls.score(["OCC", "CC"])[0].total == 0.4
    calls.close()
    assert next(json.loads(each)["objective"] for each in path.read_text().splitlines()[1:]) == 0.4


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("qed,similarity(CCO)>0.05", "qed,similarity(O=C(Nc1ccccc1)c1ccccc1)>0.05"),
        ("qed,sa<4", "qed,sa<=4"),
        ("qed,logp<3.0000001", "qed,logp<3.0000004"),
        ("qed:1234567", "qed:1234568.9"),
        (FunctionOracle(len, version="1"), FunctionOracle(len, version="2")),
        ({"qed": 1, "near": Nearest(make_table(["CCO"]))}, {"qed": 1, "near": Nearest(make_table(["CCC"]))}),
    ],
)
def test_calls_are_kept_for_one_objective(tmp_path: Path, one: Any, two: Any) -> None:
    path = tmp_path / "a.journal"
    calls = OracleCalls(read_oracle(one), 10, journal=path)
    calls.score(["CCO", "CC"])
    calls.close()
    before = path.read_bytes()
    assert len(OracleCalls(read_oracle(one), 10, journal=path).resumed) == 2
    with pytest.raises(errors.ConflictError, match="2 calls"):
        OracleCalls(read_oracle(two), 10, journal=path)
    assert path.read_bytes() == before


def test_a_file_that_is_no_journal_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text("smiles,value\nCCO,1\n")
    with pytest.raises(errors.UnsupportedError, match=r"results\.csv"):
        OracleCalls(read_oracle("qed"), 10, journal=path)

    class Own(Oracle):
        name = "own"

        def score(self, smiles: Sequence[str]) -> Scores:
            return Scores(np.ones(len(smiles)), np.full(len(smiles), ""))

    for unknown in (len, {"my": FunctionOracle(len)}, Own()):
        with pytest.raises(errors.UnsupportedError):
            OracleCalls(read_oracle(unknown), 10, journal=tmp_path / "a")
    assert path.read_text() == "smiles,value\nCCO,1\n" and not (tmp_path / "a").exists()

"""Oracles of one's own: functions, programs, patterns and transforms."""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from rdkit import Chem

from molgraph.base import errors
from molgraph.base.errors import UnknownNameError, UsageError
from molgraph.generate.oracles.calls import OracleCalls, Scored
from molgraph.generate.oracles.command import Command
from molgraph.generate.oracles.oracle import make_oracle
from molgraph.generate.oracles.read_oracle import read_oracle


def test_a_function_in_a_file_is_an_oracle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine.py").write_text("def letters(smiles):\n    return len(smiles)\n")
    monkeypatch.chdir(tmp_path)
    for path in ("mine:letters", "./mine.py:letters", f"{tmp_path}/mine.py:letters"):
        found = read_oracle(f"{path}:0.5,sa<4")
        assert found.labels == ("letters", "sa") and found.score_parts(["CCO"]).total[0] == 1.5 and found.content
    before = read_oracle("./mine.py:letters").content
    (tmp_path / "mine.py").write_text("def letters(smiles):\n    return 2 * len(smiles)\n")
    assert read_oracle("./mine.py:letters").content != before, "kept calls are of one version of the file"
    unknown = {"mine:leters": UnknownNameError, "./his.py:letters": UsageError, "nobody:here": UsageError}
    for wrong, kind in unknown.items():
        with pytest.raises(kind, match=wrong.split(":", maxsplit=1)[0]):
            read_oracle(wrong)
    assert read_oracle({"dock": len}).score_parts(["CCO"]).parts[0, 0] == 3


def test_a_file_without_a_function_has_its_only_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text("def _help(x):\n    return 1\n\n\ndef letters(smiles):\n    return len(smiles)\n")
    assert read_oracle("./mine.py:0.5").labels == read_oracle(f"{tmp_path}/mine.py").labels == ("letters",)
    assert read_oracle({"./mine.py": {"transform": "ramp(0, 6)"}}).score_parts(["CCO"]).total[0] == 0.5
    (tmp_path / "two.py").write_text("def one(s):\n    return 1\n\n\ndef score(s):\n    return 2\n")
    assert read_oracle("./two.py").labels == ("score",)
    (tmp_path / "none.py").write_text("def one(s):\n    return 1\n\n\ndef two(s):\n    return 2\n")
    for wrong, kind in {"./none.py": errors.MissingOptionError, "./his.py": errors.MissingFileError}.items():
        with pytest.raises(kind, match=wrong.strip("./")):
            read_oracle(wrong)
    with pytest.raises(UnknownNameError, match=r"\./mine\.py:FUNCTION"):
        read_oracle("mine")
    with pytest.raises(errors.UnusedSettingError, match="brackets"):
        read_oracle("./mine.py:letters(3)")


PROGRAM = """
import os, sys, time
for line in sys.stdin:
    s = line.strip()
    if s == "CCN": raise SystemExit("no receptor")
    if s == "CCS": time.sleep(60)
    if s == "CCF": print("banner")
    if s == "CCI": continue
    if s == "CCP": print("nan"); continue
    print(len(s))
"""


@pytest.fixture
def program(tmp_path: Path) -> str:
    (tmp_path / "dock.py").write_text(PROGRAM)
    return f"{sys.executable} -S {tmp_path / 'dock.py'}"


@pytest.mark.parametrize("at_once", [1, 4])
def test_what_goes_wrong_in_a_program_costs_one_molecule(program: str, at_once: int) -> None:
    smiles = ["CCO", "CCN", "CC", "CCS", "CCCC", "CCF", "CCI", "CCP", "C(C", "CCCCC"]
    value, reason = Command(program, seconds=0.6, jobs=2, at_once=at_once).score(smiles)
    known = {0: 3.0, 2: 2.0, 4: 4.0, 9: 5.0}
    words = {1: "status 1: no receptor", 3: "longer than 0.6 s", 5: "2 lines", 6: "nothing", 7: "nan", 8: "SMILES"}
    assert {i: value[i] for i in np.flatnonzero(np.isfinite(value))} == known
    assert all(word in reason[i] for i, word in words.items()) and all(reason[i] == "" for i in known)


def test_a_program_s_calls_are_kept_while_its_files_are_the_same(program: str, tmp_path: Path) -> None:
    oracle = read_oracle(f"command('{program}', lower=true, jobs=3):2,sa<4")
    assert oracle.score_parts(["CCO"]).total[0] == -6.0 and oracle.time_limit == 30.0
    before = oracle.content
    assert read_oracle(f"command('{program}', lower=true, jobs=1):2,sa<4").content == before
    (tmp_path / "dock.py").write_text(PROGRAM + "# another version\n")
    assert read_oracle(f"command('{program}', lower=true):2,sa<4").content != before
    for wrong, kind in {"command(nobody_has_this)": errors.MissingFileError, "command('')": errors.UsageError}.items():
        with pytest.raises(kind):
            read_oracle(wrong)


def test_closing_ends_the_programs_and_those_that_they_started(tmp_path: Path) -> None:
    (tmp_path / "dock.sh").write_text(f"sleep 50 &\necho $! >> {tmp_path}/pids\necho $$ >> {tmp_path}/pids\nwait\n")
    calls = OracleCalls(read_oracle(f"command('bash {tmp_path}/dock.sh', jobs=2)"), budget=9)
    found: list[Scored] = []
    thread = threading.Thread(target=lambda: found.extend(calls.score(["C", "CC", "CCC", "CCCC"])))
    thread.start()
    pids = tmp_path / "pids"
    for _ in range(500):
        time.sleep(0.02)
        if pids.exists() and len(pids.read_text().split()) == 4:
            break
    calls.close()
    thread.join(20)
    assert [one.reason for one in found] == ["the search was stopped"] * 4 and len(pids.read_text().split()) == 4
    time.sleep(0.2)
    for pid in pids.read_text().split():
        state = Path(f"/proc/{pid}/stat")
        assert not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_patterns_are_rdkit_s() -> None:
    smiles = ["CC(=O)N", "NC(=O)CC(=O)N", "CCO", "C(C"]
    value, reason = make_oracle("smarts", "[CX3](=O)[N,O]").score(smiles)
    pattern = Chem.MolFromSmarts("[CX3](=O)[N,O]")
    assert value[:3].tolist() == [len(Chem.MolFromSmiles(s).GetSubstructMatches(pattern)) for s in smiles[:3]]
    assert np.isnan(value[3]) and reason[3]
    assert read_oracle("qed,smarts([CX3](=O)[N,O], count=false)>0").score_parts(smiles).parts[:3, 1].tolist() == [
        1,
        1,
        0,
    ]
    with pytest.raises(errors.BadValueError, match="SMARTS"):
        make_oracle("smarts", "[C")


def test_transforms_in_texts_and_tables(tmp_path: Path) -> None:
    text = "product(qed,logp=window(2,4):2,sa=reverse_sigmoid(2, 5)<6)"
    (tmp_path / "o.toml").write_text(
        'combine = "product"\n[qed]\n[logp]\ntransform = "window(2, 4)"\nweight = 2\n'
        '[sa]\ntransform = "reverse_sigmoid(2,5)"\nmax = 6\n[amides]\noracle = "smarts([CX3](=O)[NX3])"\nmax = 2\n'
    )
    smiles = ["CCO", "CC(=O)Nc1ccc(O)cc1", "CCCCCCc1ccccc1"]
    one, two = read_oracle(text).score_parts(smiles), read_oracle(tmp_path / "o.toml").score_parts(smiles)
    assert read_oracle(text).words == "product(qed,logp=window(2,4):2,sa=reverse_sigmoid(2,5)<6)"
    assert read_oracle(tmp_path / "o.toml").labels[3] == "amides"
    qed, logp, sa = one.parts.T
    apart = np.maximum(np.maximum(2 - logp, logp - 4), 0)
    sigmoid = 1 / (1 + np.exp(2 * np.log(99) / 3 * (sa - 3.5)))
    assert np.allclose(one.total, (qed * np.exp(-2 * apart**2) * sigmoid) ** 0.25)
    assert np.allclose(one.total, two.total)
    added = read_oracle("qed,logp=window(2,4):2,sa=reverse_sigmoid(2,5)").score_parts(smiles).total
    assert np.allclose(added, qed + 2 * np.exp(-(apart**2)) + sigmoid)
    zero = read_oracle({"combine": "product", "qed": 1, "hbd": {"transform": "step(1)"}}).score_parts(["CC", "CO"])
    assert zero.total[0] == 0 and zero.total[1] == pytest.approx(np.sqrt(zero.parts[1, 0]))


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("product(qed,logp)", errors.ConflictError, "logp is any number"),
        ("product(qed:-1)", errors.ConflictError, "below 0"),
        ("logp=windw(2,4)", UnknownNameError, "windw"),
        ("logp=window(4,2)", errors.ConflictError, "no range"),
        ("logp=window(2)", errors.BadValueError, "lacks"),
        ("logp=window(a,b)", errors.BadValueError, "low"),
    ],
)
def test_transforms_that_make_no_sense(text: str, kind: type[UsageError], words: str) -> None:
    with pytest.raises(kind, match=words):
        read_oracle(text)

"""Reading SMILES: the nasty lists' verdicts, RDKit's words in one line, silence, and threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rdkit import Chem

from molgraph.chem.rdkit_data import data_dir as rdkit_data
from molgraph.chem.smiles import MAX_CHARACTERS, MAX_REASON, one_line, parse_smiles, precheck, quiet

NASTY = Path(__file__).resolve().parent.parent / "nasty.tsv"


def nasty() -> list[tuple[str, str, str]]:
    lines = NASTY.read_text(encoding="utf-8").split("\n")[1:-1]
    return [tuple(line.split("\t")) for line in lines]  # type: ignore[misc]


def status(text: str) -> str:
    return "ok" if parse_smiles(text).mol is not None else "unreadable" if text.strip() else "missing"


@pytest.mark.parametrize(("text", "expected", "what"), nasty())
def test_nasty_list(text: str, expected: str, what: str, capfd: pytest.CaptureFixture[str]) -> None:
    mol, reason = parse_smiles(text)
    assert status(text) == expected, what
    assert (mol is None) == bool(reason)
    assert "\n" not in reason and len(reason) <= MAX_REASON + 30
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CN(C)(C)C", "Explicit valence for atom # 1 N, 4, is greater than permitted"),
        ("c1cccc1", "Can't kekulize mol.  Unkekulized atoms: 0 1 2 3 4"),
        ("C1CC", "SMILES Parse Error: unclosed ring for input: 'C1CC'"),
        ("C(C", "SMILES Parse Error: extra open parentheses while parsing: C(C (position 2)"),
        ("[R1]CC", "SMILES Parse Error: syntax error while parsing: [R1]CC (position 2)"),
        ("C\0C", "contains a NUL byte"),
        ("C\udc80", "contains \\udc80, which is no SMILES character"),
        ('"CCO"', 'SMILES Parse Error: syntax error while parsing: "CCO" (position 1)'),
        ("CCO\nCCN", "text after the SMILES: 'CCN'"),
        (
            "C" * (MAX_CHARACTERS + 1),
            f"{MAX_CHARACTERS + 1} characters; molgraph reads SMILES of up to {MAX_CHARACTERS}",
        ),
    ],
)
def test_the_reason_says_what_is_wrong(text: str, words: str) -> None:
    assert parse_smiles(text) == (None, words)


@pytest.mark.parametrize("value", [None, float("nan"), 7, b"CCO", ["C"]])
def test_what_is_no_text_is_no_molecule(value: object) -> None:
    assert precheck(value)
    assert parse_smiles(value).mol is None  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [" CCO", "CCO ", "CCO\r\n", "\tCCO"])
def test_blanks_around_a_smiles_do_not_matter(text: str) -> None:
    assert Chem.MolToSmiles(parse_smiles(text).mol) == "CCO"


@pytest.mark.parametrize(
    "text", ["C(" * 2_499, "c1ccc(cc1)" * 5_000, "[" * 100_000, "C1" * 2_400, "C1" + "C" * 99_000 + "1"]
)
def test_long_rubbish_is_refused_soon(text: str) -> None:
    """Without a look beforehand these take RDKit minutes, and the last overflows its stack."""
    assert parse_smiles(text).mol is None


def test_agrees_with_rdkit_on_the_nci_list(capfd: pytest.CaptureFixture[str]) -> None:
    folder = rdkit_data()
    assert folder is not None
    lines = (folder / "NCI" / "first_5K.smi").read_text().splitlines()[::2]
    texts = [line.split()[0] for line in lines]
    with quiet():
        expected = [Chem.MolFromSmiles(text) is not None for text in texts]
    assert [parse_smiles(text).mol is not None for text in texts] == expected
    assert not all(expected)
    assert capfd.readouterr().err == ""


def test_threads_keep_their_own_reasons(capfd: pytest.CaptureFixture[str]) -> None:
    texts = ["C(C", "CN(C)(C)C", "c1cccc1", "CCO", "[R1]"] * 200
    alone = [parse_smiles(text).reason for text in texts[:5]] * 200
    with ThreadPoolExecutor(4) as pool:
        together = [p.reason for p in pool.map(parse_smiles, texts)]
    assert together == alone
    assert capfd.readouterr().err == ""


def test_quiet_ends(capfd: pytest.CaptureFixture[str]) -> None:
    with quiet(), quiet():
        Chem.MolFromSmiles("C(C")
    assert capfd.readouterr().err == ""
    Chem.MolFromSmiles("C(C")
    assert "Parse Error" in capfd.readouterr().err


def test_a_violation_is_told_by_its_words_not_by_its_stars() -> None:
    log = "[10:00:00] \n\n****\nPost-condition Violation\nElement 'Zz' not found\nViolation occurred on line 93\n****\n"
    assert one_line(log) == "Post-condition Violation: Element 'Zz' not found"
    assert one_line("****\n") == "****"

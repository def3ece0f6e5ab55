"""Bytes in; no crash, no noise, one verdict: run by atheris for as long as one likes, here for a fixed set of bytes.

python tests/fuzz/test_fuzz_smiles.py -max_total_time=60 -max_len=200    # with atheris installed
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from molgraph.chem.smiles import MAX_REASON, parse_smiles, precheck
from molgraph.chem.standardise import standardise_smiles
from molgraph.data.read import read_table

NASTY = Path(__file__).resolve().parent.parent / "nasty.tsv"
ALPHABET = b"CCCCNNNOOOSFPIBcnos[]()=#-+.:@/\\%12H* \t|>~$\x00\xff\xce\xb1"


def fuzz_one(data: bytes) -> None:
    """The target: what holds for every text."""
    text = data.decode("utf-8", "surrogateescape")
    mol, reason = parse_smiles(text)
    assert (mol is None) == bool(reason)
    assert "\n" not in reason and len(reason) <= MAX_REASON + 30
    if precheck(text):
        assert mol is None
    if mol is not None:
        assert mol.GetNumAtoms() > 0
    for preset in ("desalt", "standard"):
        done = standardise_smiles([text], preset)
        if mol is None:
            assert done.values[0] == text
        elif not done.reasons[0]:
            assert parse_smiles(done.values[0]).mol is not None
    table = read_table([text, "CCO"])
    assert len(table) == 2 and table.status[1] == "ok"
    assert table.status[0] == "ok" or mol is None


@cache
def seeds() -> list[bytes]:
    """The short lines of the nasty list."""
    lines = [line.split("\t")[0].encode() for line in NASTY.read_text(encoding="utf-8").split("\n")[1:-1]]
    return [line for line in lines if len(line) < 80]


def mutations(seed: int, n: int) -> list[bytes]:
    """Lines of the nasty list with bytes changed, taken out, put in, doubled, and joined with others."""
    rng, lines, out = np.random.default_rng(seed), seeds(), []
    for _ in range(n):
        data = bytearray(lines[rng.integers(len(lines))])
        for _ in range(rng.integers(1, 3)):
            at, byte = int(rng.integers(len(data) + 1)), ALPHABET[rng.integers(len(ALPHABET))]
            kind = rng.integers(5)
            if kind == 0:
                data[at:at] = bytes([byte])
            elif kind == 1:
                data[at : at + 1] = bytes([byte])
            elif kind == 2:
                del data[at : at + int(rng.integers(1, 4))]
            elif kind == 3:
                data[at:at] = data[: int(rng.integers(10))]
            else:
                data += lines[rng.integers(len(lines))]
        out.append(bytes(data))
    return out


@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines(seed: int, capfd: pytest.CaptureFixture[str]) -> None:
    verdicts = []
    for data in mutations(seed, 150):
        fuzz_one(data)
        verdicts.append(parse_smiles(data.decode("utf-8", "surrogateescape")).mol is not None)
    assert 5 < sum(verdicts) < 145  # the mutations reach both sides
    assert capfd.readouterr().err == ""


if __name__ == "__main__":
    import atheris

    # RDKit is compiled and tells atheris nothing of its branches, so the changes are made here, not found by coverage.
    atheris.Setup(sys.argv, fuzz_one, custom_mutator=lambda data, size, seed: mutations(seed, 1)[0][:size])
    atheris.Fuzz()

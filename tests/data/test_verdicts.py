"""One verdict for each text, whoever is asked: the parser, the C++ featuriser, the RDKit one, the checked table."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from molgraph.chem.smiles import parse_smiles
from molgraph.data.featurize import featurize
from molgraph.data.standardise import check_molecules
from molgraph.data.table import make_table

NASTY = Path(__file__).resolve().parent.parent / "nasty.tsv"


def texts() -> list[str]:
    lines = [line.split("\t")[0] for line in NASTY.read_text(encoding="utf-8").split("\n")[1:-1]]
    return [
        *lines,
        "C\0C",
        "C\udc80",
        " CCO ",
        "CCO\n",
        '"CCO"',
        "CCO\nCCN",
        "C(" * 1500,
        "c1ccc(cc1)" * 600,
        "C" * 6000,
    ]


@pytest.mark.parametrize("backend", ["auto", "rdkit"])
def test_parser_and_featuriser_agree(backend: str) -> None:
    given = texts()
    expected = [parse_smiles(text).mol is not None for text in given]
    store = featurize(given, backend=backend)
    assert [status == "ok" for status in store.status] == expected
    assert all(bool(reason) != fine for reason, fine in zip(store.reason, expected, strict=True))
    sizes = np.diff(store.levels["atom"].offsets)
    assert ((sizes > 0) == expected).all()


def test_parser_and_checked_table_agree() -> None:
    given = texts()
    table = check_molecules(make_table(given))
    assert list(table.ok) == [parse_smiles(text).mol is not None for text in given]

"""Lines of SMILES and SD files in UTF-16 are read as those in UTF-8."""

from __future__ import annotations

from pathlib import Path

import pytest

from molgraph.base.errors import EmptyError
from molgraph.data.read import read_table
from tests.data.test_read import UNICODE, same, write

RECORD = (
    "ethanol\n\n\n  2  1  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 C   0  0\n"
    "    0.0000    0.0000    0.0000 O   0  0\n  1  2  1  0\nM  END\n> <%s>\n1.5\n\n$$$$\n"
)


@pytest.mark.parametrize("encoding", UNICODE)
@pytest.mark.parametrize(
    ("name", "text"),
    [("t.smi", "CCO ethanol\nCCN\tµ\n"), ("t", "CCO ethanol\nCCN µ\n"), ("t.sdf", RECORD % "y" + RECORD % "µ")],
)
def test_records_and_lines_in_other_encodings(name, text, encoding, tmp_path: Path, monkeypatch) -> None:
    plain = read_table(write(tmp_path, text, name), **({"id": "µ"} if name == "t.sdf" else {}))
    assert list(plain.status) == ["ok", "ok"] and plain.ids[1] != "2"
    for sample in (1 << 18, len(text.encode(encoding)) * 3 // 4):  # all of it, and no whole second record
        monkeypatch.setattr("molgraph.data.reading.source.SAMPLE_BYTES", sample)
        path = write(tmp_path, text.encode(encoding), name)
        same(read_table(path, **({"id": "µ"} if name == "t.sdf" else {})), plain)


def test_a_mark_of_byte_order_alone_is_no_table(tmp_path: Path) -> None:
    for mark in (b"\xef\xbb\xbf", b"\xff\xfe"):
        with pytest.raises(EmptyError):
            read_table(write(tmp_path, mark, "t"))

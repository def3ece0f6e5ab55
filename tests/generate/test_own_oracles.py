"""Functions of one's own as oracles, by import path, by file and in a mapping."""

from __future__ import annotations

from pathlib import Path

import pytest

from molgraph.base.errors import UnknownNameError, UsageError
from molgraph.generate.oracles.combined import read_oracle


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

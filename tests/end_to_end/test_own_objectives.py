"""Every block of docs/own-objectives.md runs as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest


@pytest.mark.slow
def test_the_page_on_objectives_of_one_s_own(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    where = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": where, "PYTHONPATH": str(root)}
    page = (root / "docs" / "own-objectives.md").read_text("utf-8")
    for kind, name, text in re.findall(r"```(\w+)(?: (\S+))?\n(.*?)```", page, re.DOTALL):
        if kind == "sh":
            done = subprocess.run(
                ["bash", "-ec", text], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (text, done.stdout[-2000:], done.stderr[-2000:])
        else:
            (tmp_path / name).write_text(text)
    docked, staged = pd.read_csv(tmp_path / "docked.csv"), pd.read_csv(tmp_path / "staged.csv")
    assert docked["command"].max() < 0 and docked["reason"].isna().all() and len(docked) == 12
    assert {*staged["stage"]} == {1, 2} and (staged["command"].notna() == (staged["stage"] == 2)).all()
    assert "What counts as good" in (tmp_path / "page.html").read_text()

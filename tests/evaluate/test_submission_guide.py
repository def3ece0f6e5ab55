"""The guide to entering one's own method works as it stands."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.slow
def test_the_guide_works_as_it_stands(tmp_path: Path) -> None:
    """Every block of docs/benchmark-your-method.md: files are written, commands are typed; once in place of twice."""
    root = Path(__file__).parents[2]
    where = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PATH": where, "PYTHONPATH": str(root)}
    guide = (root / "docs" / "benchmark-your-method.md").read_text("utf-8")
    assert "repeats = 2" in guide
    guide = guide.replace("repeats = 2", "repeats = 1")
    for kind, name, text in re.findall(r"```(\w+)(?: (\S+))?\n(.*?)```", guide, re.DOTALL):
        if kind == "sh":
            done = subprocess.run(
                ["bash", "-ec", text], cwd=tmp_path, env=env, capture_output=True, text=True, check=False
            )
            assert done.returncode == 0, (text, done.stdout[-2000:], done.stderr[-2000:])
        else:
            (tmp_path / name).write_text(text)
    assert (
        "rival" in (tmp_path / "LEADERBOARD.md").read_text() and "Nearest" in (tmp_path / "LEADERBOARD.md").read_text()
    )

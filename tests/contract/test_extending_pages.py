"""The pages of docs/extending: each example is whole, becomes a plug-in, and meets the trials of its kind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from molgraph.base.registry import kinds
from tests.contract.test_kinds import TOGETHER, trials_of
from tests.house.test_house_papers import wrong_commands

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "extending"
PAGES = {page.stem: page.read_text("utf-8") for page in sorted(FOLDER.glob("*.md"))}
TRIALS = re.findall(r"def (test_\w+)", "\n".join(f.read_text("utf-8") for f in Path(__file__).parent.glob("test_*.py")))


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


@pytest.mark.parametrize("kind", kinds())
def test_every_kind_has_a_page_with_one_whole_example(kind: str) -> None:
    (code,) = blocks(PAGES[kind], "python")
    assert f'"my_{kind}"' in code and kind in PAGES["README"]


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    text = PAGES[page]
    assert wrong_commands(text, (ROOT / "Makefile").read_text("utf-8")) == []
    for path in re.findall(r"tests/contract/\w+\.py|`(?:molgraph/)?[a-z_/]+/\w+\.py`", text):
        name = path.strip("`")
        assert (ROOT / name).is_file() or (ROOT / "molgraph" / name).is_file(), name
    for row in re.findall(r"^\| (`\w.*?) \|", text.partition("trial that fails")[2], re.MULTILINE):
        for trial in re.findall(r"`(\w+)`", row):
            assert any(trial in each for each in TRIALS), f"no trial is called {trial}"


@pytest.mark.slow
def test_the_examples_are_a_plug_in_that_meets_the_trials(tmp_path: Path) -> None:
    """All examples together, installed as the page of plug-ins says, tried as it says."""
    (pyproject,) = blocks(PAGES["README"], "toml")
    points = tomllib.loads(pyproject)["project"]["entry-points"]["molgraph"]
    made = kinds()
    for kind in made:
        (tmp_path / f"page_{kind}.py").write_text(*blocks(PAGES[kind], "python"), "utf-8")
    (module,) = points.values()
    (tmp_path / f"{module}.py").write_text("\n".join(f"import page_{kind}" for kind in made), "utf-8")
    info = tmp_path / "my_parts-0.1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: my-parts\nVersion: 0.1.0\n", "utf-8")
    names = "".join(f"{name} = {value}\n" for name, value in points.items())
    (info / "entry_points.txt").write_text(f"[molgraph]\n{names}", "utf-8")
    path = os.pathsep.join([str(tmp_path), str(ROOT), os.environ.get("PYTHONPATH", "")])
    files = [f"tests/contract/{trials_of(kind)}" for kind in made if kind not in TOGETHER]
    words = ["-v", "-p", "no:xdist", "-p", "no:cacheprovider", "--tb=short", "-m", "not slow", "-k", "my_"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words, *files],
        cwd=ROOT, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    tried = re.findall(r"\[(?:[\w ]+-)?my_(\w+?)(?:-[\w ]+)?\] PASSED", done.stdout)
    assert {kind: tried.count(kind) for kind in made if tried.count(kind) < 2} == {}

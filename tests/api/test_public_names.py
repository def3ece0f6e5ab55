"""The public names are what they say at the first use and at every later one, whatever was imported in between."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import pytest

import molgraph
import molgraph.train.model
from molgraph import api

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))
TWICE = """
import molgraph
first = molgraph.train
assert callable(first) and molgraph.train is first
import molgraph.train.model
assert callable(molgraph.train) and molgraph.train.model.Model is not None
import molgraph.train.engine as engine
assert engine.TrainingConfig
for name in molgraph.__all__:
    assert getattr(molgraph, name) is getattr(molgraph, name), name
"""


@pytest.mark.slow
def test_names_stay_what_they_are() -> None:
    done = subprocess.run([sys.executable, "-c", TWICE], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_train_is_a_room_and_a_verb() -> None:
    assert inspect.signature(molgraph.train) == inspect.signature(api.train)
    frame = {"smiles": ["C" * n for n in range(1, 21)], "y": [float(n) for n in range(20)]}
    for _ in range(2):
        result = molgraph.train(frame, targets=["y"], model="mean", split="random")
        assert result.predict(["C"]).ok.all()


def test_an_audit_is_public() -> None:
    found = molgraph.audit(molgraph.read_table(["CCO", "OCC", "C(C"]))
    assert len(found.finding("unreadable")) == 1 and len(found.finding("duplicate")) == 2


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_use_public_names_alone(path: Path) -> None:
    cells = [cell for cell in json.loads(path.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    tree = ast.parse("\n".join("".join(cell["source"]) for cell in cells))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    used = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and ast.unparse(n.value) == "molgraph"}
    assert {name for name in modules if name and name.startswith("molgraph")} == {"molgraph"}
    assert used and used <= set(molgraph.__all__)


def test_help_of_train_is_the_verbs() -> None:
    """`help(molgraph.train)` showed the module's text: the room's module stands where the verb stood."""
    import pydoc

    import molgraph.train.model

    said = pydoc.plain(pydoc.render_doc(molgraph.train))
    assert "Learn from a table of molecules" in said.splitlines()[3]
    assert "molgraph.train(data: " in said and "test: a path, frame or table to test on" in said

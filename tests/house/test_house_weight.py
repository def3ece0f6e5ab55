"""How light the front doors are: what ``import molgraph`` and ``molgraph --help`` load, seen from a fresh process."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("torch", "torch_geometric", "rdkit", "numpy", "pandas", "scipy", "sklearn", "lightning", "matplotlib")
HEAVY += ("deepchem", "pyarrow", "pydantic", "jinja2", "cuik_molmaker", "jaxtyping", "beartype")


def loaded(code: str) -> set[str]:
    """Heavy libraries that a fresh process has loaded after running ``code``."""
    report = f"\nimport sys; print('loaded:', *(m for m in {HEAVY!r} if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code + report], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rpartition("loaded:")[2].split())


def test_import_molgraph_loads_nothing_heavy() -> None:
    assert loaded("import molgraph; dir(molgraph); molgraph.__version__") == set()


@pytest.mark.parametrize("words", [["--help"], ["--version"]])
def test_help_loads_nothing_heavy(words: list[str]) -> None:
    code = f"import sys; sys.argv = ['molgraph', *{words!r}]\nfrom molgraph.__main__ import main\n"
    assert loaded(code + "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code") == set()


@pytest.mark.slow
@pytest.mark.parametrize("verb", ["train", "predict", "evaluate", "verify", "models", "doctor", "demo", "data"])
def test_a_verbs_help_does_not_wait_for_torch(verb: str) -> None:
    code = f"import sys; sys.argv = ['molgraph', {verb!r}, '--help']\nfrom molgraph.__main__ import main\n"
    found = loaded(code + "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code, end.code")
    assert found <= {"pydantic"}  # typer itself reads options with it


def test_a_heavy_import_is_seen() -> None:
    assert loaded("import molgraph, numpy") == {"numpy"}

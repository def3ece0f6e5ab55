"""The house style: short files, public names explained, nothing left open, no code that runs strangers' files."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

CEILING = 300
WORDS = (*(word[::-1] for word in ("ODOT", "EMXIF", "KCAH")), "X" * 3)  # this file may not hold them
OPEN_ENDS = re.compile(rf"#.*\b(?:{'|'.join(WORDS)})\b")
RUNS_CODE = ("pickle", "cloudpickle", "dill", "marshal", "shelve", "joblib.load", "joblib.dump")


def too_long(source: str) -> list[str]:
    """A file of more lines than one sitting takes."""
    lines = source.count("\n") + 1
    return [f"{lines} lines, {CEILING} at most"] if lines > CEILING + 1 else []


def open_ends(source: str) -> list[str]:
    """Lines that promise work for later."""
    return [f"line {i}: left open" for i, line in enumerate(source.splitlines(), 1) if OPEN_ENDS.search(line)]


def unexplained(source: str, contracts: frozenset[str] = frozenset()) -> list[str]:
    """Public modules, functions, classes and methods without a docstring.

    A method may leave it to the contract that it keeps: that of its class's base, or of a protocol, whose method
    names are given as ``contracts``.
    """
    tree = ast.parse(source)
    found = [] if ast.get_docstring(tree) or not tree.body else ["the module"]
    for owner, node in _public(tree.body):
        kept = owner is not None and (owner.bases or node.name in contracts)
        if not ast.get_docstring(node) and (isinstance(node, ast.ClassDef) or not kept):
            found.append(f"{owner.name}.{node.name}" if owner else node.name)
    return [f"{name} has no docstring" for name in found]


def protocol_methods(source: str) -> set[str]:
    """Names of the methods that a file's protocols and abstract classes explain."""
    found = set()
    for owner, node in _public(ast.parse(source).body):
        bases = {ast.unparse(base).split(".")[-1].split("[")[0] for base in owner.bases} if owner else set()
        if bases & {"Protocol", "ABC"} and ast.get_docstring(node):
            found.add(node.name)
    return found


def _public(body: list[ast.stmt], owner: ast.ClassDef | None = None) -> Iterator[tuple[ast.ClassDef | None, Any]]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            if any("overload" in ast.unparse(mark) for mark in node.decorator_list):
                continue
            yield owner, node
            if isinstance(node, ast.ClassDef):
                yield from _public(node.body, node)


def dangers(source: str) -> list[str]:
    """Code that could run what a stranger's file says, or that hides a failure."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            start = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            names = [start + alias.name for alias in node.names]
            found += [f"imports {name}" for name in names if name.split(".")[0] in RUNS_CODE or name in RUNS_CODE]
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            keywords = {k.arg: ast.unparse(k.value) for k in node.keywords}
            if called in ("eval", "exec", "os.system", "joblib.load"):
                found.append(f"calls {called}")
            if called == "torch.load" and keywords.get("weights_only") != "True":
                found.append("torch.load without weights_only=True")
            if keywords.get("allow_pickle") == "True" or keywords.get("shell") == "True":
                found.append(f"{called} with allow_pickle or shell")
        elif isinstance(node, ast.ExceptHandler) and node.type is None:
            found.append(f"line {node.lineno}: a bare except")
    return found


CHECKS: dict[str, Callable[[str], list[str]]] = {
    "too_long": too_long,
    "open_ends": open_ends,
    "unexplained": unexplained,
    "dangers": dangers,
}


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_the_package_keeps_the_style(root: Path, check: str) -> None:
    files = sorted((root / "molgraph").rglob("*.py"))
    if check != "unexplained":
        files += [f for folder in ("tests", "pipelines") for f in sorted((root / folder).rglob("*.py"))]
    if check == "dangers":
        files = [f for f in files if "tests" not in f.relative_to(root).parts]
    empty = [f for f in files if not f.read_text("utf-8").strip()]
    assert check != "unexplained" or all(f.name == "__init__.py" for f in empty)
    texts = {str(f.relative_to(root)): f.read_text("utf-8") for f in files}
    contracts = frozenset().union(*(protocol_methods(text) for text in texts.values()))
    run = partial(unexplained, contracts=contracts) if check == "unexplained" else CHECKS[check]
    found = [f"{name}: {breach}" for name, text in texts.items() for breach in run(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("check", "source"),
    [
        ("too_long", "x = 1\n" * (CEILING + 1)),
        ("open_ends", "x = 1  # " + WORDS[0] + ": later"),
        ("unexplained", "x = 1"),
        ("unexplained", '"""A module."""\ndef public(): ...'),
        ("unexplained", '"""A module."""\nclass Public: ...'),
        ("unexplained", '"""A module."""\nclass Public:\n    """One."""\n    def method(self): ...'),
        ("unexplained", '"""A module."""\nclass Public(Base):\n    def method(self): ...'),
        ("dangers", "import pickle"),
        ("dangers", "import joblib\njoblib.load('x')"),
        ("dangers", "def f():\n    from joblib import load"),
        ("dangers", "import torch\ntorch.load('x')"),
        ("dangers", "import torch\ntorch.load('x', weights_only=False)"),
        ("dangers", "import numpy as np\nnp.load('x', allow_pickle=True)"),
        ("dangers", "eval('1')"),
        ("dangers", "try:\n    f()\nexcept:\n    pass"),
    ],
)
def test_a_planted_breach_of_style_is_seen(check: str, source: str) -> None:
    assert CHECKS[check](source)


def test_good_style_passes() -> None:
    source = '"""A module."""\n\nclass A(B):\n    """One."""\n\n    def forward(self): ...\n\ndef _own(): ...\n'
    assert all(check(source) == [] for check in CHECKS.values())
    assert too_long("x = 1\n" * CEILING) == []

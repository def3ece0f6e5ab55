"""The core: short enough for one sitting, and its shapes checked in tests and nowhere else."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import jaxtyping
import pytest
import torch

import molgraph.models  # noqa: F401 - loaded under the check
from molgraph.nn.encoder import Rows
from molgraph.nn.joined_linear import SummedRows
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.segment import divide
from molgraph.nn.updates import GRU

ONE_TARGET = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([0, 0]), 2, 1)
# What takes any tensor, because a wrong one gets a sentence of its own.
ANY_SHAPE = {"reduce_pairs", "setup_context", "backward", "vmap"}


@pytest.mark.parametrize("name", ["relation", "propagate"])
def test_relation_and_propagate_are_under_a_hundred_lines(root: Path, name: str) -> None:
    assert len((root / "molgraph" / "nn" / f"{name}.py").read_text("utf-8").splitlines()) < 100


@pytest.mark.parametrize(
    "call",
    [
        lambda: propagate(torch.zeros(()), ONE_TARGET),
        lambda: propagate(torch.zeros(2, 3), ONE_TARGET, update=lambda h, m: m[:0]),
        lambda: divide(torch.zeros(5, 2), ONE_TARGET),
        lambda: GRU(4, 4)(torch.zeros(3, 4), torch.zeros(2, 4)),
        lambda: Relation(torch.tensor([0]), torch.tensor([0, 1, 1]), 1, 1),
        lambda: Relation(torch.tensor([0.0]), torch.tensor([0, 1]), 1, 1),
        lambda: Rows("atom", torch.zeros(3, 2), torch.zeros(2, dtype=torch.long)),
        lambda: SummedRows(torch.zeros(3, 2), ONE_TARGET),
    ],
)
def test_a_wrong_shape_fails_in_tests(call) -> None:
    with pytest.raises(jaxtyping.TypeCheckError):
        call()


def test_nothing_is_checked_outside_tests() -> None:
    code = """
import sys, torch, molgraph.models
from molgraph.nn.relation import Relation
from molgraph.nn.segment import divide
relation = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([0, 0]), 2, 1)
assert divide(torch.zeros(5, 2), relation).shape == (5, 2)
assert not hasattr(divide, "__wrapped__")
assert "beartype" not in sys.modules
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def shapeless(source: str) -> list[str]:
    """Public functions and record fields of a module whose tensors have no shape."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef) and not node.name.startswith("_") and node.name not in ANY_SHAPE:
            hints = [arg.annotation for arg in (*node.args.args, *node.args.kwonlyargs)]
            found += [f"{node.name}: {ast.unparse(hint)}" for hint in (*hints, node.returns) if hint and bare(hint)]
        elif isinstance(node, ast.AnnAssign) and bare(node.annotation):
            found.append(ast.unparse(node))
    return found


def bare(hint: ast.expr) -> bool:
    """Whether a hint holds a ``Tensor`` that is not inside ``Float[Tensor, ...]`` or its like; verbs aside."""
    if isinstance(hint, ast.Subscript):
        name = ast.unparse(hint.value)
        return name not in dir(jaxtyping) and name != "Callable" and bare(hint.slice)
    if isinstance(hint, ast.Name):
        return hint.id == "Tensor"
    return any(bare(child) for child in ast.iter_child_nodes(hint) if isinstance(child, ast.expr))


@pytest.mark.parametrize("room", ["nn", "models"])
def test_every_tensor_of_a_signature_says_its_shape(root: Path, room: str) -> None:
    files = sorted((root / "molgraph" / room).rglob("*.py"))
    found = [f"{file.name}: {each}" for file in files for each in shapeless(file.read_text("utf-8"))]
    assert not found, "\n".join(found)


def test_a_tensor_without_a_shape_is_seen() -> None:
    source = "def f(x: Tensor | None, y: Float[Tensor, 'n d']) -> tuple[Tensor, int]: ...\nclass A:\n    h: Tensor\n"
    assert shapeless(source) == ["f: Tensor | None", "f: tuple[Tensor, int]", "h: Tensor"]

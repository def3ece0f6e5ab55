"""Read every import of molgraph with ast: layers import only those below them, and no two modules form a circle."""

from __future__ import annotations

import ast
import fnmatch
from collections.abc import Mapping
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

# What each floor may import besides itself and the libraries that have no door.
REACH: dict[str, tuple[str, ...]] = {
    "base": (),
    "chem": ("base",),
    "data": ("base", "chem"),
    "nn": ("base", "chem", "data"),
    "models": ("base", "chem", "data", "nn"),
    "evaluate": ("base", "chem", "data"),
}
REACH["train"] = (*REACH["models"], "models", "evaluate")
REACH["trust"] = REACH["explain"] = REACH["study"] = REACH["generate"] = (*REACH["train"], "train")
REACH["embed"] = REACH["trust"]
REACH["compress"] = (*REACH["trust"], "trust")
REACH["auxiliary"] = (*REACH["trust"], "trust", "explain", "study", "generate", "embed", "compress")
REACH["run"] = (*REACH["auxiliary"], "auxiliary")
REACH["api"] = (*REACH["run"], "run")
REACH["serve"] = (*REACH["api"], "api")
REACH["cli"] = (*REACH["serve"], "serve")
# Modules that stand at the top of the package, and the layer that each belongs to.
TOP = {"__main__": "cli"}

# One door a heavy library; only these files may import it.
DOORS: dict[str, tuple[str, ...]] = {
    "rdkit": ("chem/*.py", "chem/fragments/*.py", "data/featurize*.py"),
    "cuik_molmaker": ("data/featurize*.py",),
    "torch_geometric": (
        "data/batch.py",
        "data/pyg.py",
        "data/pyg_table.py",
        "data/featurize_graph.py",
        "data/sources/*.py",
        "nn/*.py",
        "models/pyg_conv.py",
    ),
    "deepchem": ("data/sources/*.py", "auxiliary/peers/deepchem.py"),
    "lightning": ("train/*.py", "auxiliary/peers/chemprop.py"),
    "pytorch_lightning": (),
    "matplotlib": ("evaluate/report*.py", "evaluate/*/report*.py", "chem/draw.py"),
    "ase": ("api/ase.py",),
    "botorch": ("generate/searches/bayes.py",),
    "chemprop": ("auxiliary/peers/chemprop.py",),
    "catboost": ("auxiliary/maplight.py",),
    "gpytorch": ("auxiliary/gp.py", "generate/searches/bayes.py"),
    "xgboost": ("auxiliary/xgboost.py",),
    "fcd": ("evaluate/generation/embeddings.py",),
    "skfp": (),
    "fastapi": ("serve/*.py",),
    "h11": ("serve/*.py",),
    "uvicorn": ("serve/*.py",),
    "ray": ("base/cluster.py",),
    "optuna": ("evaluate/trials.py",),
}
LATE = (
    "ase",
    "botorch",
    "deepchem",
    "lightning",
    "ray",
    "optuna",
    "chemprop",
    "catboost",
    "gpytorch",
    "xgboost",
    "fastapi",
    "uvicorn",
)  # imported inside functions: they take seconds, and few runs need them
NO_TORCH = ("base", "chem")
# What a method can do is declared in base/contracts.py and asked for by isinstance or as an attribute.
CAPABILITIES = ("members", "curves", "graphs", "threads", "store", "seed", "encoder", "method", "predict")


@cache
def parse(source: str) -> ast.Module:
    """The tree of a source, which several rules read."""
    return ast.parse(source)


def imports(tree: ast.AST, *, annotations: bool = False) -> list[tuple[str, bool]]:
    """Full names that a module imports, and whether at its top; for annotations alone only where they are asked for."""
    found: list[tuple[str, bool]] = []

    def walk(node: ast.AST, top: bool) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test) and not annotations:
            for child in node.orelse:
                walk(child, top)
            return
        if isinstance(node, ast.Import):
            found.extend((alias.name, top) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = "." * node.level + (node.module or "")
            found.extend((f"{base}.{alias.name}", top) for alias in node.names)
        elif isinstance(node, ast.Call) and _called(node) in ("import_module", "__import__", "importorskip"):
            found.extend((a.value, top) for a in node.args[:1] if isinstance(a, ast.Constant) and a.value)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        for child in ast.iter_child_nodes(node):
            walk(child, top and not inside)

    walk(tree, True)
    return found


def sniffed(source: str) -> list[str]:
    """Capabilities that a module looks for with ``getattr`` or ``hasattr``."""
    calls = [node for node in ast.walk(parse(source)) if isinstance(node, ast.Call) and len(node.args) > 1]
    asked = [call.args[1] for call in calls if _called(call) in ("getattr", "hasattr")]
    return [word.value for word in asked if isinstance(word, ast.Constant) and word.value in CAPABILITIES]


def _called(node: ast.Call) -> str:
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def floor_of(path: str) -> str:
    """The floor of a file, its path counted from the package's folder."""
    head = path.split("/")[0]
    return head if "/" in path else TOP[head.removesuffix(".py")]


def breaches(path: str, source: str) -> list[str]:
    """What a file of the package imports against the layering; ``path`` counts from the package's folder."""
    if path == "__init__.py":
        at_top = [name for name, top in imports(parse(source)) if top]
        light = ("typing.", "__future__.", "molgraph.base.")
        return [f"{path}: imports {name} at its top" for name in at_top if not name.startswith(light)]
    if "/" not in path and path.removesuffix(".py") not in TOP:
        return [f"{path}: say in TOP to which layer it belongs"]
    floor, found = floor_of(path), []
    for name, top in imports(parse(source)):
        library, *rest = name.split(".")
        if not library:
            found.append(f"{path}: imports {name} relatively: write the full name")
        elif name == "molgraph":
            found.append(f"{path}: imports the root package, which stands above all of them")
        elif library == "molgraph":
            other = TOP.get(rest[0], rest[0])
            allowed = (floor, *REACH[floor])
            if other in REACH and other not in allowed:
                found.append(f"{path}: {floor} may not import {name}")
            if floor == other == "models" and path != "models/__init__.py" and rest[1:] and _family(path) != rest[1]:
                found.append(f"{path}: a model may not import another, {name}")
        elif library in DOORS and not any(fnmatch.fnmatch(path, door) for door in DOORS[library]):
            found.append(f"{path}: {library} has its door elsewhere: {DOORS[library]}")
        elif library == "torch" and floor in NO_TORCH:
            found.append(f"{path}: no torch in {floor}")
        if library in LATE and top:
            found.append(f"{path}: import {library} inside the function that needs it")
    return found


def _family(path: str) -> str:
    """A model's name: its file, or its folder where it has several files."""
    return path.split("/")[1].removesuffix(".py")


def test_every_import_leans_the_right_way(root: Path) -> None:
    package = root / "molgraph"
    files = sorted(package.rglob("*.py"))
    assert len(files) > 30
    found = [b for file in files for b in breaches(file.relative_to(package).as_posix(), file.read_text("utf-8"))]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("base/x.py", "from molgraph.chem import smiles"),
        ("base/x.py", "from molgraph import data"),
        ("base/x.py", "def f():\n    import molgraph.train.engine"),
        ("base/x.py", "import importlib\nimportlib.import_module('molgraph.train')"),
        ("base/x.py", "import torch"),
        ("chem/x.py", "from torch import nn"),
        ("chem/x.py", "from molgraph.data.table import Table"),
        ("data/x.py", "from molgraph.nn.relation import Relation"),
        ("data/x.py", "from molgraph.evaluate import metrics"),
        ("data/x.py", "from rdkit import Chem"),
        ("data/x.py", "from . import table"),
        ("data/sources/x.py", "import deepchem"),
        ("nn/x.py", "from molgraph.models import dmpnn"),
        ("evaluate/x.py", "from molgraph.train import model"),
        ("evaluate/x.py", "import matplotlib.pyplot"),
        ("models/one.py", "from molgraph.models.two import Two"),
        ("models/tree/part.py", "from molgraph.models.two import Two"),
        ("models/one.py", "def f():\n    import lightning"),
        ("train/x.py", "from lightning.fabric import Fabric"),
        ("train/x.py", "from molgraph.trust.ensemble import Ensemble"),
        ("trust/x.py", "from molgraph.auxiliary import forest"),
        ("train/x.py", "from molgraph.generate.language import LanguageGenerator"),
        ("generate/x.py", "from molgraph.trust.ensemble import Ensemble"),
        ("auxiliary/x.py", "import molgraph.api"),
        ("auxiliary/x.py", "from molgraph.run.method import method_of"),
        ("run/x.py", "from molgraph.api import training"),
        ("api/x.py", "from molgraph.cli import main"),
        ("api/catalogue.py", "from molgraph.cli.main import app"),
        ("api/x.py", "from molgraph.serve import app"),
        ("serve/app.py", "import fastapi"),
        ("base/registry.py", "import molgraph"),
        ("train/x.py", "def f():\n    import chemprop"),
        ("__init__.py", "import molgraph.api"),
        ("utils.py", ""),
    ],
)
def test_a_planted_breach_is_seen(path: str, source: str) -> None:
    assert breaches(path, source)


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("base/x.py", "from molgraph.base.table import Table"),
        ("chem/x.py", "from rdkit import Chem\nfrom molgraph.base import errors"),
        ("data/featurize_rdkit.py", "from rdkit import Chem"),
        ("data/sources/x.py", "def f():\n    import deepchem"),
        ("models/__init__.py", "from molgraph.models import dmpnn"),
        ("models/tree/part.py", "from molgraph.models.tree.other import Other"),
        ("models/one.py", "import torch\nfrom molgraph.nn.propagate import propagate"),
        ("train/x.py", "def f():\n    from lightning.fabric import Fabric\nfrom molgraph.evaluate import metrics"),
        ("cli/x.py", "from molgraph.api import train"),
        ("__init__.py", "def f():\n    import molgraph.api"),
    ],
)
def test_what_the_design_allows_passes(path: str, source: str) -> None:
    assert breaches(path, source) == []


def module_of(path: str) -> str:
    """The full name of a module, its path counted from the package's folder."""
    return f"molgraph/{path}".removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def circle(sources: Mapping[str, str]) -> list[str]:
    """Modules that import each other in a circle, at their tops, inside functions or for annotations; none if empty.

    Args:
        sources: path, counted from the package's folder -> source.
    """
    modules = {module_of(path) for path in sources}
    graph: dict[str, set[str]] = {}
    for path, source in sources.items():
        names = [name for name, _ in imports(parse(source), annotations=True)]
        found = {name if name in modules else name.rpartition(".")[0] for name in names}
        graph[module_of(path)] = found & modules
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_no_modules_import_each_other_in_a_circle(root: Path) -> None:
    package = root / "molgraph"
    sources = {file.relative_to(package).as_posix(): file.read_text("utf-8") for file in package.rglob("*.py")}
    assert circle(sources) == []


@pytest.mark.parametrize(
    "back",
    [
        "from molgraph.data.two import f",
        "from molgraph.data import two",
        "def g():\n    import molgraph.data.two",
        "if TYPE_CHECKING:\n    from molgraph.data.two import f",
        "from molgraph.data.three import f",
    ],
)
def test_a_planted_circle_is_seen(back: str) -> None:
    sources = {"__init__.py": "def f():\n    from molgraph import data", "data/__init__.py": ""}
    sources |= {"data/two.py": "from molgraph.data.one import f", "data/three.py": "from molgraph.data import two"}
    assert circle(sources | {"data/one.py": "from molgraph.base import registry"}) == []
    found = circle(sources | {"data/one.py": back})
    assert {"molgraph.data.one", "molgraph.data.two"} <= set(found)


def test_the_registry_imports_nothing_of_molgraph_but_base(root: Path) -> None:
    found = imports(parse((root / "molgraph" / "base" / "registry.py").read_text("utf-8")), annotations=True)
    ours = [name for name, _ in found if name.split(".")[0] == "molgraph"]
    assert ours and all(name.startswith("molgraph.base.") for name in ours)


def test_capabilities_are_declared_and_not_looked_for(root: Path) -> None:
    files = {file.relative_to(root / "molgraph").as_posix(): file for file in (root / "molgraph").rglob("*.py")}
    found = {path: words for path, file in files.items() if (words := sniffed(file.read_text("utf-8")))}
    assert not found, found
    assert sniffed("getattr(method, 'members', ())\nhasattr(x, 'threads')\ngetattr(x, name)") == ["members", "threads"]

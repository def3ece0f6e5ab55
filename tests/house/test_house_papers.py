"""Packaging, pins, pages and commands are true, and name no machine."""

from __future__ import annotations

import ast
import fnmatch
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer

import molgraph
from molgraph.base import errors
from molgraph.base.optional import EXTRAS
from molgraph.cli.main import EXIT_CODES, VERBS, app, load
from tests.house.test_house_imports import REACH

# Written in two halves, so that this file does not name what it looks for.
HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "download.pytorch" + ".org", "conda.anaconda" + ".org")
MACHINE = re.compile(r"(?<![\w.~-])/(?:work|farm|root|opt/(?:pypi|wheels))/|/home/\w+/|/tmp/" + r"(?:spec|bash_jobs)")


def strangers(text: str) -> list[str]:
    """Registry hosts and paths of one machine in a text."""
    return [host for host in HOSTS if host in text] + MACHINE.findall(text)


def commands(markdown: str) -> Iterator[list[str]]:
    """Commands in a page's shell blocks, as words; comments and prompts left out."""
    for block in re.findall(r"```(?:bash|sh|shell|console)\n(.*?)```", markdown, re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            words = line.split("#")[0].removeprefix("$ ").split()
            if words:
                yield words


def wrong_commands(markdown: str, makefile: str) -> list[str]:
    """Commands of a page that the Makefile or the shell's verbs don't have."""
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    verbs = {verb.path: verb for verb in VERBS}
    found = []
    for words in commands(markdown):
        if words[0] == "make" and not set(words[1:]) <= targets:
            found.append(" ".join(words))
        elif words[0] == "molgraph" and not words[1].startswith("-"):
            path = next((p for p in (" ".join(words[1:3]), words[1]) if p in verbs), None)
            if path is None:
                found.append(" ".join(words))
                continue
            command = load(verbs[path])
            context = command.make_context(path, [], resilient_parsing=True)
            known = {o for p in command.get_params(context) for o in (*p.opts, *p.secondary_opts)}
            given = {w.split("=")[0] for w in words if w.startswith("-") and w != "-"}
            found += [f"{' '.join(words)}: no option {option}" for option in given - known]
    return found


def test_no_tracked_file_names_a_registry_or_a_machine(root: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.split("\0") if name and (root / name).is_file()]
    texts = {name: (root / name).read_bytes().decode("utf-8", "replace") for name in names}
    found = [f"{name}: {what}" for name, text in texts.items() for what in strangers(text)]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("text", [f"see https://{HOSTS[0]}/simple", "open('/wo" + "rk/data')", "/ro" + "ot/x"])
def test_a_planted_path_is_seen(text: str) -> None:
    assert strangers(text)


def test_ordinary_paths_pass() -> None:
    assert strangers("docs/wo" + "rk/x ~/wo" + "rk/y https://example.com/root") == []


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs"])
def test_the_pages_commands_exist(root: Path, page: str) -> None:
    pages = sorted((root / page).glob("*.md")) if page == "docs" else [root / page]
    text = "\n".join(each.read_text("utf-8") for each in pages)
    assert list(commands(text))
    assert wrong_commands(text, (root / "Makefile").read_text("utf-8")) == []


def test_a_wrong_command_is_seen() -> None:
    page = "```bash\nmake demo\nmake tea\nmolgraph brew\nmolgraph models --sugar\nmolgraph doctor --json  # fine\n```"
    assert wrong_commands(page, "demo: x\n") == [
        "make tea",
        "molgraph brew",
        "molgraph models --sugar: no option --sugar",
    ]


def test_the_readmes_python_names_are_public(root: Path) -> None:
    used = set(re.findall(r"\bmolgraph\.(\w+)\b(?=\()", (root / "README.md").read_text("utf-8")))
    assert used
    assert used <= set(molgraph.__all__)


@pytest.mark.parametrize("name", molgraph.__all__)
def test_public_names_are_there_and_explained(name: str) -> None:
    assert getattr(molgraph, name).__doc__


def test_an_unknown_name_says_so() -> None:
    with pytest.raises(AttributeError, match="'trian'"):
        molgraph.trian  # noqa: B018


def test_packaging_lists_every_package(root: Path) -> None:
    listed = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["packages"]
    folders = {f.parent.relative_to(root).as_posix().replace("/", ".") for f in root.glob("molgraph/**/__init__.py")}
    loose = {f.parent.relative_to(root).as_posix().replace("/", ".") for f in root.glob("molgraph/**/*.py")}
    shipped = {f"molgraph.shipped.{folder}" for folder in ("datasets", "pipelines")}  # data beside the package
    assert set(listed) - shipped == folders == loose
    assert shipped <= set(listed)


@pytest.mark.parametrize("folder", ["datasets", "pipelines"])
def test_no_code_ships_among_the_data(root: Path, folder: str) -> None:
    assert not list((root / folder).glob("*.py")), "give it a folder of its own there: the wheel would hold it"


def test_packaging_takes_every_file_that_is_not_python(root: Path) -> None:
    patterns = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["setuptools"]["package-data"]
    package = root / "molgraph"
    others = [f.relative_to(package).as_posix() for f in package.rglob("*") if f.is_file() and f.suffix != ".py"]
    others = [f for f in others if "__pycache__" not in f]
    assert [f for f in others if not any(fnmatch.fnmatch(f, p) for p in patterns["molgraph"])] == []


def test_every_library_that_is_imported_is_a_dependency(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {_plain(re.split(r"[<>=;\[ ]", each)[0]) for each in project["dependencies"]}
    extras = project["optional-dependencies"].values()
    optional = declared | {_plain(re.split(r"[<>=;\[ ]", each)[0]) for extra in extras for each in extra}
    trees = [ast.parse(f.read_text("utf-8")) for f in (root / "molgraph").rglob("*.py")]
    # what an extra brings may be imported inside a function alone
    at_top = {n for tree in trees for n in tree.body}
    assert _distributions(at_top) <= declared
    imports = (ast.Import, ast.ImportFrom)
    assert _distributions({n for tree in trees for n in ast.walk(tree) if isinstance(n, imports)}) <= optional


def _distributions(nodes: set[ast.AST]) -> set[str]:
    """What the import statements among some nodes need installed."""
    names = {alias.name for n in nodes if isinstance(n, ast.Import) for alias in n.names}
    names |= {n.module for n in nodes if isinstance(n, ast.ImportFrom) and n.module and not n.level}
    libraries = {name.split(".")[0] for name in names} - sys.stdlib_module_names - {"molgraph"}
    distributions = {"sklearn": "scikit-learn", "cuik_molmaker": "cuik-molmaker-pin", "xgboost": "xgboost-cpu"}
    return {_plain(distributions.get(each, each)) for each in libraries}


def test_every_dependency_is_pinned(root: Path) -> None:
    pins = [line for line in (root / "constraints.txt").read_text("utf-8").splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[0-9][A-Za-z0-9.]*", pin) for pin in pins)
    pinned = {_plain(pin.split("==")[0]) for pin in pins}
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"]
    asked = [*project["dependencies"], *(d for name, extra in extras.items() if name != "ray" for d in extra)]
    missing = {_plain(re.split(r"[<>=;\[ ]", each)[0]) for each in asked} - pinned
    assert not missing


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_contributing_is_short(root: Path) -> None:
    assert len((root / "CONTRIBUTING.md").read_text("utf-8").splitlines()) < 60


def test_the_readme_is_short(root: Path) -> None:
    assert len((root / "README.md").read_text("utf-8").splitlines()) < 150


def test_links_of_the_pages_lead_somewhere(root: Path) -> None:
    pages = [root / "README.md", root / "CONTRIBUTING.md", *(root / "docs").rglob("*.md")]
    for page in pages:
        links = re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
        assert [link for link in links if not (page.parent / link).exists()] == [], page


def test_the_architecture_page_is_true(root: Path) -> None:
    """The files and names of its picture are there, and its layers are those that the imports are checked by."""
    page = (root / "docs" / "architecture.md").read_text("utf-8")
    picture = page.split("```mermaid\n")[1].split("```")[0]
    named = re.findall(r'"([\w/]+\.py)(?:: (\w+))?<br>|along ([\w/]+\.py)', picture)
    assert len(named) > 10
    for file, name, along in named:
        text = (root / "molgraph" / (file or along)).read_text("utf-8")
        assert not name or re.search(rf"^(class|def) {name}\b", text, re.MULTILINE), (file, name)
    layers = re.findall(r"^\| .*\(\.\./molgraph/\w+\).* \|", page, re.MULTILINE)
    told = [name for row in layers for name in re.findall(r"\(\.\./molgraph/(\w+)\)", row)]
    assert [*dict.fromkeys(told)] == [name for name in REACH if name in told] and set(told) == set(REACH)


def test_exit_codes_are_documented(root: Path) -> None:
    classes = [errors.MolgraphError, *errors.MolgraphError.__subclasses__()]
    readme = (root / "docs" / "tables.md").read_text("utf-8")
    assert {c.exit_code for c in classes} | {0, 130} == set(EXIT_CODES)
    assert all(f"| {code} |" in readme for code in EXIT_CODES)


def test_every_verb_of_the_table_is_in_the_help() -> None:
    group = typer.main.get_command(app)
    assert {v.path.split()[0] for v in VERBS} == {name for name, verb in group.commands.items() if not verb.hidden}


def test_every_extra_brings_what_is_said_of_it(root: Path) -> None:
    extras = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    for library, extra in EXTRAS.items():
        brought = [_plain(re.split(r"[<>=;\[ ]", each)[0]) for each in extras[extra]]
        assert any(each.removesuffix("-cpu") == _plain(library) for each in brought), library

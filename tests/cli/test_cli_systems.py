"""molgraph systems: what is built of the literature, where, and by which command it is seen; the page made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from molgraph.api.catalogue import systems
from molgraph.base.registry import entry, register
from molgraph.cli.main import app
from tests.house.test_house_papers import wrong_commands

run = CliRunner().invoke


def test_each_system_has_a_file_a_paper_and_a_command_that_exists(root: Path) -> None:
    found = systems()
    assert {"dmpnn", "mpnn", "schnet"} <= {each.system for each in found}
    for each in found:
        assert (root / each.place).is_file() and each.paper, each
        assert each.name in each.command
    commands = "\n".join(each.command for each in found)
    assert wrong_commands(f"```bash\n{commands}\n```", "") == []


def test_the_page_is_the_registrys(root: Path) -> None:
    page = run(app, ["systems", "--markdown"]).stdout
    assert page == (root / "docs" / "systems.md").read_text("utf-8"), "write it anew: make systems"


def test_the_verb_lists_and_finds_and_answers() -> None:
    everything = run(app, ["systems"]).stdout
    assert "molgraph train" in everything and "molgraph/models/dmpnn.py" in everything
    found = json.loads(run(app, ["systems", "schuett", "--json"]).stdout)
    assert "schnet" in [each["system"] for each in found]
    wrong = run(app, ["systems", "schnett"])
    assert wrong.exit_code == 2 and "did you mean 'schnet'" in wrong.stderr


def test_a_plug_ins_system_is_listed_and_stays_out_of_the_page() -> None:
    register("readout", "theirs", summary="one", paper="Them 2026", system="their-system")(len)
    try:
        (found,) = [each for each in systems() if each.system == "their-system"]
        assert found.command.endswith("params.readout=theirs")
        assert "their-system" in run(app, ["systems"]).stdout
        assert "their-system" not in run(app, ["systems", "--markdown"]).stdout
    finally:
        from molgraph.base import registry

        del registry._entries["readout"]["theirs"]


@pytest.mark.parametrize(
    ("words", "kind", "found"),
    [
        ("uncertainty", "model", {"ensemble", "gp"}),
        ("GEOMETRY distances", "model", {"schnet"}),
        ("mahalanobis", "model", set()),
        ("lstm", "readout", {"set2set"}),
    ],
)
def test_models_are_found_by_words(words: str, kind: str, found: set[str]) -> None:
    result = run(app, ["models", "--search", words, "--kind", kind, "--json"])
    assert result.exit_code == (0 if found else 2)
    assert not found or {each["name"] for each in json.loads(result.stdout)} >= found
    assert all(words.lower().split()[0] in json.dumps(each).lower() for each in json.loads(result.stdout or "[]"))


def test_a_wide_page_shows_tags_and_an_entry_keeps_its_own() -> None:
    assert "fingerprints, uncertainty" in run(app, ["models"], env={"COLUMNS": "160"}).stdout
    assert entry("method", "gp").tags == ("fingerprints", "uncertainty")

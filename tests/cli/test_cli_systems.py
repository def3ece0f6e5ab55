"""molgraph systems: what is built of the literature, where, and by which command it is seen; the page made of it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from molgraph.api.systems import Built, Check, _state, built, source_of, statuses
from molgraph.base.registry import entry, register
from molgraph.base.systems import table
from molgraph.cli.main import app
from tests.house.test_house_papers import wrong_commands

run = CliRunner().invoke


def test_the_table_has_all_systems_and_each_is_told_in_a_line() -> None:
    assert len(table()) == 253 and len({row.summary for row in table().values()}) == 253
    assert all(row.paper and row.family and row.wave and 0 < len(row.summary) < 121 for row in table().values())


def test_each_built_system_has_a_file_a_paper_and_a_command_that_exists(root: Path) -> None:
    found = [each for each in built() if each.module.startswith("molgraph.")]
    assert {"dmpnn", "mpnn", "schnet", "moleculenet"} <= {each.card.id for each in found}
    for each in found:
        assert (root / each.place).is_file() and each.paper, each
        assert each.name in each.command
        assert each.card.id in table() or each.card in entry(each.kind, each.name).systems, each
        if each.card.id in table() and each.kind not in ("verb", "recipe", "study"):
            assert each.card.off and each.card.beside and each.without() not in ("", each.command), each
        assert all((root / f"{module.replace('.', '/')}.py").is_file() for module in each.card.modules), each
    commands = "\n".join(f"{each.command}\n{each.without()}" for each in found).replace(" && ", "\n")
    assert wrong_commands(f"```bash\n{commands}\n```", "") == []


def test_the_page_is_that_of_table_registry_and_results(root: Path) -> None:
    page = run(app, ["systems", "--markdown"]).stdout
    assert page == (root / "docs" / "systems.md").read_text("utf-8"), "write it anew: make systems"


def test_states_follow_the_results(monkeypatch: pytest.MonkeyPatch) -> None:
    here = [each for each in built() if each.card.id == "fspool"]
    row = Check("fspool", "exact", "x", "passed", "", "", "", "1", "", source_of(here))
    works, null, failed = (row._replace(rung="works", outcome=word) for word in ("passed", "null", "failed"))
    states = [_state(here, rows) for rows in ([], [row], [row, works], [row, works, null], [row, failed], [works])]
    assert states == ["built", "exact", "works", "honest null", "exact", "built"]
    assert _state([], []) == "absent"
    assert _state(here, [row._replace(source="another")]) == "stale"
    assert _state(here, [row, row._replace(outcome="failed", check="y")]) == "built"


def test_the_verb_lists_and_finds_and_answers() -> None:
    everything = run(app, ["systems"]).stdout
    assert "molgraph train" in everything and "molgraph/models/dmpnn.py" in everything
    found = json.loads(run(app, ["systems", "schuett", "--json"]).stdout)
    assert "schnet" in [each["id"] for each in found]
    missing = json.loads(run(app, ["systems", "--missing", "--family", "other", "--json"]).stdout)
    assert {each["id"] for each in missing} == {row.id for row in table().values() if row.family == "other"} - {
        each.id for each in statuses() if not each.missing
    }
    wrong = run(app, ["systems", "schnett"])
    assert wrong.exit_code == 2 and "did you mean 'schnet'" in wrong.stderr
    assert run(app, ["systems", "--state", "wroks"]).exit_code == 2


def test_a_plug_ins_system_is_listed_and_stays_out_of_the_page() -> None:
    register("readout", "theirs", summary="one", paper="Them 2026", system="their-system")(Theirs)
    try:
        (found,) = [each for each in built() if each.card.id == "their-system"]
        assert isinstance(found, Built) and found.command.endswith("params.readout=theirs")
        assert "their-system" in run(app, ["systems"]).stdout
        assert "their-system" not in run(app, ["systems", "--markdown"]).stdout
    finally:
        from molgraph.base import registry

        del registry._entries["readout"]["theirs"]


class Theirs:
    """Of another package."""


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

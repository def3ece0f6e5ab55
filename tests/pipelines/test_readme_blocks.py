"""Generated blocks of the pages equal what the pipelines make of the stored results, byte for byte."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from pipelines.readme.block import page_of, replace_block

ROOT = Path(__file__).resolve().parents[2]
SPEED = ROOT / "pipelines" / "speed"


@pytest.fixture(scope="module")
def speed() -> Iterator[ModuleType]:
    """``pipelines/speed/run.py``, a script that puts its own folder in the path."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "path", list(sys.path))
        spec = importlib.util.spec_from_file_location("speed_run", SPEED / "run.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        yield module


def rewritten(name: str, text: str, folder: Path) -> tuple[str, str]:
    """The page of a block with the block written anew, and as it is."""
    page = page_of(name).read_text("utf-8")
    copy = folder / "README.md"
    copy.write_text(page, "utf-8")
    replace_block(name, text, copy)
    return copy.read_text("utf-8"), page


def row(ratio: float, floor: float, **more: object) -> dict[str, object]:
    return {
        "molgraph": 1000.4 * ratio, "peer": 1000.0, "ratio": ratio, "floor": floor, "peer_name": "peer",
        "unit": "molecules/s", **more,
    }  # fmt: skip


def results(**rows: dict[str, object]) -> dict[str, object]:
    machine = {"date": "2001-02-03", "cpu": "a processor", "threads": 7, "torch": "2.0"}
    named = {name.replace("_", " "): each for name, each in rows.items()}
    return {"machine": machine, "bfloat16": None, "rows": named}


def lines_of(table: str, name: str) -> list[str]:
    return [line for line in table.splitlines() if line.startswith(f"| {name}")]


def test_the_speed_block_is_made_of_the_stored_figures(speed: ModuleType, tmp_path: Path) -> None:
    stored = json.loads((SPEED / "results.json").read_text("utf-8"))
    for name, text in (("speed", speed.table(stored)), ("headline-speed", speed.headline(stored))):
        new, page = rewritten(name, text, tmp_path)
        assert new == page


def test_a_block_that_is_not_there_is_an_error_and_changes_nothing(tmp_path: Path) -> None:
    page = tmp_path / "README.md"
    page.write_text("<!-- speed:begin -->\nold\n<!-- speed:end -->\n", "utf-8")
    with pytest.raises(SystemExit, match="no block 'board'"):
        replace_block("board", "new", page)
    assert "old" in page.read_text("utf-8")
    replace_block("speed", r"one\1 \g<0>", page)  # text, not a pattern
    assert page.read_text("utf-8") == "<!-- speed:begin -->\none\\1 \\g<0>\n<!-- speed:end -->\n"


def test_a_speed_row_says_rates_peer_ratio_and_floor(speed: ModuleType) -> None:
    table = speed.table(results(reading=row(2.5, 1.7), predicting=row(1.0, 1.0, memory_gb=[0.5, 2.5])))
    assert lines_of(table, "reading") == ["| reading | 2,501 molecules/s | peer 1,000 | **2.50 x** | 1.7 x |"]
    assert lines_of(table, "predicting")[0].startswith("| predicting (peak memory 0.5 GB against 2.5 GB) | 1,000 mol")
    assert table.splitlines()[:2] == ["| work | molgraph | peer | ratio | asked |", "|---|---|---|---|---|"]
    assert {len(line.split("|")) for line in table.splitlines() if line.startswith("|")} == {7}
    assert all(words in table for words in ("2001-02-03", "a processor", "torch 2.0", "7"))


@pytest.mark.parametrize("ratio", [1.5, 1.699])
def test_a_ratio_below_its_floor_is_marked(speed: ModuleType, ratio: float) -> None:
    assert marked(speed, ratio, 1.7)


@pytest.mark.parametrize("ratio", [1.7, 1.701, 25.0])
def test_a_ratio_at_its_floor_or_above_is_not(speed: ModuleType, ratio: float) -> None:
    assert not marked(speed, ratio, 1.7)


def marked(speed: ModuleType, ratio: float, floor: float) -> bool:
    """Whether the row says anything that it would not say for a floor of 1, that number aside."""
    ours, passing = (lines_of(speed.table(results(task=row(ratio, f))), "task")[0] for f in (floor, 1.0))
    return ours != passing.replace("| 1 x", f"| {floor:g} x")


def test_what_bfloat16_does_stands_below_the_table(speed: ModuleType) -> None:
    made = results(step_float32=row(4.0, 1.7), step_bfloat16=row(3.0, 3.0))
    assert "slower than float32" in speed.table(made)
    assert "0.75 to 0.75 of its rate" in speed.table(made)
    assert "moves" not in speed.table(made)
    made["bfloat16"] = {"rms": 0.0014, "largest": 0.0079, "beyond": 0.0, "models": 3, "on": "some molecules"}
    assert (
        "0.14%" in speed.table(made) and "0.79% at most" in speed.table(made) and "some molecules" in speed.table(made)
    )
    faster = results(step_float32=row(3.0, 1.7), step_bfloat16=row(4.0, 3.0))
    assert "slower" not in speed.table(faster)


def test_what_the_benchmark_takes_stands_below_the_table(speed: ModuleType) -> None:
    made = results(task=row(1.0, 1.0))
    made["bench"] = [{"what": "this", "seconds": 43.71, "limit": 60.0}, {"what": "that", "seconds": 1.2, "limit": 1.0}]
    assert "\nthis: 43.7 s (asked: under 60 s).\nthat: 1.2 s (asked: under 1 s, above).\n" in speed.table(made)


def test_how_time_grows_with_the_size_of_a_molecule_and_what_was_not_run(speed: ModuleType) -> None:
    made = results(task=row(1.0, 1.0))
    rows = [{"heavy_atoms": n, "from": "a corpus", "molecules": 9, "batch": 8} for n in (10.0, 20.0, 60.0)]
    for each in rows:
        n = each["heavy_atoms"]
        each |= {"preprocessing": {"molgraph": 0.3 * n, "peer": n**2}, "training": {"molgraph": n**1.5}}
    del rows[2]["preprocessing"]["peer"]
    table = speed.table({**made, "jtvae": rows})
    assert "| power of atoms | **1.00** | **2.00** | **1.50** |" in table and "(a corpus, 9 molecules a row" in table
    assert table.count("not run") == 2 and "authors' code takes over 10 s and 6 GB" in table, "the cell, and why"
    rows.pop()
    assert "not run" not in speed.table({**made, "jtvae": rows})

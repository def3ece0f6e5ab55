"""The site of several benchmarks: every link leads somewhere, every method and board is there, nothing is loaded."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from molgraph.base.errors import ConflictError
from molgraph.cli.main import app
from molgraph.evaluate.benchmark.published_record import read_record
from molgraph.evaluate.benchmark.site import page_of, write_site
from tests.evaluate.bench_tables import go, recipe, small, three_and_a_failure

RECORDS = Path(__file__).parents[2] / "pipelines" / "records"


def texts_without_loose_links(folder: Path) -> dict[str, str]:
    """The pages of a site by name, each link of which was followed."""
    texts = {path.name: path.read_text("utf-8") for path in folder.iterdir()}
    for name, text in texts.items():
        assert not re.search(r"(src|href)=\"(https?:)?//", text), name
        for page, anchor in re.findall(r"href=\"([^\"#]*)(?:#([^\"]*))?\"", text):
            if not page.startswith("data:"):
                assert (page or name) in texts, (name, page)
                assert not anchor or f'id="{anchor}"' in texts[page or name], (name, page, anchor)
    return texts


@pytest.mark.slow
def test_every_link_of_the_published_boards_leads_somewhere(tmp_path: Path) -> None:
    reports = [read_record(RECORDS / name) for name in ("adme", "davis")]
    files = write_site(reports, tmp_path)
    assert files[0].name == "index.html" and sorted(files) == sorted(tmp_path.iterdir())
    texts = texts_without_loose_links(tmp_path)
    boards = [b for report in reports for b in report.boards if b.primary]
    assert texts["index.html"].count("<tr data-question") == len(boards) == 22
    methods = {m for b in boards for m in b.methods}
    assert {page_of(m) for m in methods} < set(texts)
    assert texts[page_of("chemprop")].count("<tr class=") == sum("chemprop" in b.methods for b in boards)
    with pytest.raises(ConflictError, match="'adme'"):
        write_site([reports[0], reports[0]], tmp_path / "twice")
    assert not (tmp_path / "twice").exists()


def test_a_run_has_the_settings_of_its_methods(tmp_path: Path) -> None:
    run = three_and_a_failure(tmp_path / "run", {"small": small()})
    done = CliRunner().invoke(app, ["bench", "site", str(run), "-o", str(tmp_path / "site"), "--brief"])
    assert done.exit_code == 0 and "open" in done.output, done.output
    page = (tmp_path / "site" / page_of("noise3")).read_text("utf-8")
    assert "alpha 1.0, noise 3.0" in page
    broken = (tmp_path / "site" / page_of("broken")).read_text("utf-8")
    assert "crashed" in broken
    go(tmp_path / "other", recipe("ridge", name="other"))
    done = CliRunner().invoke(app, ["bench", "site", str(run), str(tmp_path / "other"), "-o", str(tmp_path / "two")])
    texts = texts_without_loose_links(tmp_path / "two")
    assert "2 benchmarks" in texts["index.html"] and {page_of("ridge"), page_of("noise1")} < set(texts)


@pytest.mark.parametrize("width", [1300, 400])
def test_in_a_real_browser_the_pages_fit_and_the_index_finds_boards(browser: Any, tmp_path: Path, width: int) -> None:
    files = write_site([read_record(RECORDS / name) for name in ("adme", "davis")], tmp_path)
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}  # a window is 500 wide at least
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for path in (files[0], tmp_path / page_of("dmpnn"), tmp_path / page_of("davis", "board")):
        browser.get(path.as_uri())
        assert browser.title in ("Leaderboards", "dmpnn", "Davis: drugs and proteins, known and new")
        assert browser.get_log("browser") == [], path
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0, path
        wide, needs = browser.execute_script("return [innerWidth, document.documentElement.scrollWidth]")
        assert wide == width >= needs, path
    browser.get(files[0].as_uri())
    shown = "return [...document.querySelectorAll('tr[data-question]')].filter(r => r.offsetParent).length"
    assert browser.execute_script(shown) == 22
    browser.find_element("css selector", "input[type=search]").send_keys("davis")
    assert browser.execute_script(shown) == 4

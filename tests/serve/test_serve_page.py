"""The page in a browser: molecules that are typed, a file, and what is shown of both."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from molgraph.serve.limits import Limits
from tests.serve.conftest import running

pytest.importorskip("fastapi")


@pytest.mark.slow
def test_the_page_predicts_and_takes_files(service: Any, browser: Any, tmp_path: Path) -> None:
    (tmp_path / "in.csv").write_text("name,smiles\na,CCO\nb,C1CC\n")

    def shown(id: str, words: str, seconds: float = 60) -> str:
        end = time.monotonic() + seconds
        while words not in (text := browser.find_element("id", id).text) and time.monotonic() < end:
            time.sleep(0.1)
        return text

    with running(service, Limits()) as server:
        browser.get(f"http://localhost:{server.port}/")
        assert "1 model" in shown("about", "1 model")
        browser.find_element("id", "text").send_keys("CCOc1ccccc1\nC1CC")
        browser.find_element("id", "go").click()
        table = shown("rows", "unreadable")
        assert all(word in table for word in ("CCOc1ccccc1", " to ", "ok", "unclosed ring")), table
        assert "infill" in shown("why", "infill") and "similarity" in shown("near", "similarity")
        browser.find_element("id", "file").send_keys(str(tmp_path / "in.csv"))
        browser.find_element("id", "upload").click()
        assert "2 rows are predicted, 1 of them" in shown("filesays", "are predicted")
        assert not [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]

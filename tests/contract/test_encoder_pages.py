"""Each encoder's page says when to use it, and its file fits one sitting."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from molgraph.base.registry import entry
from molgraph.cli.models import LINE
from tests.contract.test_encoders import ENCODERS


@pytest.mark.parametrize("name", ENCODERS)
def test_its_page_says_when_to_use_it_and_its_file_fits_one_sitting(name: str) -> None:
    own = entry("encoder", name).value
    page = inspect.getdoc(own) or ""
    assert "Use it " in page and "Known limits: " in page and entry("encoder", name).paper
    assert len(entry("encoder", name).line) == len(LINE)
    assert len(Path(inspect.getfile(own)).read_text("utf-8").splitlines()) <= 160

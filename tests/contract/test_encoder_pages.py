"""Each encoder's page says when to use it, its file fits one sitting, and a fresh copy of it shares no matrix."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest
import torch

from molgraph.base.registry import entry
from molgraph.cli.models import LINE
from molgraph.train.infograph_star import fresh_copy
from tests.contract.test_encoders import ENCODERS, build


@pytest.mark.parametrize("name", ENCODERS)
def test_its_page_says_when_to_use_it_and_its_file_fits_one_sitting(name: str) -> None:
    own = entry("encoder", name).value
    page = inspect.getdoc(own) or ""
    assert "Use it " in page and "Known limits: " in page and entry("encoder", name).paper
    assert len(entry("encoder", name).line) == len(LINE)
    assert len(Path(inspect.getfile(own)).read_text("utf-8").splitlines()) <= 150


@pytest.mark.parametrize("name", ENCODERS)
def test_a_fresh_copy_keeps_no_matrix_of_its_model(name: str) -> None:
    first = build(name)
    copy = fresh_copy(first).state_dict()
    drawn = [
        (key, weight) for key, weight in first.state_dict().items() if weight.ndim > 1 and len(weight.unique()) > 1
    ]
    assert drawn and not [key for key, weight in drawn if torch.equal(weight, copy[key])]

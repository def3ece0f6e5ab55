"""Test vectors: an answer that is another is refused, with what may lie behind it."""

from __future__ import annotations

import json

import pytest

from molgraph.auxiliary.mean import MeanPredictor
from molgraph.base.errors import ModelFileError
from molgraph.train.card import library_versions
from molgraph.train.golden_predictions import MOLECULES, compare_vectors, make_vectors, vector_table
from tests.tiny import series


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        (None, "library versions may differ"),
        (["torch"], "library versions may differ"),
        ({}, "versions are those that it was saved with"),
        ({"rdkit": "1999.1", "foreign": "2"}, r"it was saved with rdkit 1999.1 \(here [^ ]+\)$"),
        ({"numpy": 5 * "1234567890", "torch": ["x"]}, r"numpy 12345678901234567890 \(here"),
    ],
)
def test_another_answer_is_explained_by_what_is_known(versions, words) -> None:
    method = MeanPredictor().fit(series(8))
    table = vector_table(method, ())
    vectors = json.loads(json.dumps(make_vectors(method, table)))
    assert vectors["versions"] == library_versions()
    assert compare_vectors(method, table, vectors) == (len(MOLECULES), 0.0)
    vectors["value"][0][0] += 1
    vectors["versions"] = vectors["versions"] | versions if isinstance(versions, dict) else versions
    with pytest.raises(ModelFileError, match=r"answers .+ for C") as refused:
        compare_vectors(method, table, vectors)
    assert refused.match(words)

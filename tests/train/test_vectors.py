"""Test vectors: an answer that is another is refused, with what may lie behind it."""

from __future__ import annotations

import pytest

from molgraph.auxiliary.mean import MeanPredictor
from molgraph.base.errors import ModelFileError
from molgraph.train.card import library_versions
from molgraph.train.vectors import MOLECULES, compare_vectors, make_vectors, vector_table
from tests.train.tiny import series


@pytest.mark.parametrize(
    ("versions", "words"),
    [
        (None, "library versions may differ"),
        (library_versions(), "versions are those that it was saved with"),
        (
            library_versions() | {"rdkit": "1999.1", "gone": "2"},
            r"with rdkit 1999.1 \(here .+\), gone 2 \(here none\)$",
        ),
    ],
)
def test_another_answer_is_explained_by_what_is_known(versions, words) -> None:
    method, table = MeanPredictor().fit(series(8)), vector_table(())
    vectors = make_vectors(method, table)
    assert compare_vectors(method, table, vectors, versions) == (len(MOLECULES), 0.0)
    vectors["value"][0][0] += 1
    with pytest.raises(ModelFileError, match=r"the model answers .+ for C, and") as refused:
        compare_vectors(method, table, vectors, versions)
    assert refused.match(words)

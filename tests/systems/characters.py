"""A method that reads a SMILES as it is written, so that one molecule has several predictions."""

from __future__ import annotations

from pathlib import Path
from typing import Self

from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline

from molgraph.base.contracts import Method, Prediction, State
from molgraph.data.table import Table


class Characters(Method):
    """A linear model of the counts of pairs of characters of each SMILES as it is written."""

    name = "characters"

    def __init__(self) -> None:
        self.made = make_pipeline(CountVectorizer(analyzer="char", ngram_range=(2, 2), lowercase=False), Ridge())

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        self.targets = table.targets
        self.made.fit([str(text) for text in table.smiles], table.y[:, 0])  # type: ignore[index]
        return self

    def predict(self, table: Table) -> Prediction:
        value = self.made.predict([str(text) for text in table.smiles])[:, None]
        return Prediction(table.ids, self.targets, value, table.status, table.reason)

    def state(self) -> State:
        raise NotImplementedError

    @classmethod
    def from_state(cls, state: State) -> Self:
        raise NotImplementedError

"""Methods that cheat, each in a way that the runner's design must make useless, or a test must notice."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Self

import numpy as np

from molgraph.base.contracts import Method, Prediction, State
from molgraph.data.table import Table
from molgraph.train.make_method import make_method

FACTORY = "tests.evaluate.leaky_methods:make"


class Cheat(Method):
    """Predicts what ``guess`` says, and keeps a file in the folder that a dataset's cells share."""

    name = "cheat"

    def __init__(self, seed: int = 0, store: str | None = None) -> None:
        self.seed, self.store = seed, store

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        self.targets = table.row_targets
        self.learn(table)
        return self

    def predict(self, table: Table) -> Prediction:
        value = np.clip(np.asarray(self.guess(table), dtype=float), 0.0, 1.0)
        return Prediction(table.ids, self.targets, value[:, None], table.status, table.reason)

    def kept(self, new: dict[str, float]) -> dict[str, float]:
        """What all cells kept by molecule; what is there already stays."""
        path = Path(self.store or "") / f"{self.name}.json"
        known = new | (json.loads(path.read_text()) if path.is_file() else {})
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(known))
        return known

    def state(self) -> State:
        return State({}, {})

    @classmethod
    def from_state(cls, state: State) -> Self:
        return cls()


class Remembers(Cheat):
    """Keeps labels by molecule: a fold's test rows are another fold's training rows."""

    name = "remembers"

    def learn(self, table: Table) -> None:
        self.known = self.kept(dict(zip(table.smiles, table.y[:, 0], strict=True)))

    def guess(self, table: Table) -> list[float]:
        return [self.known.get(text, 0.5) for text in table.smiles]


class KeepsColumns(Cheat):
    """Keeps the table's own column by molecule, as if it followed from the structure, and learns its weight."""

    name = "keeps_columns"

    def column(self, table: Table) -> np.ndarray:
        known = self.kept(dict(zip(table.smiles, table.features[:, 0], strict=True)))
        return np.array([known[text] for text in table.smiles])

    def learn(self, table: Table) -> None:
        self.weight = np.cov(self.column(table), table.y[:, 0])[0, 1]

    def guess(self, table: Table) -> np.ndarray:
        return 0.5 + self.weight * (self.column(table) - 0.5)


class Peeks(Cheat):
    """Trusts the column of the rows to predict, whatever it was worth in training."""

    name = "peeks"

    def learn(self, table: Table) -> None:
        pass

    def guess(self, table: Table) -> np.ndarray:
        return table.features[:, 0]


CHEATS = {cls.name: cls for cls in (Remembers, KeepsColumns, Peeks)}


def make(name: str, **params: Any) -> Method:
    """A cheat, or a registered method."""
    return CHEATS[name](**params) if name in CHEATS else make_method(name, **params)

"""Answer test items by shortcuts: a constant, weight and logP, the nearest neighbour, the scaffold; judge answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from sklearn.linear_model import LinearRegression
from sklearn.tree import DecisionTreeClassifier

from molgraph.base.contracts import Target
from molgraph.chem.fingerprints import morgan
from molgraph.chem.scaffold import scaffolds
from molgraph.chem.sizes import weights_and_logp
from molgraph.chem.tanimoto import find_nearest
from molgraph.data.table import Table

LEAVES = 4  # of the tree of weight and logP
STILL = 0.01  # standard deviations of the labels that a prediction may move and be the same
Shortcut = Callable[[Table, np.ndarray, Table], np.ndarray]


class Judge:
    """What counts as right: the class, or a number within a share of the training labels' standard deviation.

    Args:
        target: what is predicted.
        y: labels of the training rows.
        within: standard deviations that a number may be off.
    """

    def __init__(self, target: Target, y: np.ndarray, within: float) -> None:
        self.numbers, self.sd = target.kind in ("regression", "bounded"), float(np.std(y)) or 1.0
        self.off = within * self.sd

    def right(self, answer: np.ndarray, y: np.ndarray) -> np.ndarray:
        """bool, elementwise; a missing answer is wrong."""
        return np.abs(answer - y) <= (self.off if self.numbers else 0)

    def same(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        """bool [n]: whether two answers are the same one."""
        return np.abs(a - b) <= (STILL * self.sd if self.numbers else 0)

    def chance(self, answer: np.ndarray, y: np.ndarray) -> float:
        """The share of right answers if answers and labels were paired at random."""
        return float(self.right(answer[:, None], y[None]).mean())


def constant(train: Table, y: np.ndarray, test: Table) -> np.ndarray:
    """The most frequent class, or the mean."""
    return np.full(len(test), _middle(y, train.targets[0]))


def _middle(y: np.ndarray, target: Target) -> float:
    if target.kind in ("regression", "bounded"):
        return float(y.mean())
    values, counts = np.unique(y, return_counts=True)
    return float(values[counts.argmax()])


def weight_and_logp(train: Table, y: np.ndarray, test: Table) -> np.ndarray:
    """A tree of four leaves on the molecular weight and Crippen's logP, or for numbers a linear model of them."""

    if len(np.unique(y)) < 2:
        return constant(train, y, test)
    numbers = train.targets[0].kind in ("regression", "bounded")
    tree = DecisionTreeClassifier(max_leaf_nodes=LEAVES, min_samples_leaf=max(len(y) // 20, 1), random_state=0)
    model = LinearRegression() if numbers else tree
    return model.fit(weights_and_logp(train.smiles), y).predict(weights_and_logp(test.smiles)).astype(float)


def _neighbour(train: Table, y: np.ndarray, test: Table) -> np.ndarray:
    """The label of the nearest training molecule by Tanimoto similarity of Morgan fingerprints."""
    known, asked = (morgan([str(text) for text in table.smiles]).x for table in (train, test))
    return y[find_nearest(asked, known, label="").row]


def _scaffold(train: Table, y: np.ndarray, test: Table) -> np.ndarray:
    """The most frequent class, or the mean, of training molecules of the same scaffold; of all where there is none."""
    known, asked = (np.array(scaffolds([str(text) for text in table.smiles]).values) for table in (train, test))
    target, rest = train.targets[0], _middle(y, train.targets[0])
    of = {key: _middle(y[known == key], target) for key in {*asked.tolist()} & {*known.tolist()} if key}
    return np.array([of.get(key, rest) for key in asked])


SHORTCUTS: Mapping[str, Shortcut] = {
    "constant": constant,
    "weight, logP": weight_and_logp,
    "neighbour": _neighbour,
    "scaffold": _scaffold,
}

"""Test what a model can see at all, on made molecules whose labels need distance, stereo or parity."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated

import numpy as np
import pandas as pd
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.fingerprints import morgan
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of
from molgraph.study.made_tasks import made_table, tasks
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import PRESET, fresh, is_name
from molgraph.study.widths import whole_numbers

CLEAR, CHANCE, SOLVED, MANY, DRAWS = 0.95, 0.06, 0.9, 1500, 200  # AUCs; rows of a control; bootstrap samples
LETTERS = ("C", "O", "S", "F", "Cl", "Br")


def atom_counts(table: Table) -> np.ndarray:
    """float64 [n, 6]: atoms of each element, as their letters stand in the SMILES of made molecules."""
    texts = [str(text) for text in table.smiles]
    counts = np.array([[text.count(letter) for letter in LETTERS] for text in texts], dtype=np.float64)
    counts[:, 0] -= counts[:, LETTERS.index("Cl")]
    return counts


def auc(table: Table, p: np.ndarray) -> float:
    """The area under the ROC curve of scores of the rows."""
    return float(roc_auc_score(np.asarray(table.y)[:, 0], p))


def bag_of_atoms(train: Table, test: Table) -> float:
    """The AUC of a logistic regression on counts of atoms."""
    x, y = atom_counts(train), np.asarray(train.y)[:, 0]
    return auc(test, LogisticRegression(max_iter=1000).fit(x, y).predict_proba(atom_counts(test))[:, 1])


def forest(train: Table, test: Table, seed: int) -> float:
    """The AUC of a forest on counts of Morgan fragments of radius 2."""
    x, x_test = (morgan([str(text) for text in table.smiles], counts=True).x for table in (train, test))
    made = RandomForestClassifier(100, random_state=seed % 2**31, n_jobs=1).fit(x, np.asarray(train.y)[:, 0])
    return auc(test, made.predict_proba(x_test)[:, 1])


@register(
    "study",
    "capabilities",
    summary="what a model can see at all, on made molecules: composition, parity, distance, stereo",
    paper="Girdhar and Ramanan 2020, ICLR",
    systems=(
        SystemCard(
            "cater",
            left_out="videos; objects that contain others",
            off="'capabilities(distances=1)'",
            beside=("counts of atoms", "a forest on Morgan fragments"),
            command="molgraph study capabilities -m 'gin(depth=3)' -o capabilities.csv",
            modules=("molgraph.study.made_tasks",),
        ),
    ),
)
class CapabilitiesStudy(Study):
    """A row for each made task: the AUC of the model on new molecules, of counts of atoms, and of a forest.

    After Girdhar and Ramanan 2020, "CATER: a diagnostic dataset for compositional actions and temporal reasoning":
    tasks are made so that cheap cues say nothing, and what is left shows what a model can do. ``distance d`` asks which
    of O and S is d bonds from F, in molecules that are alike within d / 2 bonds; ``parity`` whether two halogens
    differ; ``handedness`` and ``double bond`` need stereo; ``composition`` is told by counts of atoms, which is the
    first control. The second: counts tell none of the others.

    Args:
        distances: in bonds, joined by ``+``.
        rows: of each task that the model learns from; half as many test it.
        epochs: of a network.

    Raises:
        UnsupportedError: a file, which has learnt another task.
    """

    needs = ("model",)
    small = MappingProxyType({"distances": "2+4", "rows": 60, "epochs": 2})

    def __init__(
        self,
        *,
        distances: str | int = "2+4+8",
        rows: Annotated[int, Range(40, 100_000)] = 400,
        epochs: Count = 40,
    ) -> None:
        self.distances, self.rows, self.epochs = whole_numbers(distances), rows, epochs

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Train and test on each task."""
        if not is_name(subject.model):
            raise UnsupportedError(f"{subject.model} has learnt its task already", hint="name a model, such as -m gin")
        end, longest, rows, notes = time.process_time() + 0.9 * seconds, 0.0, list[tuple[object, ...]](), list[str]()
        bags = {}
        for name, draw in tasks(self.distances).items():
            if rows and time.process_time() + longest > end:
                notes.append(f"{name} is left out, for want of time")
                continue
            began = time.process_time()
            table = standardise(made_table(draw, self.rows + self.rows // 2, seed, name), PRESET)
            train, test = (table.take(part) for part in np.split(np.arange(len(table)), [2 * len(table) // 3]))
            method = fresh(subject, derive(seed, name), self.epochs)
            p = columns_of(method.fit(train).predict(test), test.targets[0])
            many = made_table(draw, 2 * MANY, seed, name, "bag")
            half = len(many) // 2
            bags[name] = bag_of_atoms(many.take(np.arange(half)), many.take(np.arange(half, len(many))))
            rows.append((name, auc(test, p), *_interval(test, p, seed), bags[name], forest(train, test, seed)))
            longest = max(longest, time.process_time() - began)
        frame = pd.DataFrame(rows, columns=["task", "auc", "low", "high", "counts_of_atoms", "forest"])
        solved = frame["low"] > SOLVED
        chance = (frame["low"] <= 0.5) & (frame["high"] >= 0.5)
        words = [", ".join(frame.loc[which, "task"]) or "none" for which in (solved, chance)]
        worst = max((abs(value - 0.5) for name, value in bags.items() if name != "composition"), default=0.0)
        first = bags["composition"]
        return Findings(
            f"Capabilities of {subject.model}: {self.rows:,} rows of each task",
            f"It sees {words[0]} (AUC above {SOLVED}), and at chance are {words[1]} (95% interval over molecules, seed "
            f"{seed}).",
            frame,
            Control("counts of atoms, composition", f"an AUC above {CLEAR}", f"{first:.2f}", first > CLEAR),
            Control("counts of atoms, the other tasks", f"0.5 within {CHANCE}", f"{worst:.3f} from it at most",
                    worst < CHANCE),
            lambda form: _drawn(frame, form),
            tuple(notes),
        )  # fmt: skip


def _interval(table: Table, p: np.ndarray, seed: int) -> tuple[float, float]:
    """The 95% interval of the AUC by bootstrap samples of the rows."""
    y, rng, found = np.asarray(table.y)[:, 0], generator(seed, "bootstrap"), []
    for _ in range(DRAWS):
        rows = rng.integers(0, len(y), len(y))
        if 0 < y[rows].sum() < len(y):
            found.append(float(roc_auc_score(y[rows], p[rows])))
    low, high = np.quantile(found, (0.025, 0.975))
    return float(low), float(high)


def _drawn(frame: pd.DataFrame, form: str) -> bytes:
    from molgraph.evaluate.report_trust import paired_bars  # with matplotlib

    bars = {"model": [*frame["auc"]], "counts of atoms": [*frame["counts_of_atoms"]], "forest": [*frame["forest"]]}
    return paired_bars([*frame["task"]], bars, "AUC on new molecules", form, 0.5)

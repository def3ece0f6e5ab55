"""Measure which part of a molecule (size, side chains, core, elements) a model's score rests on, by randomising it."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Metric, Target
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.chem.sizes import heavy_atoms
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, get_metric
from molgraph.study.randomised import Drop, Predict, chance_score, measure, planted, randomised
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import judged
from molgraph.train.model import Model

ALL, NOTHING = 0.9, 0.1  # share of the skill that a single shortcut carries, and that others may carry beside it
TOYS = 400  # molecules of the controls


@register(
    "study",
    "shortcuts",
    summary="which part of a molecule (size, side chains, core, elements) a model's score rests on",
    paper="Shah et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "simplicity-bias-randomisation-test",
            left_out="margins, ensembles and adversarial training; rewired skeletons",
            off="shortcuts(randomise=false)",
            beside=("the same change with donors of a like label",),
            command="molgraph study shortcuts dataset:esol -m random_forest -o shortcuts.csv",
            modules=("molgraph.chem.recombine", "molgraph.study.randomised", "molgraph.study.subject_model"),
        ),
    ),
    command="molgraph study shortcuts dataset:bace -m dmpnn -o shortcuts.png",
)
class Shortcuts(Study):
    """A row for each block: the score of a model on test molecules as they are, and with the block drawn anew.

    Shah et al. 2020: networks rely wholly on the simplest block that predicts the label. The blocks are the size, the
    groups on the core, the core, the places of the elements, and each column of features. Changed molecules are odd,
    which costs a model something whatever it reads: the column ``alike`` is the score after the same change with donors
    of a like label, and ``of_skill`` the share of the skill above chance that is lost beyond it. Controls: on planted
    molecules the number of heavy atoms has to lose all its skill with the size, and none with the elements.

    Args:
        split: how to divide the rows; the table's own split column if empty, or at random where it has none.
        rows: rows that are used, at most, drawn at random.
        epochs: of a model that is named; a file is taken as it is, and judged on the rows that it did not learn from.
        draws: repetitions of each block.
        randomise: ``false`` leaves every block as it is.

    Raises:
        UnsupportedError: the target has several classes.
    """

    needs = ("data", "model")
    small = MappingProxyType({"rows": 120, "epochs": 2, "draws": 1})

    def __init__(
        self,
        *,
        split: str = "",
        rows: Annotated[int, Range(20, 10_000_000)] = 2000,
        epochs: Count = 20,
        draws: Count = 3,
        randomise: bool = True,
    ) -> None:
        self.split, self.rows, self.epochs, self.draws, self.randomise = split, rows, epochs, draws, randomise

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit, score, draw each block anew and score again."""
        started = time.process_time()
        setup = judged(subject, split=self.split, rows=self.rows, epochs=self.epochs, seed=seed)
        if setup.target.kind == "multiclass":
            raise UnsupportedError(
                f"{setup.target.name} has several classes", hint="name a target of two, or of numbers"
            )
        metric = get_metric("roc_auc" if setup.target.kind == "binary" else "spearman")
        chance, predict = 0.5 if metric.name == "roc_auc" else 0.0, _predictor(setup.model, setup.target)
        intact = chance_score(metric, *_both(setup.test, predict))
        if not np.isfinite(intact):
            raise EmptyError("the test rows have one class or one value alone", hint="name a larger table or a split")
        blocks, drops, notes = ["size", "groups", "core", "elements", *setup.test.feature_names], {}, [*setup.notes]
        for block in blocks:
            if time.process_time() - started > seconds:
                notes.append(f"{block} is left out, for want of time")
                continue
            drops[block] = self._drop(block, predict, setup.test, metric, seed)
        rows = [{"block": "none", "molecules": len(setup.test), "intact": intact, "randomised": intact}]
        rows += [_row(block, drop, chance) for block, drop in drops.items()]
        frame = pd.DataFrame(rows)
        title = f"Shortcuts of {setup.model.name} on {setup.target.name}: {len(setup.test):,} test molecules"
        return Findings(
            title,
            _sentence(frame, metric.label, chance),
            frame,
            *self._controls(seed),
            lambda form: _drawn(frame, metric.label, chance, form),
            tuple(notes),
        )

    def _drop(self, block: str, predict: Predict, table: Table, metric: Metric, seed: int) -> Drop:
        draws = randomised(block if self.randomise else "identity", table, self.draws, derive(seed, "draw"))
        return measure(predict, table, draws, metric, seed)

    def _controls(self, seed: int) -> tuple[Control, Control]:
        """The number of heavy atoms as a score of planted molecules."""
        toys, metric = planted(TOYS, derive(seed, "toys")), get_metric("roc_auc")

        def heavy(table: Table) -> np.ndarray:
            return heavy_atoms(table.smiles).astype(float)

        size, still = (
            measure(heavy, toys, randomised(b, toys, 4, seed), metric, seed, 2) for b in ("size", "elements")
        )
        return (
            Control("heavy atoms as a score, size randomised", "0.50", f"{size.randomised:.2f}",
                    abs(size.randomised - 0.5) < 0.05),
            Control("heavy atoms as a score, elements randomised", "a drop of 0", f"{still.drop.value:.2f}",
                    still.drop.value == 0),
        )  # fmt: skip


def _predictor(model: Model, target: Target) -> Predict:
    def predict(table: Table) -> np.ndarray:
        return columns_of(model.predict_table(table), target).astype(np.float64)

    return predict


def _both(table: Table, predict: Predict) -> tuple[np.ndarray, np.ndarray]:
    y, p = np.zeros(0) if table.y is None else table.y[:, 0], predict(table)
    keep = np.isfinite(y) & np.isfinite(p)
    return y[keep], p[keep]


def _row(block: str, drop: Drop, chance: float) -> dict[str, Any]:
    """A row of the table; ``of_skill``: what the block carries of the skill above chance, beyond a change alike."""
    skill, alike = drop.intact - chance, drop.intact if np.isnan(drop.alike) else drop.alike
    share = (alike - drop.randomised) / skill if skill > 0 else np.nan
    return {"block": block, "molecules": drop.rows, "intact": drop.intact, "randomised": drop.randomised,
            "alike": drop.alike, "drop": drop.drop.value, "low": drop.drop.low, "high": drop.drop.high,
            "of_skill": share}  # fmt: skip


def _sentence(frame: pd.DataFrame, label: str, chance: float) -> str:
    known = frame.iloc[1:].dropna(subset=["of_skill"]) if "of_skill" in frame else frame.iloc[:0]
    words = f"{label} {frame['intact'].iloc[0]:.2f}"
    if not len(known):
        return f"{words}; no block could be judged."
    share = {row["block"]: min(max(row["of_skill"], 0.0), 1.0) for _, row in known.iterrows()}
    top = "size" if share.get("size", 0) >= ALL else max(share, key=share.__getitem__)  # chains are groups too
    row = known[known["block"] == top].iloc[0]
    words += f"; with {top} randomised {row['intact']:.2f} becomes {row['randomised']:.2f}"
    words += f", {share[top]:.0%} of the skill above chance ({chance:g}) beyond a change alike"
    others = {name: value for name, value in share.items() if name != top and {name, top} != {"size", "groups"}}
    if share[top] >= ALL and others and max(others.values()) <= NOTHING:
        return f"{words}: a single shortcut, as no other block carries more than {NOTHING:.0%}."
    rest = ", ".join(f"{name} {value:.0%}" for name, value in share.items() if name != top)
    return f"{words}{'; ' + rest if rest else ''}."


def _drawn(frame: pd.DataFrame, label: str, chance: float, form: str) -> bytes:
    from molgraph.evaluate.report_trust import shortcut_points  # with matplotlib

    return shortcut_points(frame, label, chance, form)

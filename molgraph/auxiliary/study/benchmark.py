"""Measure how much of a test score is due to chance, simple baselines (weight, neighbour) or how SMILES are written."""

from __future__ import annotations

import time
from types import MappingProxyType
from typing import Annotated, Any

import numpy as np
import pandas as pd
from scipy.stats import binom

from molgraph.base.contracts import Target
from molgraph.base.errors import EmptyError
from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.base.systems import SystemCard
from molgraph.chem.sizes import weights_and_logp
from molgraph.chem.variants import variant
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of
from molgraph.study.shortcut_answers import SHORTCUTS, Judge, constant, weight_and_logp
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.study.subject_model import judged
from molgraph.train.model import Model

WRITINGS = ("order", "hydrogens", "salt")
PLANTED, ERRORS = 0.6, 3.5  # share of planted labels; standard errors that a control may be off
FEWEST = 8  # rows to learn from, and rows to judge


def best_of(n: int, p: float, k: int) -> float:
    """The expected share of right answers of the best of k guessers, each right with probability p on each of n items.

    ``E[max] / n`` with ``E[max] = sum_x (1 - F(x)^k)``, where F is the binomial distribution: Trichelair et al. 2018,
    "How Reasonable are Common-Sense Reasoning Tasks", section 3, has the question, for 273 items and p = 1/2.

    Example:
        >>> round(best_of(273, 0.5, 1), 3), round(best_of(273, 0.5, 100), 3)
        (0.5, 0.576)
    """
    return float((1 - binom.cdf(np.arange(n), n, p) ** k).sum() / n)


def beyond_chance(right: np.ndarray, chance: float) -> float:
    """The share of items that are answered for a reason: ``(right - chance) / (1 - chance)``, as Cohen's kappa.

    Where a share s of the items is set by a rule, and the others are not, the rule is right on ``s + (1 - s) chance``.
    """
    return float((right.mean() - chance) / (1 - chance)) if len(right) and chance < 1 else float("nan")


def _answers(model: Model, target: Target, table: Table) -> np.ndarray:
    """float [n]: the number, or the number of the most probable class."""
    p = columns_of(model.predict_table(table), target).astype(float)
    if target.kind == "multiclass":
        whole = np.isfinite(p).all(axis=1)
        return np.where(whole, np.where(np.isfinite(p), p, 0).argmax(axis=1), np.nan)
    return np.where(np.isnan(p), np.nan, p >= 0.5) if target.kind == "binary" else p


@register(
    "study",
    "benchmark",
    summary="how much of a score on a benchmark is chance, a shortcut or the way in which molecules are written",
    paper="Trichelair et al. 2018, EMNLP 2019",
    systems=(
        SystemCard(
            "winograd-evaluation-protocol",
            left_out="pairs whose order is exchanged",
            off="benchmark(correct=false)",
            beside=("a constant", "weight and logP", "the nearest neighbour", "the scaffold"),
            command="molgraph study benchmark dataset:esol -m random_forest -o benchmark.csv",
            modules=("molgraph.chem.variants", "molgraph.study.shortcut_answers", "molgraph.study.subject_model"),
        ),
    ),
    command="molgraph study benchmark dataset:bace -m dmpnn -o benchmark.png",
)
class Benchmark(Study):
    """Test items answered by a model, by guessers, by shortcuts, and after molecules are written in another way.

    Trichelair et al. 2018 looked at the Winograd schemas in three ways. Chance: the best of ``tries`` guessers on so
    few items. Association: ``beyond_chance`` is the share of items that a shortcut settles, and the model is scored on
    those that the shortcut gets right and on the rest. Consistency: with the atoms in another order, hydrogens
    written, or a salt beside it, a molecule has to have the same answer (in the paper two candidates are exchanged). An
    answer is right if it is the class, or a number within ``within`` standard deviations of the training labels.
    Controls on the same molecules: labels of which 60% are set by the weight, and labels at random.

    Args:
        split: how to divide the rows; the table's own split column if empty, or at random where it has none.
        tries: guessers, such as the models that were tried on this benchmark.
        within: standard deviations that a right number may be off.
        rows: rows that are used, at most, drawn at random.
        epochs: of a model that is named; a file is taken as it is.
        correct: ``false`` counts answers that are right by chance as settled.

    Raises:
        EmptyError: too few rows, or a file of whose training rows none is in the table.
    """

    needs = ("data", "model")
    small = MappingProxyType({"rows": 120, "epochs": 2})

    def __init__(
        self,
        *,
        split: str = "",
        tries: Count = 20,
        within: Annotated[float, Range(0.01, 10)] = 0.5,
        rows: Annotated[int, Range(20, 10_000_000)] = 2000,
        epochs: Count = 20,
        correct: bool = True,
    ) -> None:
        self.split, self.tries, self.within, self.rows = split, tries, within, rows
        self.epochs, self.correct = epochs, correct

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Answer the items in every way, and compare."""
        started = time.process_time()
        setup = judged(subject, split=self.split, rows=self.rows, epochs=self.epochs, seed=seed)
        train, test, notes = setup.train.take(setup.train.ok), setup.test, [*setup.notes]
        if min(len(train), len(test)) < FEWEST or train.y is None or test.y is None:
            words = (
                f"{len(train)} rows to learn shortcuts from and {len(test)} new ones, and {FEWEST} of each are needed"
            )
            raise EmptyError(words, hint="name a larger table; beside a file, one with the rows that it learnt from")
        y, labels = test.y[:, 0], train.y[:, 0]
        judge = Judge(setup.target, labels, self.within)
        answer = _answers(setup.model, setup.target, test)
        right = judge.right(answer, y)
        odds = max(judge.chance(labels, y), judge.chance(constant(train, labels, test), y))
        guess = best_of(len(y), odds, self.tries)
        rows: list[dict[str, Any]] = [
            {"row": setup.model.name, "right": right.mean(), "beyond_chance": self._beyond(judge, answer, y)},
            {"row": f"best of {self.tries} guesses", "right": guess},
        ]
        for name, shortcut in SHORTCUTS.items():
            one = shortcut(train, labels, test)
            hits = judge.right(one, y)
            rows.append({"row": name, "right": hits.mean(), "beyond_chance": self._beyond(judge, one, y),
                         "model_there": right[hits].mean() if hits.any() else np.nan,
                         "model_on_rest": right[~hits].mean() if (~hits).any() else np.nan})  # fmt: skip
        same, seen = np.ones(len(y), bool), 0
        for name in WRITINGS:
            if time.process_time() - started > seconds:
                notes.append(f"{name} is left out, for want of time")
                continue
            texts, rng = [str(text) for text in test.smiles], generator(seed, "writing", name)
            variants = [variant(name, text, rng) or text for text in texts]
            again = _answers(setup.model, setup.target, test.with_smiles(np.array(variants, dtype=object)))
            one, seen = judge.same(answer, again), seen + 1
            same &= one
            rows.append({"row": f"rewritten: {name}", "right": judge.right(again, y).mean(), "consistent": one.mean()})
        rows[0]["consistent"] = same.mean() if seen else np.nan
        frame = pd.DataFrame(rows).astype({"right": float})
        return Findings(
            f"Benchmark {setup.target.name}: {len(y):,} test items, {len(train):,} to learn from",
            _sentence(frame, guess, self.tries),
            frame,
            *self._controls(train, test, seed),
            lambda form: _drawn(frame, guess, form),
            tuple(notes),
        )

    def _beyond(self, judge: Judge, answer: np.ndarray, y: np.ndarray) -> float:
        return beyond_chance(judge.right(answer, y), judge.chance(answer, y) if self.correct else 0.0)

    def _controls(self, train: Table, test: Table, seed: int) -> tuple[Control, Control]:
        """What weight and logP settle of labels that the weight sets for 60% of the rows, and of labels at random."""
        share, chance = (self.settled(train, test, share, seed) for share in (PLANTED, 0.0))
        wide, narrow = max(0.05, ERRORS * 0.8 / len(test) ** 0.5), max(0.05, ERRORS / len(test) ** 0.5)
        return (
            Control("60% of the labels set by the weight", f"{PLANTED:.2f} +- {wide:.2f}", f"{share:.2f}",
                    abs(share - PLANTED) <= wide),
            Control("labels at random", f"0 +- {narrow:.2f}", f"{chance:.2f}", abs(chance) <= narrow),
        )  # fmt: skip

    def settled(self, train: Table, test: Table, share: float, seed: int) -> float:
        """The share of test items that weight and logP settle, where the weight sets a share of all labels."""
        target = (Target("planted", "binary"),)
        tables, labels = list[Table](), weight_labels([*train.smiles, *test.smiles], share, seed)
        for table, y in zip((train, test), np.split(labels, [len(train)]), strict=True):
            bare = table.with_targets([])
            tables.append(Table(bare.ids, bare.entities, bare.status, bare.reason, target, y[:, None]))
        answer = weight_and_logp(tables[0], labels[: len(train)], tables[1])
        y = labels[len(train) :]
        return self._beyond(Judge(target[0], y, self.within), answer, y)


def weight_labels(texts: list[Any], share: float, seed: int) -> np.ndarray:
    """float [n]: 1 for molecules above the median weight, for a share of the rows; at random for the others."""
    weight = weights_and_logp(texts)[:, 0]
    rng = generator(seed, "weights", str(share))
    y = (weight > np.median(weight)).astype(float)
    free = rng.permutation(len(y))[round(share * len(y)) :]
    y[free] = rng.permutation(np.arange(len(free)) % 2)
    return y


def _sentence(frame: pd.DataFrame, guess: float, tries: int) -> str:
    model, rows = frame.iloc[0], frame.dropna(subset=["model_on_rest"])
    rows = rows[rows["row"] != "constant"]
    words = f"{model['row']} is right on {model['right']:.0%} of the items, the best of {tries} guessers on {guess:.0%}"
    if len(rows):
        best = rows.loc[rows["beyond_chance"].idxmax()] if rows["beyond_chance"].notna().any() else rows.iloc[0]
        words += (
            f"; {best['row']} alone settles {max(best['beyond_chance'], 0):.0%} beyond chance, and where it is wrong"
        )
        words += f" the model is right on {best['model_on_rest']:.0%}"
    if np.isfinite(model["consistent"]):
        words += f"; {model['consistent']:.1%} of the answers stay however the molecule is written"
    return f"{words}."


def _drawn(frame: pd.DataFrame, guess: float, form: str) -> bytes:
    from molgraph.evaluate.report_trust import benchmark_bars  # with matplotlib

    return benchmark_bars(frame, guess, form)

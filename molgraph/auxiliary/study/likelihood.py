"""Measure how little of a generative model's likelihood is about the class, and what else the likelihood follows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Annotated, NamedTuple

import numpy as np
import pandas as pd
from sklearn.metrics import roc_auc_score

from molgraph.base.errors import EmptyError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive, generator
from molgraph.base.systems import SystemCard
from molgraph.chem.recombine import put_together, shuffle_elements, take_apart
from molgraph.chem.tokens import tokens_of
from molgraph.generate.smoothed_ngram import SmoothedNgram
from molgraph.study.labelled_rows import first_target
from molgraph.study.study import SECONDS, Control, Findings, Study, Subject
from molgraph.train.modelfile import load_model

FEWEST, TEST, TOYS = 40, 0.3, 400  # rows; share of them that is tested; texts of the controls


class Shares(NamedTuple):
    """What class-conditional likelihoods hold of the class.

    Args:
        share: of ``|log p(x | y)|`` that tells the class, a mean over texts.
        accuracy: of ``argmax_y p(x | y)``.
        gap: mean nats between the two likelihoods.
    """

    share: float
    accuracy: float
    gap: float


def class_shares(log_p: np.ndarray, y: np.ndarray) -> Shares:
    """``|log p(x|y) - log mean_y' p(x|y')| / |log p(x|y)|`` of the true class, and the accuracy.

    Fetaya et al. 2020, "Understanding the Limitations of Conditional Generative Models", section 4.

    Args:
        log_p: float64 [n, 2], log-likelihoods under either class.
        y: int [n], 0 or 1.

    Example:
        >>> class_shares(np.log([[0.2, 0.2], [0.1, 0.1]]), np.array([0, 1])).share
        0.0
    """
    of_class = log_p[np.arange(len(y)), y]
    mean = np.logaddexp(log_p[:, 0], log_p[:, 1]) - np.log(2)
    share = np.abs(of_class - mean) / np.abs(of_class)
    return Shares(
        float(share.mean()), float((log_p.argmax(axis=1) == y).mean()), float(np.abs(log_p[:, 0] - log_p[:, 1]).mean())
    )


def conditional(
    texts: Sequence[Sequence[str]], y: np.ndarray, order: int
) -> Callable[[Sequence[Sequence[str]]], np.ndarray]:
    """Log-likelihoods float64 [n, 2] of token lists under a smoothed n-gram model of either class."""
    vocabulary = {token for text in texts for token in text}
    models = [
        SmoothedNgram([text for text, k in zip(texts, y, strict=True) if k == c], vocabulary, order) for c in (0, 1)
    ]
    return lambda some: np.array([[model.log_prob(text) for model in models] for text in some]).reshape(-1, 2)


def padded_toys(n: int, k: int, seed: int) -> tuple[list[list[str]], np.ndarray]:
    """Texts of four tokens that tell the class, and k that do not.

    Example:
        >>> texts, y = padded_toys(2, 3, 0)
        >>> [len(text) for text in texts], y.tolist()
        ([7, 7], [0, 1])
    """
    rng, y = generator(seed, "padded toys"), np.arange(n) % 2
    signals = ["ab", "ba"]
    texts = [[signals[c][int(rng.random() < 0.1)] for _ in range(4)] + list(rng.choice([*"cdefghij"], k)) for c in y]
    return [[str(token) for token in text] for text in texts], y


def hybrids(smiles: Sequence[str], n: int, seed: int) -> list[tuple[str, int, int]]:
    """Cores of some molecules with the groups of others: a SMILES and the two rows that it comes from."""
    rng, parts, mixed = generator(seed, "hybrids"), [take_apart(text) for text in smiles], list[tuple[str, int, int]]()
    kinds: dict[int, list[int]] = {}
    for i, part in enumerate(parts):
        if part is not None and part.groups:
            kinds.setdefault(len(part.groups), []).append(i)
    pools = [rows for rows in kinds.values() if len(rows) > 1]
    for _ in range(3 * n if pools else 0):
        a, b = (int(i) for i in rng.choice(pools[int(rng.integers(len(pools)))], 2, replace=False))
        one, two = parts[a], parts[b]
        text = put_together(one.core, two.groups) if one and two else ""
        if text and len(mixed) < n:
            mixed.append((text, a, b))
    return mixed


@register(
    "study",
    "likelihood",
    summary="how much of a generative model's likelihood tells actives from inactives, and what else it follows",
    paper="Fetaya et al. 2020, ICLR",
    systems=(
        SystemCard(
            "generative-classifier-limits-study",
            left_out="flows and adversarial attacks; molecules that are between two in a latent space",
            off="likelihood(order=1)",
            beside=("texts with tokens that do not tell the class",),
            command="molgraph study likelihood dataset:esol -o likelihood.csv",
            modules=("molgraph.generate.smoothed_ngram", "molgraph.chem.recombine"),
        ),
    ),
)
class LikelihoodStudy(Study):
    """A row for each question: how much of the likelihood is about the class, of hybrids, and of changed molecules.

    Fetaya et al. 2020: near-optimal class-conditional likelihoods make poor detectors, since the few nats that tell
    the class stand among many that do not. Class-conditional models of SMILES are smoothed n-grams of 70% of the rows
    of either class (numbers are cut at their median), or two language models' files. Hybrids, a test molecule's core
    with the groups of another, get about the likelihood of their parents, and molecules whose elements changed places
    should get less. Controls: made texts, where tokens that do not tell the class take its share and not its accuracy.

    Args:
        order: of the n-grams.
        actives, inactives: files of language models in the place of the n-grams.
        rows: that are used, at most, drawn at random.

    Raises:
        LabelError: no target of rows, or fewer than 40 labelled molecules.
        EmptyError: a class without molecules.
    """

    small = MappingProxyType({"rows": 120})

    def __init__(
        self,
        *,
        order: Annotated[int, Range(1, 12)] = 5,
        actives: str = "",
        inactives: str = "",
        rows: Annotated[int, Range(FEWEST, 1_000_000)] = 2000,
    ) -> None:
        self.order, self.actives, self.inactives, self.rows = order, actives, inactives, rows

    def run(self, subject: Subject, *, seed: int = 0, seconds: float = SECONDS) -> Findings:
        """Fit, score, recombine and shuffle."""
        table, target, notes = first_target(subject.table(), self.rows, FEWEST, seed)
        values, texts = np.asarray(table.y)[:, 0], [str(text) for text in table.smiles]
        y = (values > (0.5 if target.kind == "binary" else np.median(values))).astype(int)
        order = generator(seed, "likelihood").permutation(len(y))
        test, train = np.split(order, [round(TEST * len(y))])
        if len(np.unique(y[train])) < 2 or len(np.unique(y[test])) < 2:
            raise EmptyError("the rows have one class alone", hint="give rows of both classes")
        score = self._scorer([texts[i] for i in train], y[train])
        held_out = [texts[i] for i in test]
        log_p = score(held_out)
        known = np.isfinite(log_p).all(axis=1)
        shares = class_shares(log_p[known], y[test][known])
        length = np.array([len(tokens_of(text)) + 1 for text in held_out])
        rng = generator(seed, "elements")
        changed = [shuffle_elements(text, rng) for text in held_out]
        both = [i for i, text in enumerate(changed) if text and known[i]]
        after = score([changed[i] for i in both]).max(axis=1)
        auc = _auc(log_p[both].max(axis=1), after)
        mixtures = hybrids(held_out, len(held_out), derive(seed, "hybrids"))
        mixed = score([text for text, *_ in mixtures]).max(axis=1) if mixtures else np.zeros(0)
        per_token = log_p.max(axis=1) / length
        gaps = [
            m / (len(tokens_of(text)) + 1) - (per_token[a] + per_token[b]) / 2
            for m, (text, a, b) in zip(mixed, mixtures, strict=True)
        ]
        gap = float(np.nanmean([g for g in gaps if np.isfinite(g)] or [np.nan]))
        area = float(roc_auc_score(y[test][known], log_p[known, 1] - log_p[known, 0]))
        frame = pd.DataFrame(
            [("share of the likelihood that tells the class", shares.share), ("nats between the classes", shares.gap),
             ("nats of a molecule", float(-log_p[known].max(axis=1).mean())), ("accuracy", shares.accuracy),
             ("ROC AUC", area), ("nats a token of hybrids above their parents", gap),
             ("ROC AUC of unchanged against changed elements", auc)], columns=["question", "value"],
        )  # fmt: skip
        words = (
            f"Of the likelihood of a molecule {shares.share:.1%} tells its class, with a ROC AUC of {area:.2f}; "
            f"molecules whose elements changed places are told from test molecules with {auc:.2f}."
        )
        (low, high), accuracy = zip(*[toy_share(k, seed) for k in (0, 40)], strict=True)
        return Findings(
            f"Likelihoods of {target.name}: {len(held_out):,} test molecules", words, frame,
            Control("40 tokens that do not tell the class", "a smaller share", f"{low:.3f} to {high:.3f}",
                    high < low / 2),
            Control("the accuracy with them", "within 0.05", f"{accuracy[0]:.2f} and {accuracy[1]:.2f}",
                    abs(accuracy[0] - accuracy[1]) < 0.05), notes=tuple(notes),
        )  # fmt: skip

    def _scorer(self, texts: list[str], y: np.ndarray) -> Callable[[Sequence[str]], np.ndarray]:
        """Log-likelihoods float64 [n, 2] of SMILES under inactives and actives."""
        if self.actives and self.inactives:
            models = [load_model(path).method for path in (self.inactives, self.actives)]
            return lambda some: np.column_stack([model.log_prob(some) for model in models])  # type: ignore[attr-defined]
        score = conditional([tokens_of(text) for text in texts], y, self.order)
        return lambda some: score([tokens_of(text) for text in some])


def toy_share(k: int, seed: int, n: int = TOYS, order: int = 1) -> tuple[float, float]:
    """The share and the accuracy of n-grams on made texts with k tokens that do not tell the class."""
    texts, y = padded_toys(2 * n, k, seed)
    shares = class_shares(conditional(texts[:n], y[:n], order)(texts[n:]), y[n:])
    return shares.share, shares.accuracy


def _auc(before: np.ndarray, after: np.ndarray) -> float:
    values, labels = np.concatenate([before, after]), np.repeat([1, 0], [len(before), len(after)])
    kept = np.isfinite(values)
    return float(roc_auc_score(labels[kept], values[kept])) if len(np.unique(labels[kept])) == 2 else float("nan")

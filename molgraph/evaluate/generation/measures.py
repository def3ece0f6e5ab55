"""Measure a sample of a generator against a reference and the training molecules, on many half-samples at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.seeds import generator
from molgraph.chem.tanimoto import BitTable, find_nearest
from molgraph.evaluate.generation.distances import (
    codes,
    cosine,
    frechet,
    gaussian_fit,
    kl_continuous,
    kl_counts,
    root,
    wasserstein,
)
from molgraph.evaluate.generation.embeddings import embed
from molgraph.evaluate.generation.factorised import PARTS, Ratios, molecule_ratios
from molgraph.evaluate.generation.sample import Sample

CONTINUOUS = ("bertz", "logp", "weight", "tpsa")  # of GuacaMol's properties
COUNTED = ("acceptors", "donors", "rotatable", "aliphatic_rings", "aromatic_rings")
FIRST = 1_000  # of uniqueness@k
BLOCK = 500  # rows of the matrix of pairs at once
LEAST = 2  # molecules that a distance of distributions needs


@dataclass(frozen=True)
class Comparison:
    """A sample and what it is compared with.

    Args:
        sample: what was drawn, n molecules, m of them valid.
        reference: molecules that it should be like, None where there are none.
        train: stereo-free keys of the molecules learned from (``molecule_keys``), None where they are not known.
        embedding: of the Fréchet distance.
        unchecked: bool [k], which draws without the generator's own check are molecules; None where it has no check.
        likelihood: float [m, 2 k], estimates of ``log p`` of held-out molecules, then lower bounds; None where there
            are none.
        parts: whether parts and their combination are compared with the reference.
    """

    sample: Sample
    reference: Sample | None
    train: frozenset[str] | None
    embedding: str
    unchecked: np.ndarray | None = None
    likelihood: np.ndarray | None = None
    parts: bool = False

    @cached_property
    def ratios(self) -> Ratios:
        """Of each valid molecule, how much likelier the reference has it, by parts."""
        assert self.reference is not None
        return molecule_ratios(self.reference, self.sample)

    @cached_property
    def nearest(self) -> np.ndarray:
        """float [m], Tanimoto similarity of each valid molecule to the nearest of the reference."""
        assert self.reference is not None
        return find_nearest(self.sample.bits, self.reference.bits).similarity

    @property
    def known(self) -> frozenset[str]:
        """What there is beside the sample: ``reference``, ``train``, ``unchecked``, ``likelihood``, ``parts``."""
        there = {"reference": self.reference, "train": self.train, "unchecked": self.unchecked}
        there |= {"likelihood": self.likelihood, "parts": self.reference if self.parts else None}
        return frozenset(name for name, value in there.items() if value is not None)


class Measure(NamedTuple):
    """A metric of a sample.

    Args:
        name: as frames and files have it.
        label: as tables have it.
        higher: whether more is better; None where it describes.
        needs: ``reference``, ``train``, ``unchecked``, ``likelihood`` or ``parts``; empty where the sample says it all.
        values: a comparison and which of its draws count, bool [b, n] -> float [b].
    """

    name: str
    label: str
    higher: bool | None
    needs: str
    values: Callable[[Comparison, np.ndarray], np.ndarray]


def _each(of: Callable[[Comparison, np.ndarray], float]) -> Callable[[Comparison, np.ndarray], np.ndarray]:
    """A measure of the valid molecules' numbers, one half-sample after the other; NaN where fewer than two are left."""

    def values(c: Comparison, masks: np.ndarray) -> np.ndarray:
        rows = (np.flatnonzero(mask) for mask in masks[:, c.sample.valid])
        return np.array([of(c, index) if len(index) >= LEAST else np.nan for index in rows])

    return values


def _share(of: Callable[[Comparison], np.ndarray]) -> Callable[[Comparison, np.ndarray], np.ndarray]:
    """The mean over the valid molecules of a number that each has."""

    def values(c: Comparison, masks: np.ndarray) -> np.ndarray:
        weights = masks[:, c.sample.valid].astype(np.float64)
        with np.errstate(invalid="ignore"):
            return (weights @ of(c)) / weights.sum(axis=1)

    return values


def _valid(c: Comparison, masks: np.ndarray) -> np.ndarray:
    return (masks & c.sample.valid).sum(axis=1) / masks.sum(axis=1)


def _no_molecule(c: Comparison, masks: np.ndarray) -> np.ndarray:
    return (masks & c.sample.no_molecule).sum(axis=1) / masks.sum(axis=1)


def _unchecked(c: Comparison, masks: np.ndarray) -> np.ndarray:
    assert c.unchecked is not None
    masks = masks[:, : len(c.unchecked)]
    return (masks & c.unchecked).sum(axis=1) / masks.sum(axis=1)


def _unique(c: Comparison, rows: np.ndarray, first: int | None = None) -> float:
    rows = rows if first is None else rows[rows < first]
    return len(np.unique(c.sample.identity[rows])) / len(rows) if len(rows) else float("nan")


def _novel(c: Comparison, rows: np.ndarray) -> float:
    assert c.train is not None
    key_of = {c.sample.canonical[i]: c.sample.readable[i].key for i in rows}
    return sum(key not in c.train for key in key_of.values()) / len(key_of)


def _diversity(c: Comparison, masks: np.ndarray, power: int) -> np.ndarray:
    """``1 - mean_j (mean_i s_ij^p)^(1/p)`` over all pairs of valid molecules, a molecule with itself too (MOSES)."""
    weights = masks[:, c.sample.valid].astype(np.float32).T  # [m, b]
    table, total = BitTable(c.sample.bits), np.zeros(len(masks))
    n = np.maximum(weights.sum(axis=0), 1)
    for start in range(0, len(table), BLOCK):
        rows = slice(start, start + BLOCK)
        similar = table.take(rows).similarity(table)
        mean = (similar**power if power > 1 else similar) @ weights / n
        total += (mean ** (1 / power) * weights[rows]).sum(axis=0)
    return np.where(weights.any(axis=0), 1 - total / n, np.nan)


def _counted(c: Comparison, masks: np.ndarray, texts: Callable[[Sample], list[tuple[str, ...]]]) -> np.ndarray:
    """The cosine of the counts of some texts that molecules have, such as fragments."""
    assert c.reference is not None
    mine, theirs = texts(c.sample), texts(c.reference)
    (x, y), n = codes([t for group in mine for t in group], [t for group in theirs for t in group])
    row = np.repeat(np.arange(len(mine)), [len(group) for group in mine])
    known = np.bincount(y, minlength=n).astype(float)
    kept = masks[:, c.sample.valid]
    return np.array([cosine(known, np.bincount(x[mask[row]], minlength=n).astype(float)) for mask in kept])


def _fragments(sample: Sample) -> list[tuple[str, ...]]:
    return [molecule.fragments for molecule in sample.readable]


def _scaffolds(sample: Sample) -> list[tuple[str, ...]]:
    return [(molecule.scaffold,) if molecule.scaffold else () for molecule in sample.readable]


def _shift(c: Comparison, rows: np.ndarray, name: str) -> float:
    assert c.reference is not None
    return wasserstein(c.reference.property(name), c.sample.property(name)[rows])


def _likeness(c: Comparison, rows: np.ndarray) -> float:
    """The mean over nine properties of ``exp(-KL)``: GuacaMol's score without its part on similarities."""
    assert c.reference is not None
    scores = []
    for names, distance in ((CONTINUOUS, kl_continuous), (COUNTED, kl_counts)):
        for name in names:
            a, b = c.reference.property(name), c.sample.property(name)[rows]
            a, b = a[np.isfinite(a)], b[np.isfinite(b)]
            scores.append(np.exp(-distance(a, b)) if len(a) >= LEAST and len(b) >= LEAST else np.nan)
    return float(np.mean(scores))


def _frechet(c: Comparison, masks: np.ndarray) -> np.ndarray:
    assert c.reference is not None
    x, y = embed(c.embedding, c.sample.canonical, c.reference.canonical)
    if len(y) < LEAST:
        return np.full(len(masks), np.nan)
    fit = gaussian_fit(y)
    half = root(fit[1])
    return _each(lambda _, rows: frechet(fit, gaussian_fit(x[rows]), half))(c, masks)


def _divergence(c: Comparison, part: str) -> np.ndarray:
    """Of each valid molecule ``log q / p``, whose mean over the draws is the divergence from the reference."""
    return -c.ratios.of(part)


def _likelihood(c: Comparison, masks: np.ndarray, bound: bool) -> np.ndarray:
    """The mean over held-out molecules, and over halves of them, as many as there are half-samples."""
    assert c.likelihood is not None
    estimates, bounds = np.split(c.likelihood, 2, axis=1)
    each = (bounds if bound else estimates).mean(axis=1)
    rng = generator(0, "half of the held-out molecules")
    halves = [each[rng.permutation(len(each))[: len(each) // 2]].mean() for _ in masks[1:] if len(each) > 1]
    return np.array([each.mean(), *halves])


MEASURES: tuple[Measure, ...] = (
    Measure("valid", "valid", True, "", _valid),
    Measure("no_molecule", "no molecule", None, "", _no_molecule),
    Measure("valid_unchecked", "valid without the check", True, "unchecked", _unchecked),
    Measure(f"unique@{FIRST}", f"unique@{FIRST:,}", True, "", _each(partial(_unique, first=FIRST))),
    Measure("unique", "unique", True, "", _each(_unique)),
    Measure("novel", "novel", True, "train", _each(_novel)),
    Measure("filters", "filters", True, "", _share(lambda c: c.sample.passes.astype(float))),
    Measure("int_div", "IntDiv1", True, "", partial(_diversity, power=1)),
    Measure("int_div2", "IntDiv2", True, "", partial(_diversity, power=2)),
    Measure("snn", "SNN", True, "reference", _share(lambda c: c.nearest)),
    Measure("frag", "fragments", True, "reference", partial(_counted, texts=_fragments)),
    Measure("scaf", "scaffolds", True, "reference", partial(_counted, texts=_scaffolds)),
    Measure("frechet", "Fréchet", False, "reference", _frechet),
    Measure("kl", "KL score", True, "reference", _each(_likeness)),
    Measure("w_logp", "W1 logP", False, "reference", _each(partial(_shift, name="logp"))),
    Measure("w_sa", "W1 SA", False, "reference", _each(partial(_shift, name="sa"))),
    Measure("w_qed", "W1 QED", False, "reference", _each(partial(_shift, name="qed"))),
    Measure("w_weight", "W1 weight", False, "reference", _each(partial(_shift, name="weight"))),
    Measure("log_p", "log p of held-out molecules, nats", True, "likelihood", partial(_likelihood, bound=False)),
    Measure("log_p_bound", "its bound by one point, nats", None, "likelihood", partial(_likelihood, bound=True)),
    *(
        Measure(f"kl_{part}", f"KL of {words}, nats", False, "parts", _share(partial(_divergence, part=part)))
        for part, words in PARTS.items()
    ),
)


def check_measures(names: Sequence[str]) -> None:
    """Raise ``UnknownNameError`` for a name that no measure has."""
    known = [measure.name for measure in MEASURES]
    for name in names:
        if name not in known:
            raise UnknownNameError(f"no metric of generators is named {name!r}", hint=nearest(name, known))


def chosen(names: Sequence[str] | None) -> tuple[Measure, ...]:
    """The measures of those names; all where None."""
    check_measures(names or ())
    return MEASURES if names is None else tuple(measure for measure in MEASURES if measure.name in names)

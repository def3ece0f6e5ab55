"""Judge samples of generators: every metric with an interval, at one sample size, beside rows of trivial generators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from molgraph.base import progress
from molgraph.base.errors import BadValueError, EmptyError
from molgraph.base.seeds import generator
from molgraph.chem.add_carbon import add_carbon
from molgraph.chem.identity import canonical_smiles, molecule_keys
from molgraph.chem.standardise import standardise_smiles
from molgraph.evaluate.generation.embeddings import check_embedding, default_embedding
from molgraph.evaluate.generation.generation_report import GenerationReport, Row
from molgraph.evaluate.generation.measures import Comparison, chosen
from molgraph.evaluate.generation.sample import Sample, describe
from molgraph.evaluate.statistics import Interval

MOST = 10_000  # molecules of a sample, and of the reference, as in MOSES
HALVES = 100  # half-samples behind an interval
LEVEL = 0.95
CHARGES_LOOKED_AT = 1000  # molecules of a sample or a set
CHARGES_DIFFER = 0.05  # of the molecules, from which the difference is told


class Draws(NamedTuple):
    """The draws of one generator.

    Args:
        smiles: as they were drawn, in order.
        unchecked: draws made without the generator's own check of the chemistry, where it has one.
        likelihood: float [m, 2 k], k estimates of ``log p`` of each of m held-out molecules, then k lower bounds.
    """

    smiles: Sequence[str]
    unchecked: Sequence[str] | None = None
    likelihood: np.ndarray | None = None


def judge_samples(
    samples: Mapping[str, Draws],
    *,
    reference: Sequence[str] | Sample | None = None,
    train: Sequence[str] | None = None,
    n: int | None = None,
    embedding: str | None = None,
    measures: Sequence[str] | None = None,
    controls: bool = True,
    parts: bool = False,
    halves: int = HALVES,
    seed: int = 0,
    standardiser: str = "none",
) -> GenerationReport:
    """Measure samples and, where training molecules are given, the control rows.

    Every row has the same number of draws, as Fréchet's distance, uniqueness and others depend on it. An interval is
    the value and the middle 95% of the metric over half-samples drawn without repetition, moved to the value: their
    spread is that of whole samples (the delete-half jackknife, Shao and Wu 1989), and unlike rows drawn with
    repetition they have no copies, which uniqueness and diversity would count.

    Args:
        samples: name of a row -> draws.
        reference: molecules that the samples should be like and no generator has seen, described or not; 10,000 of
            them at most.
        train: molecules that were learned from.
        n: draws of each row; by default the smallest sample's, at most 10,000.
        embedding: of the Fréchet distance; by default ``chemnet`` where fcd is installed, else ``descriptors``.
        measures: names of some of ``MEASURES``.
        controls: whether to add training half against half, a training sample, and AddCarbon.
        parts: whether to measure where draws differ from the reference: in their parts, or in how those are combined.
        halves: half-samples of an interval; 0 for values alone.
        seed: of the half-samples, the controls and the draw of the reference.
        standardiser: the preset that all molecules go through before they are compared.
    """
    name = default_embedding() if embedding is None else embedding
    check_embedding(name)
    if not samples or any(not len(draws.smiles) for draws in samples.values()):
        raise EmptyError("there are no samples to judge", hint="give a list of SMILES, or a file with a column of them")
    least = min(len(draws.smiles) for draws in samples.values())
    if n is not None and not 1 <= n <= least:
        raise BadValueError(f"{n} draws of each cannot be judged", hint=f"the smallest sample has {least}")
    size, judge = n or min(least, MOST), _Judge(name, measures, halves, seed)
    known = None if train is None else training_set(standardised(train, standardiser))
    keys = None if known is None else known_keys(known)
    theirs = None if reference is None else reference_sample(reference, seed, standardiser)
    for what, molecules in (("reference", theirs and theirs.readable), ("train", known)):
        if molecules is not None and not molecules:
            raise EmptyError(f"no molecule of {what} can be read", hint="look at the reasons: molgraph data audit FILE")
    rows, kept = [], {}
    for row, draws in samples.items():
        kept[row] = describe(standardised(list(draws.smiles)[:size], standardiser), row)
        unchecked = None
        if draws.unchecked is not None:
            unchecked = np.array(
                [not entry.reason for entry in canonical_smiles(list(draws.unchecked)[:size])], dtype=bool
            )
        compared = Comparison(kept[row], theirs, keys, name, unchecked, draws.likelihood, parts)
        rows.append(judge.row(row, "sample", compared))
    if controls and known and keys:
        rows += _controls(judge, known, keys, theirs, size)
    others = {"reference": None if theirs is None else theirs.smiles, "training": known}
    notes = charge_notes({row: entry.smiles for row, entry in kept.items()}, others)
    return GenerationReport(tuple(rows), name, size, 0 if theirs is None else len(theirs.readable),
                            0 if known is None else len(known), kept, theirs, standardiser, notes)  # fmt: skip


class _Judge(NamedTuple):
    """How rows are measured."""

    embedding: str
    measures: Sequence[str] | None
    halves: int
    seed: int

    def row(self, name: str, kind: str, comparison: Comparison) -> Row:
        """Every measure that the comparison allows, with its interval."""
        masks = half_samples(len(comparison.sample), self.halves, self.seed)
        wanted = [gauge for gauge in chosen(self.measures) if gauge.needs in ("", *comparison.known)]
        values = {
            gauge.name: interval(gauge.values(comparison, masks)) for gauge in progress.track(wanted, label=f"{name}")
        }
        return Row(name, kind, len(comparison.sample), values)


def half_samples(n: int, halves: int, seed: int) -> np.ndarray:
    """bool [1 + halves, n]: all draws, then halves of them without repetition."""
    masks = np.zeros((1 + halves, n), dtype=bool)
    masks[0] = True
    rng = generator(seed, "half-samples")
    for mask in masks[1:]:
        mask[rng.choice(n, n // 2, replace=False)] = True
    return masks


def interval(values: np.ndarray) -> Interval:
    """The value, and the spread of the half-samples around it; NaN ends where there is none."""
    value, others = float(values[0]), values[1:][np.isfinite(values[1:])]
    if not np.isfinite(value) or len(others) < 2:
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(others - others.mean(), [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Interval(value, value + float(low), value + float(high))


def _controls(
    judge: _Judge, known: tuple[str, ...], keys: frozenset[str], reference: Sample | None, size: int
) -> list[Row]:
    """Training half against half, a training sample, and AddCarbon; each of ``size`` where there are so many."""
    name, rng = judge.embedding, generator(judge.seed, "controls")
    order = rng.permutation(len(known)).tolist()
    cut = min(size, len(known) // 2)
    first, second = ([known[i] for i in part] for part in (order[:cut], order[cut : 2 * cut]))
    rows = []
    if cut:
        half = describe(second, "training half")
        apart = Comparison(describe(first, "training half"), half, known_keys(second), name)
        rows.append(judge.row("train half against half", "control", apart))
    drawn = describe([known[i] for i in order[: min(size, len(known))]], "training sample")
    rows.append(judge.row("training sample", "control", Comparison(drawn, reference, keys, name)))
    grown = add_carbon(known, keys, size, rng)
    if grown:
        sample = describe(grown, "AddCarbon")
        rows.append(judge.row("AddCarbon", "control", Comparison(sample, reference, keys, name)))
    return rows


def training_set(smiles: Sequence[str]) -> tuple[str, ...]:
    """Canonical SMILES of what is a molecule, in order."""
    molecules = canonical_smiles(["" if item is None else str(item) for item in smiles], label="training molecules")
    return tuple(item.smiles for item in molecules if not item.reason)


def known_keys(smiles: Sequence[str]) -> frozenset[str]:
    """The different molecules among training molecules, salts and stereoisomers taken for one: what is not novel."""
    return frozenset(molecule_keys(smiles, stereo=False, label="training molecules").values)


def reference_sample(reference: Sequence[str] | Sample, seed: int = 0, standardiser: str = "none") -> Sample:
    """A reference described, at most 10,000 molecules of it."""
    if isinstance(reference, Sample):
        return reference
    return describe(standardised(some(reference, MOST, seed, "reference"), standardiser), "reference")


def standardised(smiles: Sequence[str], preset: str) -> list[str]:
    """The texts after a standardiser; those that it cannot read stay as they are."""
    texts = ["" if value is None else str(value) for value in smiles]
    return texts if preset == "none" else [str(text) for text in standardise_smiles(texts, preset).values]


def charge_notes(samples: Mapping[str, Sequence[str]], others: Mapping[str, Sequence[str] | None]) -> tuple[str, ...]:
    """Warnings where samples and what they are compared with differ in charges or salts that ``standard`` removes.

    Example:
        >>> charge_notes({"new": ["CC(O)=O"]}, {"training": ["CC([O-])=O"], "reference": None})[0].split(":")[0]
        'charges or salts in 100% of the training molecules and 0% of new'
    """
    notes = []
    for what, smiles in others.items():
        theirs = None if smiles is None else _charged(smiles)
        for row, drawn in samples.items():
            if theirs is not None and abs(theirs - (mine := _charged(drawn))) >= CHARGES_DIFFER:
                notes.append(
                    f"charges or salts in {theirs:.0%} of the {what} molecules and {mine:.0%} of {row}: a charged "
                    "molecule has other properties than its neutral form, so filters and similarities mislead; "
                    "standardise both: --standardise standard (standardise='standard')"
                )
    return tuple(notes)


def _charged(smiles: Sequence[str]) -> float:
    """The share of molecules, of a thousand spread over all, that the preset ``standard`` would change."""
    texts = list(smiles)[:: max(1, len(smiles) // CHARGES_LOOKED_AT)][:CHARGES_LOOKED_AT]
    return float(np.mean([a != b for a, b in zip(texts, standardised(texts, "standard"), strict=True)]))


def some(smiles: Sequence[str], most: int, seed: int, what: str) -> list[str]:
    """At most so many of the molecules, in their order."""
    texts = list(smiles)
    if len(texts) <= most:
        return texts
    rows = np.sort(generator(seed, what).choice(len(texts), most, replace=False))
    return [texts[i] for i in rows.tolist()]

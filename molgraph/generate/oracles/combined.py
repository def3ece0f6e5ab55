"""Combine oracles with weights, transforms and bounds to one that a search makes better."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations
from types import MappingProxyType
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import BadValueError, ConflictError, UnknownNameError, nearest
from molgraph.generate.oracles.oracle import Oracle, Scores, reasons_of
from molgraph.generate.oracles.term import DESIRABILITY, Term
from molgraph.generate.oracles.terms import SYNTAX

NOTHING: Mapping[str, np.ndarray] = MappingProxyType({})
COMBINE = ("sum", "product")


class PartScores(NamedTuple):
    """The scores of a list of molecules by an oracle.

    Args:
        total: float64 [n], the weighted sum or geometric mean; NaN where a part has no score.
        guide: float64 [n], the same less the distance from the bounds: where a search is led. A bound missed by one
            typical difference costs as much as all weighted parts being one typical difference worse.
        within: bool [n], whether all bounds are kept.
        parts: float64 [n, terms].
        reason: object [n], why there is no score; empty where there is one.
    """

    total: np.ndarray
    guide: np.ndarray
    within: np.ndarray
    parts: np.ndarray
    reason: np.ndarray


class Combined(Oracle):
    """A weighted sum or geometric mean of oracles, with bounds: itself an oracle, whose score is ``guide``.

    Args:
        terms: the parts.
        combine: ``sum``: ``sum_i w_i t_i(x)``; ``product``: ``prod_i t_i(x)^(w_i / sum_j w_j)``, of parts from 0 to 1,
            where a part of 0 is made up for by no other.

    Example:
        >>> from molgraph.generate.oracles.read_oracle import read_oracle
        >>> both = read_oracle("qed:1,sa<4")
        >>> both.words, both.labels
        ('qed,sa<4', ('qed', 'sa'))
        >>> both.score_parts(["CCO", "not a molecule"]).within.tolist()
        [True, False]
    """

    name = "total"

    def __init__(self, terms: Sequence[Term], combine: str = "sum") -> None:
        if combine not in COMBINE:
            raise UnknownNameError(f"oracles are combined by no {combine!r}", hint=nearest(combine, COMBINE))
        if not terms:
            raise BadValueError("the oracle is empty", hint=SYNTAX)
        if not any(term.weight for term in terms):
            raise BadValueError("the oracle has bounds alone, and nothing to make better", hint=SYNTAX)
        for one, other in combinations(terms, 2):
            if one.excludes(other):
                words = f"{one.words!r} and {other.words!r} leave no molecule"
                raise ConflictError(words, hint="leave one of them out")
        for term in terms if combine == "product" else ():
            if term.weight and not term.unit:
                hint = f"give it a transform, as in {term.label}=sigmoid(LOW,HIGH) (ramp(0,1) changes no 0 to 1)"
                raise ConflictError(f"a product takes parts from 0 to 1, and {term.label} is any number", hint=hint)
            if term.weight < 0:
                words = f"a product has no weights below 0, as that of {term.words!r}"
                raise ConflictError(words, hint="reverse its transform, as in reverse_sigmoid(LOW,HIGH)")
        self.terms, self.combine = tuple(terms), combine
        self.labels = tuple(_distinct([term.label for term in terms]))
        self.batched = all(term.oracle.batched for term in terms)
        self.shard = min(term.oracle.shard if term.oracle.batched else 1 for term in terms)
        scale = sum(abs(term.weight) * term.scale for term in terms)
        self.scale = scale if combine == "sum" else DESIRABILITY

    @property
    def words(self) -> str:
        """The oracle as a person would write it."""
        words = ",".join(term.words for term in self.terms)
        return words if self.combine == "sum" else f"product({words})"

    @property
    def content(self) -> str:
        """What the scores depend on: equal for equal oracles, and empty where that of a part is."""
        contents = [term.content for term in self.terms]
        words = repr(contents) if self.combine == "sum" else f"{self.combine} {contents!r}"
        return words if all(content for _, content, *_ in contents) else ""

    @property
    def time_limit(self) -> float:  # type: ignore[override]
        """The longest of the parts'."""
        return max(term.oracle.time_limit for term in self.terms)

    def close(self) -> None:
        """Close the parts."""
        for term in self.terms:
            term.oracle.close()

    def score(self, smiles: Sequence[str]) -> Scores:
        """Where a search is led: ``guide``."""
        result = self.score_parts(smiles)
        return Scores(result.guide, result.reason)

    def score_parts(self, smiles: Sequence[str], given: Mapping[str, np.ndarray] = NOTHING) -> PartScores:
        """The scores of each SMILES, by parts; of parts whose values are given, by label, no oracle is asked."""
        n = len(smiles)
        parts, reason = np.full((n, len(self.terms)), np.nan), np.full(n, "", dtype=object)
        total, excess, within = np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
        for j, (term, label) in enumerate(zip(self.terms, self.labels, strict=True)):
            value = given.get(label)
            scores = term.oracle.score(smiles) if value is None else Scores(value, reasons_of(value))
            parts[:, j] = scores.value
            fresh = (reason == "") & ~scores.ok
            words = [text or f"{label} has no value" for text in scores.reason[fresh]]
            reason[fresh] = [f"{label}: {text}" if len(self.terms) > 1 else text for text in words]
            if term.weight and self.combine == "sum":
                total += term.weight * term.value(scores.value)
            elif term.weight:
                with np.errstate(divide="ignore"):  # the logarithm of 0
                    total += term.weight * np.log(term.value(scores.value))
            missed, distance = term.outside(scores.value)
            within &= ~missed
            excess += distance / term.oracle.scale
        bad = reason != ""
        if self.combine == "product":
            total = np.exp(total / sum(term.weight for term in self.terms))
        total[bad] = np.nan
        return PartScores(total, total - self.scale * excess, ~bad & within, parts, reason)

    def screen(self, smiles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """bool [n], whether a molecule misses a bound that is checked at no cost, and float64 [n], the guide's loss.

        Example:
            >>> from molgraph.generate.oracles.read_oracle import read_oracle
            >>> read_oracle("qed,heavy_atoms<4").screen(["CCO", "CCCO", "CCCCO"])[0].tolist()
            [False, True, True]
        """
        missed, excess = np.zeros(len(smiles), dtype=bool), np.zeros(len(smiles))
        for term in self.terms:
            if term.oracle.free and (math.isfinite(term.low) or math.isfinite(term.high)):
                out, distance = term.outside(term.oracle.score(smiles).value)
                missed |= out
                excess += distance / term.oracle.scale
        return missed, self.scale * excess

    def with_terms(self, *terms: Term) -> Combined:
        """The same with more terms."""
        return Combined([*self.terms, *terms], self.combine)


def _distinct(labels: Sequence[str]) -> list[str]:
    """The labels, with a number behind each that was there before."""
    seen: dict[str, int] = {}
    out = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label}_{seen[label]}")
    return out

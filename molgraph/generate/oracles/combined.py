"""Combine oracles with weights and bounds, from a text such as "qed:1,sa<4", a mapping or a TOML file."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from itertools import combinations
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.errors import BadValueError, ConflictError, DataError
from molgraph.base.toml_config import read_toml
from molgraph.generate.oracles.oracle import FunctionOracle, Oracle, Scores, make_oracle, oracle_at, reasons_of

_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_TERM = re.compile(
    rf"(?P<name>[^()<>]+?)(?:\((?P<argument>.*)\))?\s*(?P<rest>(?::\s*{_NUMBER})?(?:\s*[<>]=?\s*{_NUMBER})*)"
)
_BOUND = re.compile(rf"([<>])(=?)\s*({_NUMBER})")
NOTHING: Mapping[str, np.ndarray] = MappingProxyType({})
SYNTAX = (
    'as in "qed", "qed:1,sa<4", "assay.mgm#pIC50:1,qed:0.5,sa<4,similarity(CCO)>0.4", a function of one SMILES as '
    'module:function or "./file.py:function:0.5", or a .toml file with a table '
    "[NAME] for each, of weight, min, max"
)


@dataclass(frozen=True)
class Term:
    """One oracle's part in a sum.

    Args:
        oracle: whose score it is.
        label: the name of its column.
        weight: how much an improvement of 1 counts; 0 for one that only has bounds. Improvement is in the oracle's
            better direction: with weight 1 the synthetic accessibility falls.
        low, high: bounds of the score.
        above, below: whether the bounds themselves are outside, as in ``sa<4``.
    """

    oracle: Oracle
    label: str
    weight: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False

    @property
    def words(self) -> str:
        """The term as a person would write it."""
        both = ((">", self.low, self.above), ("<", self.high, self.below))
        bounds = "".join(f"{sign}{'' if open_ else '='}{n:g}" for sign, n, open_ in both if math.isfinite(n))
        return self.label + (f":{self.weight:g}" if self.weight != 1 and (self.weight or not bounds) else "") + bounds

    def excludes(self, other: Term) -> bool:
        """Whether no score is within the bounds of both; terms of different oracles or parameters never exclude."""
        low, above = max((self.low, self.above), (other.low, other.above))
        high, closed = min((self.high, not self.below), (other.high, not other.below))
        if low < high or (low == high and closed and not above):
            return False
        mine, theirs = self.oracle, other.oracle
        alike = type(mine) is type(theirs) and mine.name == theirs.name and mine.content
        return mine is theirs or bool(alike and mine.content == theirs.content)

    def outside(self, value: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """bool [n], whether each score misses a bound, and float64 [n], by how much."""
        missed, distance = np.zeros(len(value), dtype=bool), np.zeros(len(value))
        for gap, open_ in ((self.low - value, self.above), (value - self.high, self.below)):
            out = gap >= 0 if open_ else gap > 0
            distance[out] += gap[out] + self.oracle.step * open_
            missed |= out
        return missed, distance


class PartScores(NamedTuple):
    """The scores of a list of molecules by an oracle.

    Args:
        total: float64 [n], the weighted sum; NaN where a part has no score.
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
    """A weighted sum of oracles, with bounds: itself an oracle, whose score is ``guide``.

    Example:
        >>> both = read_oracle("qed:1,sa<4")
        >>> both.words, both.labels
        ('qed,sa<4', ('qed', 'sa'))
        >>> both.score_parts(["CCO", "not a molecule"]).within.tolist()
        [True, False]
    """

    name = "total"

    def __init__(self, terms: Sequence[Term]) -> None:
        if not terms:
            raise BadValueError("the oracle is empty", hint=SYNTAX)
        if not any(term.weight for term in terms):
            raise BadValueError("the oracle has bounds alone, and nothing to make better", hint=SYNTAX)
        for one, other in combinations(terms, 2):
            if one.excludes(other):
                words = f"{one.words!r} and {other.words!r} leave no molecule"
                raise ConflictError(words, hint="leave one of them out")
        self.terms = tuple(terms)
        self.labels = tuple(_distinct([term.label for term in terms]))
        self.batched = all(term.oracle.batched for term in terms)
        self.scale = sum(abs(term.weight) * term.oracle.scale for term in terms)

    @property
    def words(self) -> str:
        """The oracle as a person would write it."""
        return ",".join(term.words for term in self.terms)

    @property
    def content(self) -> str:
        """What the scores depend on: equal for equal oracles, and empty where that of a part is."""
        plain = [each.name for each in fields(Term) if each.name != "oracle"]
        each = [
            (type(term.oracle).__name__, term.oracle.content, *(getattr(term, name) for name in plain))
            for term in self.terms
        ]
        return repr(each) if all(content for _, content, *_ in each) else ""

    def score(self, smiles: Sequence[str]) -> Scores:
        """Where a search is led: ``guide``."""
        found = self.score_parts(smiles)
        return Scores(found.guide, found.reason)

    def score_parts(self, smiles: Sequence[str], given: Mapping[str, np.ndarray] = NOTHING) -> PartScores:
        """The scores of each SMILES, by parts; of parts whose values are given, by label, no oracle is asked."""
        n = len(smiles)
        parts, reason = np.full((n, len(self.terms)), np.nan), np.full(n, "", dtype=object)
        total, excess, within = np.zeros(n), np.zeros(n), np.ones(n, dtype=bool)
        for j, (term, label) in enumerate(zip(self.terms, self.labels, strict=True)):
            value = given.get(label)
            found = term.oracle.score(smiles) if value is None else Scores(value, reasons_of(value))
            parts[:, j] = found.value
            fresh = (reason == "") & ~found.ok
            words = [text or f"{label} has no value" for text in found.reason[fresh]]
            reason[fresh] = [f"{label}: {text}" if len(self.terms) > 1 else text for text in words]
            if term.weight:
                total += term.weight * term.oracle.better * found.value
            missed, distance = term.outside(found.value)
            within &= ~missed
            excess += distance / term.oracle.scale
        bad = reason != ""
        total[bad] = np.nan
        return PartScores(total, total - self.scale * excess, ~bad & within, parts, reason)

    def screen(self, smiles: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """bool [n], whether a molecule misses a bound that is checked at no cost, and float64 [n], the guide's loss.

        Example:
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
        return Combined([*self.terms, *terms])


Given = str | Path | Oracle | Callable[[str], float] | Mapping[str, Any]


def read_oracle(given: Given, lead: str = "") -> Combined:
    """An oracle from a text, a TOML file, a mapping, an oracle or a function of one SMILES.

    Args:
        given: a text as in ``SYNTAX``; or name -> weight, or name -> {weight, min, max, and the oracle's parameters}.
        lead: the molecule that ``similarity`` without brackets means.

    Raises:
        UsageError: it cannot be understood; the hint shows the form.
    """
    if isinstance(given, Combined):
        return given
    if isinstance(given, Oracle):
        return Combined([Term(given, given.name)])
    if isinstance(given, Mapping):
        return Combined([_from_mapping(str(name), how, lead) for name, how in given.items()])
    if callable(given):
        oracle = FunctionOracle(given)
        return Combined([Term(oracle, oracle.name)])
    text = str(given)
    if text.endswith(".toml"):
        return read_oracle(_read_toml(Path(text)), lead)
    return Combined([_from_text(part.strip(), lead) for part in text.split(",") if part.strip()])


class Bounds(NamedTuple):
    """The bounds of a ``Term``: inclusive unless ``above`` or ``below``."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False


def _read_toml(path: Path) -> Mapping[str, Any]:
    found = read_toml(path, "sa = {max = 4}", "oracle")
    inner = found.get("oracle", found.get("objective", found))
    return inner if isinstance(inner, Mapping) else {str(inner): 1.0}


def _from_text(text: str, lead: str) -> Term:
    found = _TERM.fullmatch(text)
    if found is None:
        raise BadValueError(f"the oracle's part {text!r} cannot be understood", hint=SYNTAX)
    name, argument, rest = found["name"].strip(), found["argument"], found["rest"]
    low, high = (-math.inf, False), (math.inf, True)  # the number, and whether it is outside or inside
    for sign, equal, number in _BOUND.findall(rest):
        if sign == ">":
            low = max(low, (float(number), not equal))
        else:
            high = min(high, (float(number), bool(equal)))
    weighed = re.match(rf":\s*({_NUMBER})", rest)
    weight = float(weighed[1]) if weighed else 0.0 if rest.strip() else 1.0
    bounds = Bounds(low[0], high[0], low[1], not high[1])
    return _term(name, [] if argument is None else [argument.strip()], weight, bounds, {}, lead)


def _from_mapping(name: str, how: Any, lead: str) -> Term:
    if isinstance(how, (int, float)) and not isinstance(how, bool):
        return _term(name, [], float(how), Bounds(), {}, lead)
    if isinstance(how, Oracle):
        return Term(how, name)
    if callable(how):
        return Term(FunctionOracle(how, name), name)
    if not isinstance(how, Mapping):
        raise BadValueError(f"the oracle's part {name!r} is {how!r}, which is no weight", hint=SYNTAX)
    rest, bounds = dict(how), []
    for key, none in (("min", -math.inf), ("max", math.inf)):
        bounds.append(rest.pop(key, none))
    weight = rest.pop("weight", 0.0 if any(map(math.isfinite, bounds)) else 1.0)
    if not all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (weight, *bounds)):
        raise BadValueError(f"weight, min and max of {name!r} are numbers", hint=SYNTAX)
    if target := rest.pop("target", ""):
        name = f"{name}#{target}"
    return _term(name, [], float(weight), Bounds(float(bounds[0]), float(bounds[1])), rest, lead)


def _term(name: str, argument: list[Any], weight: float, bounds: Bounds, params: Mapping[str, Any], lead: str) -> Term:
    low, high, *strict = bounds
    if low > high or (low == high and any(strict)):
        raise ConflictError(f"the bounds of {name!r} leave nothing: over {low:g} and under {high:g}", hint=SYNTAX)
    if not math.isfinite(weight):
        raise BadValueError(f"the weight of {name!r} is {weight}", hint=SYNTAX)
    if name == "similarity" and not argument and "lead" not in params:
        if not lead:
            raise DataError(
                "similarity needs a molecule to be similar to", hint="similarity(SMILES), or --start SMILES"
            )
        argument = [lead]
    if ":" in name:
        own = oracle_at(name, *argument, **params)
        return Term(own, own.name, weight, *bounds)
    path, hashed, target = name.partition("#")
    if path.endswith(".mgm"):
        label = target or Path(path).stem
        return Term(make_oracle("model", path + hashed + target, **params), label, weight, *bounds)
    return Term(make_oracle(name, *argument, **params), name, weight, *bounds)


def _distinct(labels: Sequence[str]) -> list[str]:
    """The labels, with a number behind each that was there before."""
    seen: dict[str, int] = {}
    out = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        out.append(label if seen[label] == 1 else f"{label}_{seen[label]}")
    return out

"""Optimise in stages: parts of an oracle join one after another, once a score or a number of calls is reached."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from molgraph.base.errors import BadValueError, ConflictError, MissingOptionError, UnknownNameError, nearest
from molgraph.generate.oracles.calls import Ask, OracleCalls, Scored
from molgraph.generate.oracles.combined import NOTHING, Combined
from molgraph.generate.oracles.term import Term

KEYS = ("oracle", "until", "calls")


@dataclass(frozen=True)
class Rule:
    """When a stage ends.

    Args:
        until: the mean score of a batch from which on; infinite for never.
        calls: how many calls of the stage, at most; 0 for any number.
    """

    until: float = math.inf
    calls: int = 0


class Staged(Combined):
    """An oracle in stages: each has the parts of those before it and its own. As an oracle it is the last stage.

    Args:
        stages: the stages, each a combined oracle whose terms begin with those of the one before.
        rules: when each but the last one ends.
    """

    def __init__(self, stages: Sequence[Combined], rules: Sequence[Rule]) -> None:
        super().__init__(stages[-1].terms, stages[-1].combine)
        self.stages, self.rules = tuple(stages), tuple(rules)

    @property
    def words(self) -> str:
        """The stages as a person would write them."""
        return " then ".join(stage.words for stage in self.stages)

    @property
    def content(self) -> str:
        """What the scores of all stages depend on."""
        contents = [stage.content for stage in self.stages]
        return repr([*zip(contents, [*self.rules, Rule()], strict=True)]) if all(contents) else ""

    def with_terms(self, *terms: Term) -> Staged:
        """The same with more terms in every stage."""
        return Staged([stage.with_terms(*terms) for stage in self.stages], self.rules)


def read_stages(tables: Any, read: Any, combine: str = "sum") -> Staged:
    """An oracle in stages from the tables ``[[stage]]`` of a TOML file.

    Args:
        tables: each has ``oracle``, a text or a table, and all but the last ``until``, ``calls`` or both.
        read: reads an oracle from a text or a table.
        combine: ``sum`` or ``product``, of every stage.

    Raises:
        UsageError: another key, or a stage without an oracle or without an end.
    """
    if not isinstance(tables, list) or not tables or not all(isinstance(entry, Mapping) for entry in tables):
        raise BadValueError("the stages are no list of tables", hint="write [[stage]] above each")
    terms, stages, rules = list[Term](), list[Combined](), list[Rule]()
    for number, table in enumerate(tables, 1):
        if unknown := [key for key in table if key not in KEYS]:
            raise UnknownNameError(f"stage {number} has no key {unknown[0]!r}", hint=nearest(unknown[0], KEYS))
        if "oracle" not in table:
            raise MissingOptionError(f"stage {number} has no oracle", hint='as in oracle = "qed,sa<4"')
        rule, last = Rule(table.get("until", math.inf), table.get("calls", 0)), number == len(tables)
        if not (isinstance(rule.until, int | float) and isinstance(rule.calls, int) and rule.calls >= 0):
            raise BadValueError(f"until and calls of stage {number} are numbers", hint="as in until = 0.6, calls = 200")
        if not last and rule == Rule():
            raise MissingOptionError(f"stage {number} has no end", hint="until = SCORE, calls = N, or both")
        if last and rule != Rule():
            raise BadValueError("the last stage ends with the budget", hint="leave until and calls out there")
        inner = read(table["oracle"])
        if inner.combine != "sum":
            raise ConflictError(f"stage {number} is a product alone", hint='write combine = "product" above all stages')
        terms += inner.terms
        stages.append(Combined(terms, combine))
        rules.append(rule)
    return Staged(stages, rules[:-1])


class StagedCalls(OracleCalls):
    """``OracleCalls`` of an oracle in stages.

    A molecule is scored by the stage in which it is proposed, and by a later one when it is proposed again: that is
    another call, in which the parts that are known are not asked again. ``scored`` has the calls of the current stage.

    Args:
        oracle: in stages.
        budget, journal, how: as for ``OracleCalls``.
    """

    def __init__(self, oracle: Staged, budget: int, **how: Any) -> None:
        self.whole, self.stage = oracle, 0
        self.earlier: list[Scored] = []
        self.by_stage: list[dict[str, Scored]] = [{} for _ in oracle.stages]
        super().__init__(oracle, budget, **how)
        self.oracle, self.resumed = oracle.stages[0], self.by_stage[0]

    def index(self, kept: Sequence[Scored]) -> dict[str, Scored]:
        """The calls of earlier runs by stage."""
        for one in kept:
            if 1 <= one.stage <= len(self.by_stage):
                self.by_stage[one.stage - 1][one.smiles] = one
        return self.by_stage[0]

    def kept(self) -> list[Scored]:
        """The calls of earlier runs, of all stages."""
        return [one for stage in self.by_stage for one in stage.values()]

    @property
    def _header(self) -> dict[str, str]:
        return {"objective": self.whole.content, "words": self.whole.words}

    def end_batch(self, batch: Sequence[Scored]) -> bool:
        """Whether the stage ends with a batch; the next one then begins."""
        if self.stage == len(self.whole.rules) or not self.left:
            return False
        rule, totals = self.whole.rules[self.stage], [one.total for one in batch if math.isfinite(one.total)]
        reached = bool(totals) and float(np.mean(totals)) >= rule.until
        if not (reached or (rule.calls and len(self.scored) >= rule.calls)):
            return False
        self.earlier += self.scored.values()
        self.before, self.stage = len(self.earlier), self.stage + 1
        self.scored, self.known = {}, {}
        self.oracle, self.resumed = self.whole.stages[self.stage], self.by_stage[self.stage]
        return True

    @property
    def history(self) -> list[Scored]:
        """The calls of the stages before; those of molecules that were not scored again say so."""
        last = {one.smiles: one for one in self.earlier}
        out = [one for text, one in last.items() if text not in self.scored]
        return [
            replace(one, total=math.nan, within=False, reason=one.reason or f"scored in stage {one.stage} alone")
            for one in sorted(out, key=lambda one: (-one.stage, -np.nan_to_num(one.guide, nan=-np.inf)))
        ]

    def asks(self, smiles: list[str], given: Mapping[str, np.ndarray] = NOTHING) -> list[Ask]:
        """Of molecules of earlier stages the known parts are not asked again."""
        last = {one.smiles: one for one in self.earlier if not one.reason}
        again = [text for text in smiles if text in last] if not given else []
        asks: list[Ask] = [([text for text in smiles if text not in again], given)]
        if again:
            parts = np.array([last[text].parts for text in again])
            use = {label: parts[:, j] for label, j in self._places.items() if np.isfinite(parts[:, j]).all()}
            asks.append((again, use))
        return asks

    def placed(self, smiles: Sequence[str], made: Sequence[Scored]) -> list[Scored]:
        """Scores in the order of their molecules, their parts at the places of the last stage's."""
        return super().placed(smiles, [self._whole(one) for one in made])

    def _whole(self, one: Scored) -> Scored:
        whole = [math.nan] * len(self.whole.terms)
        for j, value in zip(self._places.values(), one.parts, strict=False):
            whole[j] = value
        return replace(one, parts=tuple(whole), stage=self.stage + 1)

    @property
    def _places(self) -> dict[str, int]:
        """Where each part of the current stage stands among all."""
        place = self.whole.terms.index
        return {label: place(term) for term, label in zip(self.oracle.terms, self.oracle.labels, strict=True)}


def make_calls(oracle: Combined, budget: int, **how: Any) -> OracleCalls:
    """The calls of an oracle, in stages where it has some."""
    return StagedCalls(oracle, budget, **how) if isinstance(oracle, Staged) else OracleCalls(oracle, budget, **how)

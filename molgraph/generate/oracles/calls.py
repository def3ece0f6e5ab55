"""Cache and count the calls of an oracle, keep them on the disk, and mark the molecules on which it fails."""

from __future__ import annotations

import json
import logging
import math
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np

from molgraph.base.errors import BadValueError, ConflictError, UnsupportedError
from molgraph.base.paths import atomic_write, storage_error
from molgraph.base.progress import bar
from molgraph.chem.identity import canonical_smiles
from molgraph.generate.oracles.combined import NOTHING, Combined
from molgraph.generate.oracles.time_limit import TimeLimit, TooLongError

logger = logging.getLogger("molgraph")
SECONDS = 30.0
TOGETHER = 500  # known molecules that are computed at once
OVERHEAD = 3.0  # times the limit of an oracle that keeps one itself, after which its call is given up
SPENT = "the budget is spent"
Ask = tuple[list[str], Mapping[str, np.ndarray]]


@dataclass(frozen=True)
class Scored:
    """A molecule with what the oracle says of it.

    Args:
        smiles: canonical; as it was given where it cannot be read.
        call: the number of the oracle call, from 1; 0 where none was made.
        total, guide, within, parts: as in ``PartScores``.
        reason: why there is no score; empty where there is one.
        stage: the number of the stage that scored it, from 1; 0 of an oracle without stages.
    """

    smiles: str
    call: int = 0
    total: float = math.nan
    guide: float = math.nan
    within: bool = False
    parts: tuple[float, ...] = ()
    reason: str = ""
    stage: int = 0


class OracleCalls:
    """Score molecules by an oracle, each distinct molecule once, until a budget of calls is spent.

    A call that raises, gives NaN or takes too long becomes a scored molecule with a reason; none ends the run. A call
    is a distinct readable molecule, by its canonical SMILES. With a journal, the calls of earlier runs of the same
    oracle are read from it: they count in the budget as if they were made, so that a search that is run again goes
    on where it was stopped, and another search or seed finds what it would find without them, sooner. What failed then
    is asked again.

    Args:
        oracle: what scores.
        budget: how many calls, at most.
        journal: a file that keeps the calls, written from the first one on; None for none.
        seconds: how long a call may take, by the clock; a batch has as many times that as it has molecules, and none
            is asked again when it takes longer.
        elsewhere: scores molecules in other processes, in order; None for here.

    Raises:
        UsageError: a budget or time of nothing, a journal of another oracle, or one for an oracle whose parts
            nobody can tell apart.

    Example:
        >>> from molgraph.generate.oracles.read_oracle import read_oracle
        >>> calls = OracleCalls(read_oracle("qed"), budget=2)
        >>> [each.call for each in calls.score(["CCO", "OCC", "C(C", "CCN", "CCC"])], calls.left
        ([1, 1, 0, 2, 0], 0)
    """

    def __init__(
        self,
        oracle: Combined,
        budget: int,
        *,
        journal: str | Path | None = None,
        seconds: float = SECONDS,
        elsewhere: Callable[[OracleCalls, list[str]], Iterator[list[Scored]]] | None = None,
    ) -> None:
        if budget < 1:
            raise BadValueError(f"the budget is {budget} calls", hint="give 1 or more")
        if not seconds > 0:
            raise BadValueError(f"a call may take {seconds} seconds", hint="give more than 0")
        self.oracle, self.budget, self.seconds, self.elsewhere = oracle, budget, seconds, elsewhere
        self.scored: dict[str, Scored] = {}
        self.known: dict[str, Scored] = {}
        self.resumed: dict[str, Scored] = {}
        self.before = 0  # calls of earlier stages
        self._limit = TimeLimit()
        self._file: IO[str] | None = None
        self.journal = None if journal is None else Path(journal)
        if self.journal is not None:
            self.resumed = self.index(self._read(self.journal))

    @property
    def left(self) -> int:
        """How many calls are left."""
        return self.budget - self.before - len(self.scored)

    @property
    def history(self) -> list[Scored]:
        """Calls whose scores are not of the oracle as it is now; none without stages."""
        return []

    def index(self, kept: Sequence[Scored]) -> dict[str, Scored]:
        """The calls of earlier runs by their molecules."""
        return {one.smiles: one for one in kept}

    def kept(self) -> list[Scored]:
        """The calls of earlier runs."""
        return [*self.resumed.values()]

    def end_batch(self, batch: Sequence[Scored]) -> bool:
        """Whether the oracle changes after a batch that a search proposed, as one in stages does."""
        return False

    def score(self, smiles: Sequence[str]) -> list[Scored]:
        """What the oracle says of each SMILES, in order; calls beyond the budget are not made."""
        molecules = canonical_smiles(list(smiles))
        fresh = list(dict.fromkeys(f.smiles for f in molecules if not f.reason and self.seen(f.smiles) is None))
        self._call(fresh[: self.left])
        return [
            Scored(text, reason=f.reason) if f.reason else self.seen(f.smiles) or Scored(f.smiles, reason=SPENT)
            for text, f in zip(smiles, molecules, strict=True)
        ]

    def seen(self, written: str) -> Scored | None:
        """What is known of a molecule, by its canonical SMILES, without a call."""
        return self.scored.get(written) or self.known.get(written)

    def learn(self, written: Sequence[str], given: Mapping[str, np.ndarray]) -> list[Scored]:
        """Keep molecules whose scores are known, as no calls; what is not given is computed, outside the budget.

        Args:
            written: distinct canonical SMILES.
            given: label of a part of the oracle -> float64 [n].
        """
        out: list[Scored] = []
        with bar("known values", len(written)) as line:
            for start in range(0, len(written), TOGETHER):
                rows = slice(start, start + TOGETHER)
                out += self._compute([*written[rows]], {label: value[rows] for label, value in given.items()})
                line.advance(len(written[rows]))
        self.known.update((one.smiles, one) for one in out if np.isfinite(one.guide))
        return out

    def close(self) -> None:
        """Close the journal, and end what the oracle still runs."""
        self.oracle.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _call(self, fresh: list[str]) -> None:
        """Score new molecules and keep them; slow oracles one by one, so that Ctrl-C costs one call at most."""
        left = deque(fresh)
        for shard in chain(self._shards([text for text in fresh if text not in self.resumed]), [[]]):
            by_smiles = {one.smiles: one for one in shard}
            while left and (one := by_smiles.get(left[0]) or self.resumed.get(left[0])):
                self.scored[left.popleft()] = replace(one, call=self.before + len(self.scored) + 1)
            self._write([self.scored[text] for text in by_smiles])

    def _shards(self, smiles: list[str]) -> Iterator[list[Scored]]:
        """Scores of molecules, some at a time and in order."""
        if self.elsewhere is not None:
            yield from self.elsewhere(self, smiles)
        elif smiles:
            for group in [smiles] if self.oracle.batched else [[text] for text in smiles]:
                yield self._compute(group)

    def _compute(self, smiles: list[str], given: Mapping[str, np.ndarray] = NOTHING) -> list[Scored]:
        return self.placed(smiles, self.ask(self.asks(smiles, given)))

    def asks(self, smiles: list[str], given: Mapping[str, np.ndarray] = NOTHING) -> list[Ask]:
        """What the oracle is asked for molecules: lists of them, with values that are known."""
        return [(smiles, given)]

    def placed(self, smiles: Sequence[str], made: Sequence[Scored]) -> list[Scored]:
        """Scores in the order of their molecules."""
        by_smiles = {one.smiles: one for one in made}
        return [by_smiles[text] for text in smiles]

    def ask(self, asks: Sequence[Ask]) -> list[Scored]:
        """The oracle's scores, neither counted nor kept."""
        return [one for smiles, values in asks if smiles for one in self._ask(smiles, values)]

    def _ask(self, smiles: list[str], given: Mapping[str, np.ndarray]) -> list[Scored]:
        """All at once where that works, else one at a time, so that one bad molecule costs no other its score."""
        if self.oracle.batched or len(smiles) == 1:
            try:
                score = partial(self.oracle.score_parts, given=given) if given else self.oracle.score_parts
                limit = max(self.seconds, OVERHEAD * self.oracle.time_limit)
                scores = self._limit.call(score, smiles, limit)
                return [
                    Scored(text, 0, float(o), float(g), bool(w), tuple(map(float, p)), str(r))
                    for text, o, g, w, p, r in zip(smiles, *scores, strict=True)
                ]
            except TooLongError as error:
                return [Scored(text, reason=str(error)) for text in smiles]
            except Exception as error:  # whatever it is, the run goes on
                if len(smiles) == 1:
                    words = " ".join(str(error).split())[:200] or type(error).__name__
                    return [Scored(smiles[0], reason=f"the oracle failed: {words}")]
        one_by_one = ({label: value[[k]] for label, value in given.items()} for k in range(len(smiles)))
        return [one for text, values in zip(smiles, one_by_one, strict=True) for one in self._ask([text], values)]

    def _read(self, path: Path) -> list[Scored]:
        """The calls of earlier runs; the file is left as it is."""
        if not self.oracle.content:
            raise UnsupportedError(
                "the calls of this oracle cannot be kept: nothing tells whether its scores have changed since",
                hint='name a version: FunctionOracle(function, version="1"), or version = "1" in the oracle\'s class',
            )
        try:
            lines = path.read_text("utf-8", "replace").splitlines() if path.exists() else []
        except OSError as error:
            raise storage_error(f"cannot read the calls in {path}", error) from error
        kept = [one for one in map(_parsed, lines[1:]) if one is not None and not one.reason]
        header = _json(lines[0]) if lines else {"objective": ""}
        if not isinstance(header, dict) or "objective" not in header:
            raise UnsupportedError(f"{path} holds something else than calls of an oracle", hint="name another file")
        if kept and header != self._header:
            words = header.get("words", "")
            if words == self.oracle.words:
                words += " with another parameter, model or function"
            raise ConflictError(
                f"{path} keeps {len(kept):,} calls of a search for another oracle{f' ({words})' if words else ''}",
                hint="write to another file, or delete that one if its calls are not needed",
            )
        if kept:
            logger.info("%s: %s calls of an earlier run are read, not made again", path, f"{len(kept):,}")
        return kept

    @property
    def _header(self) -> dict[str, str]:
        return {"objective": self.oracle.content, "words": self.oracle.words}

    def _write(self, made: Sequence[Scored]) -> None:
        if self.journal is None or not made:
            return
        try:
            if self._file is None:  # without a line that a kill cut short
                lines = (json.dumps(self._header), *map(_line, self.kept()))
                with atomic_write(self.journal, "w") as file:
                    file.write("".join(f"{line}\n" for line in lines))
                self._file = self.journal.open("a", encoding="utf-8")
            self._file.write("".join(f"{_line(one)}\n" for one in made))
            self._file.flush()
        except OSError as error:
            raise storage_error(f"cannot keep the calls in {self.journal}", error) from error


def drop_journal(path: Path, smiles: Sequence[str]) -> int:
    """Delete a journal of a search that has ended, unless it keeps calls of others: how many."""
    lines = path.read_text("utf-8", "replace").splitlines()[1:] if path.exists() else []
    others = {one.smiles for one in map(_parsed, lines) if one is not None} - {*smiles}
    if not others:
        path.unlink(missing_ok=True)
    return len(others)


def _line(one: Scored) -> str:
    fields = asdict(one)
    if not one.stage:
        del fields["stage"]
    return json.dumps({"objective": fields.pop("total"), **fields})  # the key of older versions, which read it too


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def _parsed(line: str) -> Scored | None:
    record = _json(line)
    try:
        fields = {key: value for key, value in record.items() if key != "objective"}
        return Scored(**{**fields, "total": record["objective"], "parts": tuple(map(float, record["parts"]))})
    except (AttributeError, TypeError, KeyError, ValueError):
        return None

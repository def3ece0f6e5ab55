"""Run a search: choose a batch of what it proposes, score it, tell the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from molgraph.base.contracts import Generator
from molgraph.base.errors import CellError
from molgraph.base.progress import bar
from molgraph.chem.fingerprints import morgan
from molgraph.chem.identity import canonical_smiles
from molgraph.data.standardise import standardise
from molgraph.data.table import make_table
from molgraph.generate.diversity import kernel_matrix, select_diverse
from molgraph.generate.known import Told
from molgraph.generate.oracles.calls import OracleCalls, Scored
from molgraph.generate.oracles.term_scores import TermScores
from molgraph.generate.rewards.reward import Reward
from molgraph.generate.searches.search import Proposals, Search

IDLE = 25  # batches without a new molecule after which a search has come to its end
FAILED = 100  # calls in a row without a score after which nobody learns anything
CHOICE = 3  # proposals asked for each place of a batch, where diversity alone counts
CROWD = 12  # candidates for each place of a batch, at most, among which a diverse batch is chosen


@dataclass
class Proposed:
    """What a search proposed: texts, molecules among them, distinct ones.

    ``outside``: the distinct ones that miss a bound which is checked at no cost, and are not scored.
    """

    texts: int = 0
    valid: int = 0
    distinct: set[str] = field(default_factory=set)
    outside: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The counts in words."""
        words = f"{self.texts:,} proposals, {self.valid:,} of them molecules, {len(self.distinct):,} distinct"
        return words + (f", {len(self.outside):,} of those outside the bounds and not scored" if self.outside else "")


def standard_starts(smiles: Sequence[str], standardiser: str = "standard") -> list[str]:
    """The molecules to begin at as a generator's own are written: canonical, after the same preset.

    Scores and similarities of a salt or an ion are not those of the neutral molecule that a search begins at.

    Raises:
        CellError: one cannot be read.

    Example:
        >>> standard_starts(["OCC.Cl", "C[NH3+]"])
        ['CCO', 'CN']
    """
    table = standardise(make_table(list(smiles)), standardiser)
    molecules = canonical_smiles([str(text) for text in table.smiles])
    for row, molecule in enumerate(molecules):
        if reason := table.reason[row] or molecule.reason:
            raise CellError(f"the start {smiles[row]!r} cannot be read: {reason}", hint="begin at another molecule")
    return [molecule.smiles for molecule in molecules]


def run_search(
    generator: Generator | None,
    calls: OracleCalls,
    search: Search,
    *,
    starts: Sequence[str] = (),
    known: Told | None = None,
    rewards: Sequence[Reward] = (),
    standardiser: str = "standard",
    batch: int | None = None,
    diversity: float = 0.5,
    seed: int = 0,
    proposed: Proposed | None = None,
) -> Proposed:
    """Search until the budget of ``calls`` is spent, or nothing new is found; the scores are in ``calls.scored``.

    Args:
        generator: fitted; None for a search that needs none.
        calls: the oracle, its budget and its journal.
        search: proposes molecules.
        starts: molecules to begin at, which are scored first.
        known: molecules with scores that the search is told before anything is scored.
        rewards: terms that the scores of proposals go through, in order, before the search is told them.
        standardiser: the preset that proposals go through.
        batch: molecules scored between two proposals; None for the search's own number.
        diversity: weight of the batch's determinantal diversity against the search's promise, 0 to 1. The more it
            weighs, the more proposals there are to choose from, up to three for each place.
        seed: of the search and of decoding.
        proposed: filled in as the search goes, for callers that may be interrupted.
    """
    out, starts = proposed or Proposed(), standard_starts(starts, standardiser)
    batch, diversity = search.batch_size if batch is None else batch, diversity if search.chooses else 0.0
    known_data, share = None if known is None else (known.smiles, known.score), 1 + (CHOICE - 1) * diversity
    for reward in rewards:
        examples = [*starts, *(() if known is None else known.smiles)]
        reward.begin(generator, scale=calls.oracle.scale, seed=seed, examples=examples)
    how: dict[str, Any] = {"standardiser": standardiser, "batch": round(batch * share), "seed": seed}
    search.terms = TermScores(calls)
    search.begin(generator, starts=starts, known=known_data, **how)
    out.notes += filter(None, [known and known.note(search.n_known), search.fit_into(calls.budget)])
    with bar(f"search by {search.name}", calls.budget) as line:
        search.tell(starts, np.array([one.guide for one in calls.score(starts)]))
        out.notes += search.notes(starts)
        line.advance(len(calls.scored))
        step, idle, far, failed = 0, 0, 0, ""
        while calls.left and idle < IDLE and not (failed := failing(calls)):
            n = round(min(batch, calls.left) * share)
            asked = search.ask_wider(n, step, idle, bool(far)) if idle else search.ask(n, step)
            before, outside = len(calls.scored), len(out.outside)
            scored = _score(calls, search, rewards, asked, out, batch, diversity)
            new, far, step = len(calls.scored) - before, len(out.outside) - outside, step + 1
            idle = 0 if new else idle + 1
            line.advance(new)
            best = max((one.total for one in calls.scored.values() if one.within), default=np.nan)
            if calls.end_batch(scored):
                line.advance(_next_stage(calls, search, batch))
                out.notes.append(f"a stage ended after {calls.before:,} calls: {calls.oracle.words} from there on")
            line.describe(f"search by {search.name}, best {best:.3f}")
    if failed:
        words = f"the search ended after {len(calls.scored):,} of {calls.budget:,} calls"
        out.notes.append(f"{words}: the last {FAILED} have no score, the last one because {failed}")
    elif calls.left:
        out.notes.append(
            f"the search ended after {len(calls.scored):,} of {calls.budget:,} calls: {IDLE} batches in a row held "
            f"no new molecule{' within the bounds' if out.outside else ''}"
        )
    return out


def failing(calls: OracleCalls) -> str:
    """Why the last call has no score, where none of the last ``FAILED`` has one; else empty."""
    last = [*calls.scored.values()][-FAILED:]
    return last[-1].reason if len(last) == FAILED and all(one.reason for one in last) else ""


def _next_stage(calls: OracleCalls, search: Search, n: int) -> int:
    """Score the best molecules of the stage before by the next one, and tell the search: how many calls."""
    before = sorted(calls.history, key=lambda one: -np.nan_to_num(one.guide, nan=-np.inf))
    best = [one.smiles for one in before if np.isfinite(one.guide)][: min(n, calls.left)]
    search.forget()
    search.learn_known(best, np.array([one.guide for one in calls.score(best)]))
    return len(calls.scored)


def _score(
    calls: OracleCalls,
    search: Search,
    rewards: Sequence[Reward],
    asked: Proposals,
    out: Proposed,
    batch: int,
    diversity: float,
) -> list[Scored]:
    """Tell the search what is known of its proposals, and score a batch of the new molecules, which it returns."""

    def tell(rows: Sequence[int] | np.ndarray, values: Sequence[float] | np.ndarray) -> None:
        score = np.asarray(values, dtype=np.float64)
        for item in rewards if len(score) else ():
            score = item.adjust([molecules[i].smiles for i in rows], score)
        search.tell([asked.smiles[i] for i in rows], score)

    rows: list[int] = []
    known: list[float] = []
    fresh: dict[str, int] = {}
    molecules = canonical_smiles(asked.smiles)
    broken = [i for i, item in enumerate(molecules) if item.reason]
    for i, item in enumerate(molecules):
        if item.reason:
            continue
        if (seen := calls.seen(item.smiles)) is not None:
            rows.append(i)
            known.append(seen.guide)
        elif item.smiles not in fresh or asked.promise[i] > asked.promise[fresh[item.smiles]]:
            fresh[item.smiles] = i
        out.distinct.add(item.smiles)
    out.texts += len(molecules)
    out.valid += len(molecules) - len(broken)
    missed, loss = calls.oracle.screen([*fresh])
    places, texts = np.array([*fresh.values()], dtype=np.int64), np.array([*fresh], dtype=object)
    out.outside.update(texts[missed])
    worst = min((one.total for one in calls.scored.values() if np.isfinite(one.total)), default=0.0)
    rejected = np.flatnonzero(missed)[:batch]  # no call is spent, but the search learns where they lie
    search.tell([asked.smiles[i] for i in broken], np.full(len(broken), np.nan))
    tell(places[rejected], worst - loss[rejected])
    chosen = choose_batch(texts[~missed].tolist(), asked.promise[places[~missed]], min(batch, calls.left), diversity)
    again = np.argsort(-asked.promise[rows], kind="stable")[:batch]  # more would outweigh what is new
    tell(np.array(rows, dtype=np.int64)[again], np.array(known)[again])
    scored = calls.score(chosen)
    tell([fresh[text] for text in chosen], [one.guide for one in scored])
    return scored


def choose_batch(smiles: Sequence[str], promise: np.ndarray, n: int, diversity: float) -> list[str]:
    """``n`` of some molecules, promising and unlike each other; unlike each other alone where all promise the same.

    Example:
        >>> near = ["CCCCCCO", "CCCCCCCO", "c1ccccc1N"]
        >>> choose_batch(near, np.array([1.0, 0.9, 0.5]), 2, 0.7)
        ['CCCCCCO', 'c1ccccc1N']
    """
    if len(smiles) <= n:
        return list(smiles[:n])
    crowd = np.argsort(-promise, kind="stable")[: CROWD * n]
    scaled = (promise[crowd] - promise[crowd].mean()) / (promise[crowd].std() or 1.0)
    prints = morgan([smiles[i] for i in crowd])
    rows, _ = select_diverse(scaled, kernel_matrix(prints.x), n, diversity)
    return [smiles[crowd[row]] for row in rows]

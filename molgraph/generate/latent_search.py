"""Run a search over a generator's latent space: decode its points, choose a batch, score it, tell the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from molgraph.base.contracts import LatentGenerator
from molgraph.base.errors import DataError
from molgraph.base.progress import bar
from molgraph.base.seeds import derive
from molgraph.chem.fingerprints import morgan
from molgraph.chem.identity import canonical_smiles
from molgraph.data.standardise import standardise
from molgraph.data.table import make_table
from molgraph.generate.diversity import kernel_matrix, select_diverse
from molgraph.generate.known import Told
from molgraph.generate.oracles.journal import OracleCalls
from molgraph.generate.searches.search import Proposals, Search

IDLE = 25  # batches without a new molecule after which a search has come to its end
CROWD = 12  # candidates for each place of a batch, at most, among which a diverse batch is chosen


@dataclass
class Decoded:
    """What a search decoded: texts, molecules among them, distinct ones, and the point that each was first found at.

    ``outside``: the distinct ones that miss a bound which is checked at no cost, and are not scored.
    """

    texts: int = 0
    valid: int = 0
    point: dict[str, np.ndarray] = field(default_factory=dict)
    outside: set[str] = field(default_factory=set)
    notes: list[str] = field(default_factory=list)

    @property
    def sentence(self) -> str:
        """The counts in words."""
        words = f"{self.texts:,} points decoded, {self.valid:,} of them molecules, {len(self.point):,} distinct"
        return words + (f", {len(self.outside):,} of those outside the bounds and not scored" if self.outside else "")


def standard_starts(smiles: Sequence[str], standardiser: str = "standard") -> list[str]:
    """The molecules to begin at as a generator's own are written: canonical, after the same preset.

    Scores and similarities of a salt or an ion are not those of the neutral molecule that a search begins at.

    Raises:
        DataError: one cannot be read.

    Example:
        >>> standard_starts(["OCC.Cl", "C[NH3+]"])
        ['CCO', 'CN']
    """
    table = standardise(make_table(list(smiles)), standardiser)
    found = canonical_smiles([str(text) for text in table.smiles])
    for row, each in enumerate(found):
        if why := table.reason[row] or each.reason:
            raise DataError(f"the start {smiles[row]!r} cannot be read: {why}", hint="begin at another molecule")
    return [each.smiles for each in found]


def encode_starts(generator: LatentGenerator, smiles: Sequence[str]) -> np.ndarray:
    """The latent vectors of molecules to begin at: float64 [n, d].

    Args:
        generator: fitted.
        smiles: n molecules, of ``standard_starts``.

    Raises:
        DataError: one has no place in the space; the message gives the reason.
    """
    found = generator.encode(make_table(list(smiles)))
    for row in np.flatnonzero(~found.ok).tolist():
        raise DataError(
            f"the start {smiles[row]!r} has no place in the generator's space: {found.reason[row]}",
            hint="begin at another molecule, or train the generator on a corpus that has its fragments",
        )
    return found.mean


def run_search(
    generator: LatentGenerator,
    calls: OracleCalls,
    search: Search,
    *,
    starts: Sequence[str] = (),
    known: Told | None = None,
    standardiser: str = "standard",
    batch: int = 20,
    diversity: float = 0.5,
    seed: int = 0,
    decoded: Decoded | None = None,
) -> Decoded:
    """Search until the budget of ``calls`` is spent, or nothing new is found; the scores are in ``calls.scored``.

    Args:
        generator: fitted.
        calls: the objective, its budget and its journal.
        search: proposes points.
        starts: molecules to begin at, which are scored first.
        known: points with scores that the search is told before anything is scored.
        standardiser: the preset that the generator's molecules went through.
        batch: molecules scored between two proposals.
        diversity: weight of the batch's determinantal diversity against the search's promise, 0 to 1.
        seed: of the search and of decoding.
        decoded: filled in as the search goes, for callers that may be interrupted.
    """
    out = Decoded() if decoded is None else decoded
    starts = standard_starts(starts, standardiser)
    z = encode_starts(generator, starts) if starts else None
    search.begin(generator.d_latent, z, derive(seed, "search"), None if known is None else (known.z, known.score))
    with bar(f"search by {search.name}", calls.budget) as line:
        if z is not None:
            first = calls.score(starts)
            search.tell(z, np.array([one.guide for one in first]))
            line.advance(len(calls.scored))
        step = idle = far = 0
        while calls.left and idle < IDLE:
            asked = search.ask(min(batch, calls.left), step)
            if idle:  # the search turns in a circle, or left the bounds: points that it did not think of
                asked = _with(asked, search.first(batch, step, spread=0.3 / (1 + idle) if far else 0.3 * idle))
            before, outside = len(calls.scored), len(out.outside)
            _score(generator, calls, search, asked, out, batch, diversity, derive(seed, "decode", step))
            new, far, step = len(calls.scored) - before, len(out.outside) - outside, step + 1
            idle = 0 if new else idle + 1
            line.advance(new)
            best = max((one.objective for one in calls.scored.values() if one.within), default=np.nan)
            line.describe(f"search by {search.name}, best {best:.3f}")
    if calls.left:
        out.notes.append(
            f"the search ended after {len(calls.scored):,} of {calls.budget:,} calls: {IDLE} batches in a row held "
            f"no new molecule{' within the bounds' if out.outside else ''}"
        )
    return out


def _with(asked: Proposals, more: Proposals) -> Proposals:
    promise = np.full(len(more.z), np.median(asked.promise) if len(asked.promise) else 0.0)
    return Proposals(np.vstack([asked.z, more.z]), np.append(asked.promise, promise))


def _score(
    generator: LatentGenerator,
    calls: OracleCalls,
    search: Search,
    asked: Proposals,
    out: Decoded,
    batch: int,
    diversity: float,
    seed: int,
) -> None:
    """Decode the points, tell the search what is known of them, and score a batch of the new molecules."""
    found = canonical_smiles(generator.decode(asked.z, seed))
    out.texts += len(found)
    out.valid += sum(not each.reason for each in found)
    rows: list[int] = []
    known: list[float] = []
    fresh: dict[str, int] = {}
    for i, each in enumerate(found):
        if each.reason:
            continue
        if (seen := calls.seen(each.smiles)) is not None:
            rows.append(i)
            known.append(seen.guide)
        elif each.smiles not in fresh or asked.promise[i] > asked.promise[fresh[each.smiles]]:
            fresh[each.smiles] = i
        out.point.setdefault(each.smiles, asked.z[i])
    missed, loss = calls.objective.screen([*fresh])
    points, texts = np.array([*fresh.values()], dtype=np.int64), np.array([*fresh], dtype=object)
    out.outside.update(texts[missed])
    worst = min((one.objective for one in calls.scored.values() if np.isfinite(one.objective)), default=0.0)
    rejected = np.flatnonzero(missed)[:batch]  # no call is spent, but the search learns where they lie
    search.tell(asked.z[points[rejected]], worst - loss[rejected])
    n = min(batch, calls.left)
    chosen = choose_batch(texts[~missed].tolist(), asked.promise[points[~missed]], n, diversity)
    again = np.argsort(-asked.promise[rows], kind="stable")[:batch]  # more would outweigh what is new
    search.tell(asked.z[rows][again], np.array(known)[again])
    scored = calls.score(chosen)
    search.tell(asked.z[[fresh[text] for text in chosen]], np.array([one.guide for one in scored]))


def choose_batch(smiles: Sequence[str], promise: np.ndarray, n: int, diversity: float) -> list[str]:
    """``n`` of some molecules, promising and unlike each other; the first ones where all promise the same.

    Example:
        >>> near = ["CCCCCCO", "CCCCCCCO", "c1ccccc1N"]
        >>> choose_batch(near, np.array([1.0, 0.9, 0.5]), 2, 0.7)
        ['CCCCCCO', 'c1ccccc1N']
    """
    if len(smiles) <= n or np.ptp(promise) == 0:
        return list(smiles[:n])
    crowd = np.argsort(-promise, kind="stable")[: CROWD * n]
    scaled = (promise[crowd] - promise[crowd].mean()) / (promise[crowd].std() or 1.0)
    prints = morgan([smiles[i] for i in crowd])
    rows, _ = select_diverse(scaled, kernel_matrix(prints.x), n, diversity)
    return [smiles[crowd[row]] for row in rows]

"""Define ``LatentSearch``, the base class of searches in the latent space of a generator."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.contracts import Generator, LatentGenerator
from molgraph.base.errors import CellError, UnsupportedError
from molgraph.base.seeds import derive
from molgraph.base.seeds import generator as random_numbers
from molgraph.data.table import make_table
from molgraph.generate.searches.search import ENOUGH, Proposals, Search


class Points(NamedTuple):
    """Points of a latent space that a search would like to see scored.

    Args:
        z: float64 [m, d].
        promise: float64 [m], how good the search takes each to be, in any unit; equal where it cannot tell.
    """

    z: np.ndarray
    promise: np.ndarray


class LatentSearch(Search):
    """The base class of searches over any generator with a latent space; a subclass has ``propose``.

    ``z``, ``score``: float64 [n, d] and [n], what it was told; ``places``: float64 [s, d], where it begins.
    """

    def begin(self, generator: Generator | None = None, *, seed: int = 0, **how: Any) -> None:
        """As ``Search.begin``.

        Raises:
            UnsupportedError: the generator has no latent space. CellError: a start has no place in it.
        """
        if not isinstance(generator, LatentGenerator):
            words = f"{generator.name} has no latent space to search" if generator else "it needs a generator's file"
            hint = "name a jtvae or a chemvae; --search graph-ga needs no latent space and no model"
            raise UnsupportedError(f"the search {self.name!r} moves in a latent space, and {words}", hint=hint)
        self.space, self.d_latent, self.decode_seed = generator, generator.d_latent, seed
        self.z, self.score = np.zeros((0, self.d_latent)), np.zeros(0)
        self.points: dict[str, list[np.ndarray]] = {}
        super().begin(generator, seed=seed, **how)
        self.places = encode_starts(generator, self.starts) if self.starts else np.zeros((0, self.d_latent))
        for text, z in zip(self.starts, self.places, strict=True):
            self.points.setdefault(text, []).append(z)

    @abstractmethod
    def propose(self, n: int, step: int) -> Points:
        """At least ``n`` points to score next; ``step`` counts the calls, from 0."""

    def ask(self, n: int, step: int) -> Proposals:
        """The molecules at the points of ``propose``."""
        return self._decoded(self.propose(n, step), step)

    def ask_wider(self, n: int, step: int, idle: int, outside: bool) -> Proposals:
        """The same with others that it did not think of: farther and farther off, or nearer to the starts."""
        points = self.propose(n, step)
        more = self.first(self.batch, step, spread=0.3 / (1 + idle) if outside else 0.3 * idle)
        promise = np.full(len(more.z), np.median(points.promise) if len(points.promise) else 0.0)
        return self._decoded(Points(np.vstack([points.z, more.z]), np.append(points.promise, promise)), step)

    def _decoded(self, points: Points, step: int) -> Proposals:
        texts = self.space.decode(points.z, derive(self.decode_seed, "decode", step))
        self.points = {}
        for i in np.argsort(-points.promise, kind="stable"):
            self.points.setdefault(texts[i], []).append(points.z[i])
        return Proposals(texts, points.promise)

    def tell(self, smiles: Sequence[str], score: np.ndarray) -> None:
        """Learn the scores of points, the most promising of a text first; those without a score are passed over."""
        places = [self.points[text].pop(0) if self.points.get(text) else None for text in smiles]
        rows = [i for i, z in enumerate(places) if z is not None]
        self._learn(np.array([places[i] for i in rows]).reshape(-1, self.d_latent), np.asarray(score)[rows])

    def learn_known(self, smiles: Sequence[str], score: np.ndarray) -> int:
        """Encode the molecules, and learn their scores."""
        encoding = self.space.encode(make_table(list(smiles)))
        self._learn(encoding.mean[encoding.ok], score[encoding.ok])
        return len(self.z)

    def forget(self) -> None:
        """Forget all points."""
        self.z, self.score, self.n_known = np.zeros((0, self.d_latent)), np.zeros(0), ENOUGH

    def _learn(self, z: np.ndarray, score: np.ndarray) -> None:
        ok = np.isfinite(score)
        self.z, self.score = np.vstack([self.z, z[ok]]), np.append(self.score, score[ok])

    @property
    def informed(self) -> bool:
        """Whether a model can be fitted: some points were known, or ``initial`` ones are scored by now."""
        return (self.n_known >= ENOUGH or len(self.z) >= self.initial) and bool(np.ptp(self.score))

    def first(self, n: int, step: int, spread: float = 0.3) -> Points:
        """Points to begin with: the starts themselves, then others around them; without starts, points of the prior."""
        noise = random_numbers(self.seed, "first", step).standard_normal((n, self.d_latent))
        if not len(self.places):
            return Points(noise, np.zeros(n))
        rounds, which = np.divmod(np.arange(n), len(self.places))
        size = np.where((step == 0) & (rounds == 0), 0.0, spread * (1 + rounds % 3))
        return Points(self.places[which] + size[:, None] * noise, np.zeros(n))

    @property
    def target(self) -> np.ndarray:
        """The scores told, the lowest raised to five median deviations under the median, so that none rules a fit."""
        if not len(self.score):
            return self.score
        middle = np.median(self.score)
        deviation = np.median(np.abs(self.score - middle)) or self.score.std()
        return np.maximum(self.score, middle - 5 * deviation)

    def best(self, n: int) -> np.ndarray:
        """float64 [<= n, d]: points told with the highest scores, the best first, one for each score: the molecule of a
        score may have been met at many points."""
        _, first = np.unique(-self.score, return_index=True)
        return self.z[first[:n]]

    def within(self, z: np.ndarray) -> np.ndarray:
        """The points drawn back to the largest distance from the origin at which a molecule was seen."""
        norm = np.linalg.norm(z, axis=1, keepdims=True)
        far = np.linalg.norm(self.z, axis=1).max(initial=float(np.sqrt(self.d_latent)))
        return np.asarray(z * np.minimum(1.0, far / np.maximum(norm, 1e-12)))


def encode_starts(generator: LatentGenerator, smiles: Sequence[str]) -> np.ndarray:
    """The latent vectors of molecules to begin at: float64 [n, d].

    Args:
        generator: fitted.
        smiles: n molecules, of ``standard_starts``.

    Raises:
        CellError: one has no place in the space; the message gives the reason.
    """
    encoding = generator.encode(make_table(list(smiles)))
    for row in np.flatnonzero(~encoding.ok).tolist():
        raise CellError(
            f"the start {smiles[row]!r} has no place in the generator's space: {encoding.reason[row]}",
            hint="begin at another molecule, or train the generator on a corpus that has its fragments",
        )
    return encoding.mean

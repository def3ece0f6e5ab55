"""Improve a molecule while it stays similar to itself: gradient ascent from its latent vector."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from molgraph.base.contracts import LatentGenerator
from molgraph.data.table import make_table
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.similarity import Molecules
from molgraph.generate.run_search import standard_starts
from molgraph.generate.searches.ascent import climb
from molgraph.generate.searches.head import Head
from molgraph.generate.searches.latent import encode_starts
from molgraph.train.training_molecules import molecule_hashes

STEPS = 80


@dataclass(frozen=True)
class Improvement:
    """The best molecule found from one start, for one similarity that it had to keep.

    Args:
        start, best: SMILES, the start's after the preset; ``best`` is empty where none was similar enough and better.
        similarity: of the two, Tanimoto.
        before, after: their scores.
    """

    start: str
    best: str
    similarity: float
    before: float
    after: float

    @property
    def gain(self) -> float:
        """By how much the score rose; 0 where nothing was found, as the paper counts."""
        return self.after - self.before if self.best else 0.0


def improve(
    generator: LatentGenerator,
    heads: Sequence[Head],
    calls: OracleCalls,
    start: str,
    similarities: Sequence[float],
    *,
    steps: int = STEPS,
    rate: float = 0.1,
    standardiser: str = "standard",
    seed: int = 0,
) -> dict[float, Improvement]:
    """The paper's protocol: climb for ``steps``, decode every step, keep the best molecule that is similar enough.

    Jin et al. 2018, section 3.3: 80 steps from the start's latent vector; the decoded molecule with the highest score
    among those whose similarity (Morgan, radius 2) is at least delta; a success is one that differs from the start.
    The start is scored and compared as the generator writes molecules, so that to lose a charge is no improvement, and
    another stereoisomer of it is no success.

    Args:
        generator: fitted.
        heads: property heads, whose mean is climbed.
        calls: the oracle; each distinct molecule is one call.
        start: SMILES.
        similarities: the deltas; one path serves all of them.
        steps, rate: of the climb.
        standardiser: the preset that the generator's molecules went through.
        seed: of decoding.

    Returns:
        delta -> what was found.

    Raises:
        DataError: the start cannot be read or encoded.
    """
    starts = standard_starts([start], standardiser)
    z = encode_starts(generator, starts)
    path = np.vstack([z, climb(heads, z, steps, rate)])
    begin, *found = calls.score([*starts, *generator.decode(path, seed)])
    other = {one.smiles: one for one in found if np.isfinite(one.total)}
    own, *hashes = molecule_hashes(make_table([begin.smiles, *other]))  # stereo aside
    distinct = [one for one, its in zip(other.values(), hashes, strict=True) if its != own]
    near = Molecules([begin.smiles]).nearest([one.smiles for one in distinct]).similarity if distinct else np.zeros(0)
    out = {}
    for delta in similarities:
        better = [i for i, one in enumerate(distinct) if near[i] >= delta and one.total > begin.total]
        if not better:
            out[delta] = Improvement(begin.smiles, "", 1.0, begin.total, begin.total)
            continue
        i = max(better, key=lambda i: distinct[i].total)
        out[delta] = Improvement(begin.smiles, distinct[i].smiles, float(near[i]), begin.total, distinct[i].total)
    return out


def success(improvements: Sequence[Improvement]) -> tuple[float, float, float, float]:
    """Mean gain, its deviation, mean similarity of successes, and share of successes, as the paper's tables have them.

    Example:
        >>> a, b = Improvement("C", "CC", 0.5, 1.0, 3.0), Improvement("C", "", 1.0, 1.0, 1.0)
        >>> success([a, b])
        (1.0, 1.0, 0.5, 0.5)
    """
    gains = np.array([each.gain for each in improvements])
    kept = np.array([each.similarity for each in improvements if each.best])
    return (
        float(gains.mean()),
        float(gains.std()),
        float(kept.mean()) if len(kept) else float("nan"),
        len(kept) / len(gains),
    )

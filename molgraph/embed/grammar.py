"""Match SMARTS patterns with attachment points, where a substituent fits if its vector is close to an example's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import BadValueError
from molgraph.chem.substituents import on_methyl, read_exemplar, read_pattern, substituent_properties, substituents
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.embed.search import unit

LEAST = 1e-6  # distance of two substituents that are spelled differently
#: the most frequent substituents of up to ten heavy atoms in the molecules of NCI that ship with molgraph
_COMMON = (
    "*C *O *CC *c1ccccc1 *N *CCC *C(=O)O *Cl *CCCC *[O-] *[N+](=O)[O-] *C(C)=O *CCCCC *C#N *OC *CCCCCC *OCC *CO *Br "
    "*C(C)C *CCCCCCC *C(=O)OCC *C(C)(C)C *C(=O)c1ccccc1 *CCCCCCCC *Cc1ccccc1 *CC(=O)O *CCCCCCCCC *CCCCCCCCCC *C(N)=S "
    "*NC(N)=S *OC(C)=O *c1ccc(Cl)cc1 *CC(C)C *N(CC)CC *CCl *NN *NC(C)=O *SC#N *CC(C)(C)C *N(C)C *CCO *S(=O)(=O)O "
    "*c1ccc([N+](=O)[O-])cc1 *c1ccc(C)cc1 *C=O *C(N)=O *S *C(=O)OC *c1ccccn1 *Nc1ccccc1 *COC(C)=O *I *C=NNC(N)=S "
    "*c1ccc(OC)cc1 *CCC(=O)O *c1ncnc2c1cnn2C *OCCCC *CC(=O)c1ccccc1 *CCN(CC)CC *CN(CC)CC *CC#N *F *N=O *CN *C1CCCCC1 "
    "*C=C(C#N)C#N *CBr *c1ccccc1O *C(=O)NN *c1ccccc1C(=O)O *C=Cc1ccccc1 *c1ccncc1 *CCN *C(=S)NN *NC(=S)NN *CSC#N "
    "*[N+](C)(C)C *c1cccc([N+](=O)[O-])c1 *C(=O)CC *C(=O)CCl *C=C *NC(=O)OCC *N(CC(=O)O)CC(=O)O *C=NO *c1ccc(O)cc1 "
    "*c1ccccc1C *Oc1ccccc1 *CC(C)=O *CCC#N *OC(=O)c1ccccc1 *CCCl *c1ccc(NC(C)=O)cc1 *c1c(C)cc(C)cc1C *N1CCCCC1 *CC=C"
)
COMMON = tuple(_COMMON.split())


class Likeness:
    """Distances of substituents: ``1 - cos`` of vectors in standard deviations of the common ones.

    Vectors are fourteen properties, or those of an encoder for the substituent on a methyl group. Two substituents
    that are spelled alike have the distance 0, others at least 1e-6, and one without a vector is infinitely far.

    Args:
        encoder: None for properties.
        threads: of the encoder; None for all.
    """

    def __init__(self, encoder: MoleculeEncoder | None = None, threads: int | None = None) -> None:
        self.encoder, self.threads = encoder, threads
        common = self._raw(COMMON)
        self._mean, self._spread = np.nanmean(common, axis=0), np.nanstd(common, axis=0)
        self._rows: dict[str, np.ndarray] = {}

    def vectors(self, texts: Sequence[str]) -> np.ndarray:
        """float64 [n, d]; NaN where there is none."""
        new = [text for text in dict.fromkeys(texts) if text not in self._rows]
        if new:
            scaled = (self._raw(new) - self._mean) / np.where(self._spread > 1e-9, self._spread, 1.0)
            self._rows |= dict(zip(new, scaled, strict=True))
        return np.stack([self._rows[text] for text in texts])

    def distances(self, texts: Sequence[str], others: Sequence[str]) -> np.ndarray:
        """float64 [n, m] of n substituents and m others."""
        a, b = self.vectors(texts), self.vectors(others)
        ok = np.isfinite(a).all(axis=1)[:, None] & np.isfinite(b).all(axis=1)
        cosine = unit(np.nan_to_num(a)).astype(np.float64) @ unit(np.nan_to_num(b)).astype(np.float64).T
        apart = np.where(ok, np.maximum(1 - cosine, LEAST), np.inf)
        return np.where(np.array([*texts], object)[:, None] == np.array([*others], object), 0.0, apart)

    def _raw(self, texts: Sequence[str]) -> np.ndarray:
        single = [text.count("*") == 1 for text in texts]  # one that has a * of its own can be compared by spelling
        rows = np.flatnonzero(single)
        kept = [text for text, one in zip(texts, single, strict=True) if one]
        if self.encoder is None:
            values = substituent_properties(kept)
        else:
            prints = self.encoder.vectors([on_methyl(text) for text in kept], self.threads)
            values = np.where(prints.ok[:, None], prints.x, np.nan).astype(np.float64)
        out = np.full((len(texts), values.shape[1]), np.nan)
        out[rows] = values
        return out


class Match(NamedTuple):
    """How a molecule fits a pattern, at best.

    Args:
        distance: the largest over the places.
        substituents: what stands at each place.
        likes: the closest exemplar of each; empty at a place where anything may stand.
    """

    distance: float
    substituents: tuple[str, ...]
    likes: tuple[str, ...]


class Grammar:
    """A SMARTS pattern with places for substituents like some exemplars.

    Wingate, Myers, Fulda and Etchart 2018, "Embedding Grammars", arXiv 1808.04891: a word matches a place of a pattern
    where its vector lies in a ball of radius eps around one of the exemplars, ``min_i d(w, e_i) <= eps``. Words are
    substituents here. With ``eps = 0`` it is a plain substructure search for the exemplars.

    Args:
        smarts: pattern; atoms with map numbers at its ends are places.
        likes: exemplars such as ``[*:1]C(=O)O``; a place without one takes anything.
        eps: radius of the balls, a distance of ``likeness``.
        likeness: between substituents.

    Raises:
        BadValueError: eps is negative, there is no exemplar, or the pattern has no place of its number.

    Example:
        >>> grammar = Grammar("c1ccccc1[*:1]", ["[*:1]C(=O)O"], 0.0, Likeness())
        >>> [match and match.distance for match in grammar.matches(["OC(=O)c1ccccc1", "Cc1ccccc1"])[0]]
        [0.0, None]
    """

    def __init__(self, smarts: str, likes: Sequence[str], eps: float, likeness: Likeness) -> None:
        self.smarts, self.eps, self.likeness = smarts, eps, likeness
        self.numbers = [place.number for place in read_pattern(smarts).places]
        self.likes: Mapping[int, list[str]] = {number: [] for number in self.numbers}
        if not 0 <= eps < np.inf:
            raise BadValueError(f"eps is {eps}, expected 0 or more", hint="0 is what is written, 1 is no likeness")
        for number, text in map(read_exemplar, likes):
            number = self.numbers[0] if not number and len(self.numbers) == 1 else number
            if number not in self.likes:
                words = f"the pattern has the places {', '.join(f':{n}' for n in self.numbers)}, and {text} is for "
                raise BadValueError(words + (f":{number}" if number else "none"), hint='as in "[*:1]C(=O)O"')
            self.likes[number].append(text)
        if not any(self.likes.values()):
            raise BadValueError("no place has an exemplar", hint='such as like="[*:1]C(=O)O"')

    def matches(self, smiles: Sequence[str]) -> tuple[list[Match | None], list[str]]:
        """The best match of each molecule, None where there is none; and why one cannot be read, else empty."""
        ways = substituents(self.smarts, smiles)
        near = [self._nearest({way[i] for _, parses in ways for way in parses}, i) for i in range(len(self.numbers))]
        matches: list[Match | None] = []
        for _, parses in ways:
            fits = (
                Match(max(near[i][text][0] for i, text in enumerate(way)), way,
                      tuple(near[i][text][1] for i, text in enumerate(way)))
                for way in parses
            )  # fmt: skip
            best = min(fits, default=None)
            matches.append(best if best is not None and best.distance <= self.eps else None)
        return matches, [reason for reason, _ in ways]

    def _nearest(self, texts: set[str], place: int) -> dict[str, tuple[float, str]]:
        """The distance of each substituent from the closest exemplar of a place, and that one."""
        ordered, likes = sorted(texts), self.likes[self.numbers[place]]
        if not likes or not ordered:
            return dict.fromkeys(ordered, (0.0, ""))
        if not self.eps:
            return {text: (0.0, text) if text in likes else (np.inf, "") for text in ordered}
        distances = self.likeness.distances(ordered, likes)
        closest = distances.argmin(axis=1)
        return {text: (float(distances[n, closest[n]]), likes[closest[n]]) for n, text in enumerate(ordered)}

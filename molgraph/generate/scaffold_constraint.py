"""Constrain a SMILES language model to keep a scaffold: it writes at the attachment points alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool
from torch import Tensor

from molgraph.base.errors import BadValueError, UnsupportedError
from molgraph.base.seeds import generator as random_numbers
from molgraph.chem.open_points import POINT, Score, label_of, open_labels, read_scaffold
from molgraph.chem.smiles import why_unreadable

LINKER = 12  # tokens of a linker before its end is looked for, at most
_BONDS = "-=#$:/\\~"
_SINGLE = "-/\\"
_ENDS = {"": ("F", "Cl", "Br", "I"), "=": ("O", "S"), "#": ("N",)}  # what a chain does not go on from, by its bond


@dataclass
class _Row:
    """Where a text stands: a place of the template, and inside an open point what was written there."""

    place: int = 0
    free: bool = False
    depth: int = 0
    atoms: int = 0
    inside: int = 0  # tokens of this open point
    own: set[int] = field(default_factory=set)  # ring labels that it has opened and not closed
    stop: int = 0  # tokens of a linker before which it does not end
    codes: list[int] = field(default_factory=list)
    broken: bool = False


class ScaffoldConstraint:
    """Which tokens may come next, so that a text is the scaffold with something at each open point.

    The idea of Langevin et al. 2020 (SAMOA, J. Chem. Inf. Model. 60:5637): the tokens of the scaffold are written as
    they are; at an open point the model writes freely until the branch, or the text, closes, and its probabilities are
    those of the tokens that may come there. Ring labels that the scaffold has open there are not the model's to
    close, its own are closed before the branch is, and its first atom has the scaffold's bond. A linker has no token
    that ends it: it is as long as a number that is drawn, then ends at the first place where the whole is a molecule;
    no halogen or ``=O`` stands in its chain.

    Args:
        scaffold: SMILES with a dummy atom at each open point; ``A[*:1].[*:1]B`` for a linker of two fragments.
        vocabulary: the model's tokens, whose codes count from 1; 0 is the end.
        max_length: tokens of a text, at most.
        score: which of the scaffold's writings is taken (``read_scaffold``); Langevin et al. take one by hand.

    Raises:
        BadValueError, CellError: no scaffold (``read_scaffold``), or one that is too long.
        UnsupportedError: the vocabulary lacks one of its tokens.

    Example:
        >>> made = ScaffoldConstraint("c1ccc([*:1])cc1", ("(", ")", "1", "C", "c"), 40)
        >>> made.scaffold.tokens
        ('c', '1', 'c', 'c', 'c', 'c', 'c', '1', '*')
        >>> [int(place.sum()) for place in made.masks([[5, 3, 5, 5, 5, 5, 5, 3, 4, 4]])[0]]
        [1, 1, 1, 1, 1, 1, 1, 1, 2, 5, 5]
    """

    def __init__(self, scaffold: str, vocabulary: Sequence[str], max_length: int, score: Score | None = None) -> None:
        self.scaffold, self.vocabulary, self.max_length = read_scaffold(scaffold, score), ("", *vocabulary), max_length
        code = {token: place for place, token in enumerate(vocabulary, 1)}
        for token in self.scaffold.tokens:
            if token != POINT and token not in code:
                words = f"the scaffold {scaffold!r} has the token {token!r}, which the model never writes"
                hint = "write it without stereo or charges, or train a model on molecules that have it"
                raise UnsupportedError(words, hint=hint)
        if 2 * self.scaffold.tokens.count(POINT) + len(self.scaffold.tokens) >= max_length:
            words = f"the scaffold has {len(self.scaffold.tokens)} tokens, and the model writes {max_length} at most"
            raise BadValueError(words, hint="take a smaller scaffold, or a model with a greater max_length")
        self.fixed = [code.get(token, 0) for token in self.scaffold.tokens]
        self.close, n = code.get(")", 0), len(self.vocabulary)
        self.labels = {place: label for token, place in code.items() if (label := label_of(token)) is not None}
        atom = np.array(
            [bool(t) and t not in "().*" and t[0] not in _BONDS and POINT not in t for t in self.vocabulary]
        )
        atom[[*self.labels]] = False
        single, other = ([bool(t) and t[0] in bonds for t in self.vocabulary] for bonds in (_SINGLE, _BONDS))
        self.atom, self.first = atom, atom | np.array(single)
        self.within = atom | np.array(other) | np.array([t == "(" for t in self.vocabulary])
        self.within[[*self.labels]] = True
        self.one = np.eye(n, dtype=bool)
        self.ends = {bond: np.isin(self.vocabulary, atoms) for bond, atoms in _ENDS.items()}

    def begin(self, n: int, seed: int = 0) -> Drawing:
        """``n`` texts before their first token, for ``draw_codes``."""
        stops = random_numbers(seed, "linker").integers(1, LINKER + 1, size=n)
        return Drawing(self, [self.row(int(stop)) for stop in stops])

    def row(self, stop: int) -> _Row:
        """A text before its first token."""
        return self._enter(_Row(stop=stop))

    def allowed(self, row: _Row) -> np.ndarray:
        """bool [n_tokens], which may come next."""
        if row.broken or row.place >= len(self.fixed):
            return self.one[0]
        if not row.free:
            return self.one[self.fixed[row.place]]
        if len(row.codes) + self._after(row.place) >= self.max_length:
            row.broken = True
            return self.one[0]
        mask = (self.within if row.atoms else self.first).copy()
        if self.scaffold.linker and not row.depth:
            mask &= ~self.ends[""] & ~self.ends.get(self.vocabulary[row.codes[-1]], self.ends[""])
        if not row.atoms:
            return mask
        held = open_labels(self.scaffold.tokens[: row.place])
        mask[[place for place, label in self.labels.items() if label in held]] = False
        if row.depth:
            mask[self.close] = True
        elif not row.own and not self.scaffold.linker:
            last = row.place + 1 == len(self.fixed)
            mask[0 if last else self.close] = True
        return mask

    def take(self, row: _Row, code: int, *, end: int | None = None) -> None:
        """Go on by a token; ``end``: how many tokens the linker has, where that is known."""
        if row.broken or not self.allowed(row)[code]:
            row.broken = True
            return
        if not code and not row.free:
            return
        row.codes.append(code)
        if not row.free:
            row.place += 1
            self._enter(row)
            return
        token, row.inside = self.vocabulary[code], row.inside + 1
        row.atoms += bool(self.atom[code])
        if code in self.labels:
            row.own ^= {self.labels[code]}
        row.depth += (token == "(") - (token == ")")
        if row.depth < 0 or not code:  # the template's own close, or the text's end
            row.place += 2 if code else 1
            self._enter(row)
        elif self.scaffold.linker and (row.inside == end if end is not None else self._joins(row)):
            row.place += 1
            self._enter(row)

    def _enter(self, row: _Row) -> _Row:
        row.free = row.place < len(self.fixed) and self.scaffold.tokens[row.place] == POINT
        row.depth = row.atoms = row.inside = 0
        row.own = set()
        return row

    def _after(self, place: int) -> int:
        """Tokens that an open point has behind it, at least."""
        return len(self.fixed) - place + self.scaffold.tokens[place + 1 :].count(POINT)

    def _joins(self, row: _Row) -> bool:
        """Whether the linker can end here."""
        if row.inside < row.stop or row.depth or row.own or not row.atoms:
            return False
        text = [self.vocabulary[code] for code in row.codes] + [*self.scaffold.tokens[row.place + 1 :]]
        return not why_unreadable("".join(text))

    def masks(self, codes: Sequence[Sequence[int]]) -> Bool[Tensor, "n t v"]:
        """bool [n, longest + 1, n_tokens]: which tokens may stand at each place of n texts; all behind their ends."""
        out = np.ones((len(codes), max(map(len, codes), default=0) + 1, len(self.vocabulary)), dtype=bool)
        for i, text in enumerate(codes):
            row, end = self.row(0), len(text) - len(self.fixed) + 1
            for place, code in enumerate([*text, 0]):
                out[i, place] = self.allowed(row)
                self.take(row, code, end=end)
        return torch.from_numpy(out)

    def accepts(self, text: Sequence[int]) -> bool:
        """Whether codes are the scaffold with something at each open point, written as the model would."""
        row, end = self.row(0), len(text) - len(self.fixed) + 1
        for code in [*text, 0]:
            if not self.allowed(row)[code]:
                return False
            self.take(row, code, end=end)
        return not row.broken


class Drawing:
    """Texts that are being drawn, as ``draw_codes`` asks for what may come next.

    Args:
        constraint: of all of them.
        rows: where each stands.
    """

    def __init__(self, constraint: ScaffoldConstraint, rows: list[_Row]) -> None:
        self.constraint, self.rows = constraint, rows

    def allowed(self, live: Tensor) -> Bool[Tensor, "m v"]:
        """bool [m, n_tokens] of the texts at these places."""
        return torch.from_numpy(np.stack([self.constraint.allowed(self.rows[i]) for i in live.tolist()]))

    def take(self, live: Tensor, codes: Tensor) -> None:
        """Go on by the tokens that were drawn."""
        for i, code in zip(live.tolist(), codes.flatten().tolist(), strict=True):
            self.constraint.take(self.rows[i], code)

    def whole(self, texts: Sequence[list[int]]) -> list[list[int]]:
        """The codes of the texts, none of those that came to no end."""
        return [[] if row.broken else text for row, text in zip(self.rows, texts, strict=True)]


@contextmanager
def scaffold_kept(generator: Any, scaffold: str | None) -> Iterator[None]:
    """A language model writes molecules with the scaffold alone while this lasts.

    Raises:
        UnsupportedError: a generator that is no language model of SMILES.
    """
    if scaffold is None:
        yield
        return
    if not hasattr(generator, "constraint") or generator.tokens != "smiles":
        words = f"a scaffold is kept by language models of SMILES, and {getattr(generator, 'name', 'this')} is none"
        raise UnsupportedError(words, hint="name one made by train-generator -m language")
    how = (generator.ready().vocabulary, generator.max_length, generator.log_prob)
    generator.constraint = ScaffoldConstraint(scaffold, *how)
    try:
        yield
    finally:
        generator.constraint = None

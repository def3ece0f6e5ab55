"""Draw SMILES from counts: each token by the few before it."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, NamedTuple, Self

import numpy as np

from molgraph.base.contracts import Generator, State
from molgraph.base.errors import BadValueError, DamagedModelError, NotFittedError
from molgraph.base.progress import bar
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.seeds import generator
from molgraph.chem.tokens import is_vocabulary, tokens_of
from molgraph.data.table import Table
from molgraph.generate.smiles_tokens import learnable_texts
from molgraph.train.archive import refused

EDGE = 0  # the code of a text's start and end
TOGETHER = 500  # texts of a piece
logger = logging.getLogger("molgraph")


class Automaton(NamedTuple):
    """The n-grams of a corpus: from each context, the tokens that followed it, how often, and the context after.

    Args:
        offsets: int64 [contexts + 1], where each context's tokens begin; context 0 is the start of a text.
        token: int64 [grams], codes from 1; ``EDGE`` is the end.
        counts: int64 [grams], how often each followed.
        after: int64 [grams], the context that it leads to.
    """

    offsets: np.ndarray
    token: np.ndarray
    counts: np.ndarray
    after: np.ndarray


@register(
    "generator",
    "ngram",
    summary="each token of a SMILES by the few before it, from counts",
    paper="Shannon 1948, Bell Syst. Tech. J. 27:379; Polykovskiy et al. 2020, Front. Pharmacol. 11:565644",
)
class NgramGenerator(Generator):
    """``p(x_1 ... x_n) = prod_t p(x_t | x_(t-k+1) ... x_(t-1))`` by counts: the cheapest baseline of a generator.

    No smoothing: every n-gram of a sample is one of the corpus, so that large orders write much of it off.

    Args:
        order: tokens of an n-gram, the drawn one too.
        max_length: tokens of a sample, at most; longer molecules are not learned from.
        temperature: of sampling: below 1 likely tokens are drawn more often, above 1 more rarely.

    Example:
        >>> from molgraph.data.table import make_table
        >>> made = NgramGenerator(order=3).fit(make_table(["CCO", "CCN", "CCCO"]))
        >>> made.sample(3) == made.sample(4)[:3]
        True
    """

    name = "ngram"
    small = MappingProxyType({"order": 5, "max_length": 80})

    def __init__(
        self,
        order: Annotated[int, Range(2, 32)] = 10,
        max_length: Annotated[int, Range(1, 2000)] = 160,
        temperature: Annotated[float, Range(0.01, 100)] = 1.0,
    ) -> None:
        self.order, self.max_length, self.temperature = order, max_length, temperature
        self.automaton: Automaton | None = None
        self.vocabulary: tuple[str, ...] = ()

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Count the n-grams of the readable molecules of ``table``; nothing is resumed, as nothing takes long.

        Raises:
            DataError: the table has no column of molecules, or several, or none of them can be read.
        """
        self.check_params()
        texts, self.notes = learnable_texts(table, self.max_length)
        self.n_learned = (len(texts), 0)
        for note in self.notes:
            logger.info(note)
        self.vocabulary = tuple(sorted({token for text in texts for token in text}))
        place = {token: i for i, token in enumerate(self.vocabulary, 1)}
        self.automaton = count_ngrams([[place[token] for token in text] for text in texts], self.order)
        return self

    def sample(self, n: int, seed: int = 0) -> list[str]:
        """Draw ``n`` texts; the first of them are the same whatever ``n`` is."""
        return [text for piece in self.pieces(n, seed) for text in piece]

    def pieces(self, n: int, seed: int = 0) -> Iterator[list[str]]:
        """The same in pieces."""
        automaton = self.ready()
        self.check_params()
        if n < 0:
            raise BadValueError(f"{n} samples cannot be drawn", hint="ask for 1 or more")
        upto = _cumulated(automaton, self.temperature)
        offsets, token, after = (array.tolist() for array in (automaton.offsets, automaton.token, automaton.after))
        with bar("generating", n) as line:
            for start in range(0, n, TOGETHER):
                texts = []
                for i in range(start, min(start + TOGETHER, n)):
                    uniform = generator(seed, "sample", i).random(self.max_length).tolist()
                    walk = _walk(offsets, token, after, upto, uniform)
                    texts.append("".join(self.vocabulary[code - 1] for code in walk))
                line.advance(len(texts))
                yield texts

    def log_prob(self, smiles: Sequence[str]) -> np.ndarray:
        """float64 [n], the log-probability of each SMILES as it is written, its end included, whatever the temperature.

        NaN where it has an n-gram that the corpus has not, or more than ``max_length`` tokens.

        Example:
            >>> from molgraph.data.table import make_table
            >>> NgramGenerator(order=2).fit(make_table(["CCO", "CO"])).log_prob(["CO", "N"]).round(3).tolist()
            [-0.405, nan]
        """
        automaton = self.ready()
        place = {token: i for i, token in enumerate(self.vocabulary, 1)}
        return np.array([self._log_prob(automaton, place, tokens_of(text)) for text in smiles], dtype=np.float64)

    def _log_prob(self, automaton: Automaton, place: Mapping[str, int], tokens: Sequence[str]) -> float:
        offsets, token, counts, after = automaton
        if len(tokens) > self.max_length:
            return np.nan
        context, total = 0, 0.0
        for code in [*(place.get(symbol, -1) for symbol in tokens), EDGE]:
            start, end = offsets[context], offsets[context + 1]
            gram = start + np.searchsorted(token[start:end], code)
            if gram == end or token[gram] != code:
                return np.nan
            total += float(np.log(counts[gram] / counts[start:end].sum()))
            context = after[gram]
        return total

    def ready(self) -> Automaton:
        """What was learned; raises ``NotFittedError`` before ``fit``."""
        if self.automaton is None:
            words = "this generator has not learned anything yet"
            raise NotFittedError(words, hint="call fit(table) first, or load one")
        return self.automaton

    def state(self) -> State:
        """The n-grams as arrays; hyper-parameters, vocabulary and notes as JSON."""
        arrays = self.ready()._asdict()
        meta = {"params": self.get_params(), "vocabulary": list(self.vocabulary), "notes": list(self.notes)}
        return State(arrays, meta)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; every number of the arrays is checked."""
        with refused("the generator's parts do not fit together"):
            generator = cls(**state.meta["params"])
            generator.check_params()
            generator.vocabulary = tuple(state.meta["vocabulary"])
            generator.notes = tuple(map(str, state.meta["notes"]))
            if not is_vocabulary(generator.vocabulary):
                raise DamagedModelError("the generator's vocabulary is no list of distinct tokens of SMILES")
            generator.automaton = Automaton(**{name: state.arrays[name] for name in Automaton._fields})
            _check(generator.automaton, len(generator.vocabulary))
        return generator


def count_ngrams(texts: Sequence[Sequence[int]], order: int) -> Automaton:
    """The automaton of texts of codes from 1.

    Example:
        >>> found = count_ngrams([[1, 1, 2], [1, 2]], 2)
        >>> found.offsets.tolist(), found.token.tolist(), found.counts.tolist()
        ([0, 1, 3, 4], [1, 1, 2, 0], [2, 1, 2, 2])
    """
    edge = [EDGE] * (order - 1)
    code = np.array([c for text in texts for c in (*edge, *text, EDGE)], dtype=np.int64)
    lengths = np.array([len(text) + order for text in texts])
    ends = np.cumsum(lengths)
    place = np.arange(len(code)) - np.repeat(ends - lengths, lengths)
    at = np.flatnonzero(place >= order - 1)  # of the tokens that are drawn
    base, context = int(code.max()) + 1, np.zeros(len(at), dtype=np.int64)
    for back in range(order - 1, 0, -1):
        context = np.unique(context * base + code[at - back], return_inverse=True)[1].reshape(-1)
    token = code[at]
    after = np.where(token == EDGE, 0, np.roll(context, -1))
    _, first, count = np.unique(context * base + token, return_index=True, return_counts=True)
    offsets = np.append(0, np.cumsum(np.bincount(context[first])))
    return Automaton(offsets, token[first], count.astype(np.int64), after[first])


def _cumulated(automaton: Automaton, temperature: float) -> list[float]:
    """Probabilities of the tokens of each context, summed from its first, one context's 1 above the other's."""
    sizes = np.diff(automaton.offsets)
    score = np.log(automaton.counts) / temperature
    score -= np.repeat(np.maximum.reduceat(score, automaton.offsets[:-1]), sizes)
    weight = np.exp(score)
    weight /= np.repeat(np.add.reduceat(weight, automaton.offsets[:-1]), sizes)
    total = np.cumsum(weight)
    before = np.repeat(total[automaton.offsets[:-1]] - weight[automaton.offsets[:-1]], sizes)
    sums: list[float] = (total - before).tolist()
    return sums


def _walk(
    offsets: list[int], token: list[int], after: list[int], upto: list[float], uniform: Sequence[float]
) -> list[int]:
    """The codes of one text."""
    drawn: list[int] = []
    context = 0
    for u in uniform:
        start, end = offsets[context], offsets[context + 1]
        gram = min(bisect_right(upto, u, start, end), end - 1)
        if token[gram] == EDGE:
            break
        drawn.append(token[gram])
        context = after[gram]
    return drawn


def _check(automaton: Automaton, n_tokens: int) -> None:
    """Raise ``DamagedModelError`` for numbers that no corpus gives."""
    offsets, token, count, after = automaton
    whole = all(array.dtype == np.int64 and array.ndim == 1 for array in automaton)
    sound = whole and len(offsets) > 1 and len(token) == len(count) == len(after) and offsets[0] == 0
    if (
        not sound
        or offsets[-1] != len(token)
        or (np.diff(offsets) < 1).any()
        or token.min() < 0
        or token.max() > n_tokens
        or count.min() < 1
        or count.max() > 1 << 40
        or after.min() < 0
        or after.max() >= len(offsets) - 1
    ):
        raise DamagedModelError("the generator's counts are not whole", hint="fetch the file again")

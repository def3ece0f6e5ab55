"""Code lengths of texts in bits: by counts of n-grams with smoothing, and by zlib that knows texts of the kind."""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log2
from typing import NamedTuple, Self

import numpy as np

END, BETWEEN = "\0", "\n"  # of a text; of n-grams in an array
ALPHABET = 257  # bytes and the end: what is never seen costs as much as any of them
WINDOW = 32_768  # bytes that zlib looks back at


class TextCode(NamedTuple):
    """``p(c | w) = (n(wc) + p(c | w')) / (n(w) + 1)`` with w' = w less its first character, by counts n of n-grams.

    The code length of a text is ``-sum log2 p``, its end included. Without any context p is mixed with 1 in 257, so
    that every text has one.

    Args:
        counts: of each n-gram, of length 1 to the order.
        before: of each context, its n-grams' counts added up.
        order: characters of the longest n-gram.
    """

    counts: Mapping[str, int]
    before: Mapping[str, int]
    order: int

    @classmethod
    def fit(cls, texts: Iterable[str], order: int) -> Self:
        """Count the n-grams of texts.

        Example:
            >>> code = TextCode.fit(["CCCC", "CCO"], 3)
            >>> code.bits("CCC") < code.bits("NNN")
            True
        """
        counts = Counter[str]()
        for text in texts:
            whole = text.replace(BETWEEN, " ") + END
            for end in range(1, len(whole) + 1):
                counts.update(whole[start:end] for start in range(max(end - order, 0), end))
        return cls.of(counts, order)

    @classmethod
    def of(cls, counts: Mapping[str, int], order: int) -> Self:
        """The code of counts."""
        before = Counter[str]()
        for gram, n in counts.items():
            before[gram[:-1]] += n
        return cls(counts, before, order)

    def bits(self, text: str) -> float:
        """The code length of a text."""
        whole = text + END
        return -sum(log2(self.probability(whole[max(i - self.order + 1, 0) : i], whole[i])) for i in range(len(whole)))

    def probability(self, context: str, c: str) -> float:
        """Of a character behind a context, which has at most as many characters as the order less 1."""
        p = 1 / ALPHABET
        for start in range(len(context), -1, -1):
            suffix = context[start:]
            n = self.before.get(suffix, 0)
            if not n:
                break
            p = (self.counts.get(suffix + c, 0) + p) / (n + 1)
        return p

    def state(self) -> dict[str, np.ndarray]:
        """The n-grams as bytes, and int64 their counts."""
        grams = sorted(self.counts)
        text = np.frombuffer(BETWEEN.join(grams).encode(), np.uint8)
        return {"grams": text, "counts": np.array([self.counts[gram] for gram in grams], np.int64)}

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], order: int) -> Self:
        """Arrays of ``state``; raises ``ValueError`` where they do not fit together."""
        text, counts = arrays["grams"], arrays["counts"]
        if text.dtype != np.uint8 or text.ndim != 1 or counts.ndim != 1 or (counts < 1).any():
            raise ValueError("n-grams are bytes, and their counts are numbers from 1")
        grams = text.tobytes().decode().split(BETWEEN)
        return cls.of(dict(zip(grams, counts.tolist(), strict=True)), order)


class PrimedZlib:
    """Code lengths by zlib that has read other texts before, less that of the empty text.

    Args:
        texts: of the kind; the last 32 kilobytes are read.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self.known = "\n".join(texts).encode()[-WINDOW:]
        self.none = self._size(b"")

    def bits(self, text: str) -> float:
        """The code length of a text, a multiple of 8."""
        return 8.0 * (self._size(text.encode()) - self.none)

    def _size(self, data: bytes) -> int:
        compressor = zlib.compressobj(
            9, zlib.DEFLATED, -zlib.MAX_WBITS, zlib.DEF_MEM_LEVEL, zlib.Z_DEFAULT_STRATEGY, self.known
        )
        return len(compressor.compress(data)) + len(compressor.flush())

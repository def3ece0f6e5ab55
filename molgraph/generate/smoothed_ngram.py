"""Give texts of tokens a probability by smoothed counts of the few tokens before each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np

END = ""  # the token that ends a text


class SmoothedNgram:
    """``p(x) = prod_t p(x_t | x_(t-k+1) ... x_(t-1))``, of which every text of known tokens has one above 0.

    MacKay and Peto 1995, "A hierarchical Dirichlet language model": ``p_k(t | c) = (n(c, t) + alpha p_(k-1)(t | c'))
    / (n(c) + alpha)``, where ``c'`` is c without its first token, down to equal probabilities of all tokens.

    Args:
        texts: lists of tokens.
        vocabulary: all tokens but the end.
        order: k.
        alpha: of the shorter context.
    """

    def __init__(
        self, texts: Iterable[Sequence[str]], vocabulary: Iterable[str], order: int = 4, alpha: float = 1.0
    ) -> None:
        self.order, self.alpha, self.size = order, alpha, len({*vocabulary}) + 1
        self.counts, self.totals = Counter[tuple[str, ...]](), Counter[tuple[str, ...]]()
        for text in texts:
            padded = (*[END] * (order - 1), *text, END)
            for i in range(order - 1, len(padded)):
                for k in range(order):
                    self.counts[padded[i - k : i + 1]] += 1
                    self.totals[padded[i - k : i]] += 1

    def log_prob(self, text: Sequence[str]) -> float:
        """The log-probability of a text with its end, in nats.

        Example:
            >>> model = SmoothedNgram([], "CO", order=2)
            >>> round(model.log_prob("CO"), 3) == round(3 * float(np.log(1 / 3)), 3)
            True
        """
        padded, total = (*[END] * (self.order - 1), *text, END), 0.0
        for i in range(self.order - 1, len(padded)):
            p = 1 / self.size
            for k in range(self.order):
                p = (self.counts[padded[i - k : i + 1]] + self.alpha * p) / (
                    self.totals[padded[i - k : i]] + self.alpha
                )
            total += float(np.log(p))
        return total

"""The n-gram generator against counts by hand and the probabilities that they give."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy import stats

from molgraph.data.table import make_table
from molgraph.generate.ngram import EDGE, NgramGenerator, count_ngrams


@pytest.mark.parametrize("order", [2, 3, 5])
def test_the_automaton_holds_every_ngram_as_often_as_it_occurs(order: int) -> None:
    rng = np.random.default_rng(order)
    texts = [rng.integers(1, 4, rng.integers(1, 9)).tolist() for _ in range(40)]
    padded = [[EDGE] * (order - 1) + text + [EDGE] for text in texts]
    known = Counter(tuple(p[i : i + order]) for p in padded for i in range(len(p) - order + 1))
    found = count_ngrams(texts, order)
    walked: Counter[tuple[int, ...]] = Counter()
    seen, todo = {0: (EDGE,) * (order - 1)}, [0]
    while todo:  # what each context stands for, from the start of a text on
        context = todo.pop()
        for g in range(found.offsets[context], found.offsets[context + 1]):
            gram = (*seen[context], int(found.token[g]))
            walked[gram] += int(found.counts[g])
            after = int(found.after[g])
            if found.token[g] != EDGE and after not in seen:
                seen[after] = gram[1:]
                todo.append(after)
            assert found.token[g] == EDGE or seen[after] == gram[1:]
    assert walked == known


def test_texts_are_drawn_with_the_probabilities_of_the_counts() -> None:
    corpus = make_table(["C", "C", "CO", "[13CH4]"])
    for temperature in (0.5, 1.0, 2.0):
        drawn = Counter(NgramGenerator(order=2, temperature=temperature).fit(corpus).sample(4000, seed=1))
        first, second = (np.array(each, float) ** (1 / temperature) for each in ((3, 1), (2, 1)))
        carbon, end = first[0] / first.sum(), second[0] / second.sum()
        expected = {"C": carbon * end, "CO": carbon * (1 - end), "[13CH4]": 1 - carbon}
        assert {*drawn} == {*expected}
        observed = [drawn[text] for text in expected]
        assert stats.chisquare(observed, [4000 * p for p in expected.values()]).pvalue > 1e-3

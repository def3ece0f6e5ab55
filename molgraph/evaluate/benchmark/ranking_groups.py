"""Turn significant differences into ranks and compact letter groups."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import numpy as np


def shared_ranks(better: np.ndarray) -> np.ndarray:
    """Rank 1 for whoever nothing beats: one more than the number of methods that are significantly better.

    Who beats somebody that is better counts as better too, for it follows; where margins differ from pair to pair a
    test may see the two steps and not the whole.

    Args:
        better: bool [k, k]: row's method is significantly better than column's.

    Returns:
        int64 [k].

    Example:
        >>> shared_ranks(np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]], dtype=bool)).tolist()
        [1, 1, 3]
    """
    better = np.array(better, dtype=bool)
    for by_way_of in range(len(better)):
        better |= better[:, [by_way_of]] & better[[by_way_of]]
    return 1 + better.sum(axis=0).astype(np.int64)


def letter_groups(different: np.ndarray, order: Iterable[int] | None = None) -> list[str]:
    """Compact letter display (Piepho 2004, J. Comput. Graph. Stat. 13:456): insert and absorb.

    Two methods share a letter exactly where the test doesn't tell them apart.

    Args:
        different: bool [k, k], symmetric.
        order: the methods from best to worst; the letters begin with the best.

    Returns:
        One text a method, in the matrix's order, such as ``ab``; letters after z are numbered: ``a1``.

    Example:
        >>> letter_groups(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
        ['a', 'ab', 'b']
    """
    different = np.asarray(different, dtype=bool)
    k = len(different)
    place = {int(method): i for i, method in enumerate(range(k) if order is None else order)}
    groups: list[frozenset[int]] = [frozenset(range(k))] if k else []
    for i, j in zip(*np.nonzero(np.triu(different, 1)), strict=True):
        split: list[frozenset[int]] = []
        for group in groups:
            split += [group - {i}, group - {j}] if i in group and j in group else [group]
        unique = list(dict.fromkeys(split))
        groups = [g for g in unique if g and not any(g < other for other in unique)]
    groups.sort(key=lambda group: sorted(place[i] for i in group))
    return ["".join(_letter(n) for n, group in enumerate(groups) if i in group) for i in range(k)]


def group_members(letters: Mapping[str, str]) -> dict[str, list[str]]:
    """Letter -> its methods, from the letters of each method.

    Example:
        >>> group_members({"x": "a", "y": "ab1", "z": "b1"})
        {'a': ['x', 'y'], 'b1': ['y', 'z']}
    """
    out: dict[str, list[str]] = {}
    for method, text in letters.items():
        for letter in re.findall(r"\D\d*", text):
            out.setdefault(letter, []).append(method)
    return dict(sorted(out.items(), key=lambda item: (int(item[0][1:] or 0), item[0])))


def _letter(n: int) -> str:
    return chr(97 + n % 26) + (str(n // 26) if n >= 26 else "")

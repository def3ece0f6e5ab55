"""Reproduce the scaffold splits of other projects exactly, each under its owner's name.

They do not group the forms of a molecule: what leaks from train into test is found, carried and printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import floor
from typing import NamedTuple

import numpy as np

from molgraph.chem.scaffold import scaffolds
from molgraph.data.splits.recipe import Parts, Task, number, register_split


class _Scaffolds(NamedTuple):
    """Rows that can be read, the scaffold of each, rows and first row of each scaffold, and what was left out."""

    rows: np.ndarray
    scaffold_of: np.ndarray
    sizes: np.ndarray
    first: np.ndarray
    left_out: Mapping[int, str]

    def parts(self, part_of: np.ndarray) -> Parts:
        """The parts from the part of each scaffold: 0 train, 1 valid, 2 test."""
        return Parts.of(self.rows, part_of[self.scaffold_of], self.left_out)


@register_split(
    "partition",
    "scaffold/deepchem",
    "DeepChem's ScaffoldSplitter, exactly; forms of a molecule may leak",
    "Wu et al. 2018, Chem. Sci. 9:513",
    reads=True,
    reproduces=True,
    asks="The rarest scaffolds: common ones train, and most tested ones occur once. No seed: one split.",
)
def split_like_deepchem(task: Task) -> Parts:
    """The sets of DeepChem's ``ScaffoldSplitter`` (2.8.0): largest scaffolds first, cut off at the fractions.

    All acyclic molecules are one scaffold there. Rows that cannot be read do not count: the loaders there, such as
    ``load_bbbp``, drop them before they split. The seed plays no part.
    """
    return _largest_first(_scaffolds_of(task), task.fractions)


@register_split(
    "partition",
    "scaffold/gem-chiral",
    "GEM's and Hu et al.'s scaffold split, exactly: DeepChem's with chiral scaffolds; forms of a molecule may leak",
    "Fang et al. 2022, Nat. Mach. Intell. 4:127; Hu et al. 2020, ICLR",
    reads=True,
    reproduces=True,
    asks="The rarest scaffolds, where another stereoisomer of a scaffold that trained counts as new.",
)
def split_like_gem(task: Task) -> Parts:
    """The sets of GEM's ``ScaffoldSplitter`` (PaddleHelix), which are those of Hu et al.'s ``scaffold_split``.

    DeepChem's rule, but scaffolds keep their stereo, so that stereoisomers fall into different ones; papers on
    pre-training report their numbers on it. Rows that cannot be read do not count: the loaders there drop them first.
    """
    return _largest_first(_scaffolds_of(task, chiral=True), task.fractions)


@register_split(
    "partition",
    "scaffold/chemprop",
    "chemprop 2's scaffold_balanced, exactly; forms of a molecule may leak",
    "Yang et al. 2019, J. Chem. Inf. Model. 59:3370",
    reads=True,
    reproduces=True,
    asks="New scaffolds at random, small ones first; other forms of a training molecule may be tested.",
)
def split_like_chemprop(task: Task) -> Parts:
    """The sets of chemprop 2.3.1's ``scaffold_balanced``, which astartes 1.3.3 makes: test is filled first.

    Scaffolds that fit into the smaller part are shuffled by the seed, larger ones follow from small to large; each
    goes to test where it fits, then to valid, else to train. All acyclic molecules are one scaffold there.
    """
    found = _scaffolds_of(task, unmap=True)
    rows, scaffold_of = found.rows, found.scaffold_of
    train, valid, test = task.fractions
    if train == 1.0:
        return Parts(rows, rows[:0], rows[:0], found.left_out)
    swapped = test == 0.0
    if swapped:
        valid, test = test, valid
    whole = train + test + valid
    if whole != 1.0:  # as there: valid keeps its fraction
        train, test = (train / whole, test / whole) if valid else (train / whole, 1.0 - train / whole)
    n_train, n_valid, n_test = (floor(len(rows) * f) for f in (train, valid, test))
    shuffled_up_to = min(n_test, n_valid) if valid else min(n_train, n_test)
    size_of = Counter(scaffold_of.tolist())
    by_size = sorted(size_of, key=lambda g: size_of[g])
    small = [g for g in by_size if size_of[g] <= shuffled_up_to]
    np.random.default_rng(seed=task.seed).shuffle(small)
    part_of = np.empty(len(size_of), dtype=np.int64)
    filled = [0, 0, 0]
    for g in [*small, *(g for g in by_size if size_of[g] > shuffled_up_to)]:
        room = [part for part, most in ((2, n_test), (1, n_valid)) if filled[part] + size_of[g] <= most]
        part_of[g] = room[0] if room else 0
        filled[part_of[g]] += size_of[g]
    if swapped:
        part_of = np.array([0, 2, 1])[part_of]
    return found.parts(part_of)


@register_split(
    "partition",
    "scaffold/chemprop1",
    "chemprop 1's and GROVER's scaffold_balanced, exactly; forms of a molecule may leak",
    "Yang et al. 2019, J. Chem. Inf. Model. 59:3370; Rong et al. 2020, NeurIPS",
    reads=True,
    reproduces=True,
    asks="New scaffolds at random, large series in train: closer to training than DeepChem's.",
)
def split_like_chemprop1(task: Task) -> Parts:
    """The sets of chemprop 1's and GROVER's ``scaffold_balanced``: large scaffolds first, train is filled first.

    Scaffolds of more rows than half of valid or of test come first, then the others, both shuffled by the seed;
    each goes to train where it fits, then to valid, else to test. Targets of the parts are fractions of a row there.
    """
    found = _scaffolds_of(task)
    n_train, n_valid, n_test = (f * len(found.rows) for f in task.fractions)
    return found.parts(_large_then_small(found.sizes, n_train, n_valid, n_test, task.seed))


@register_split(
    "partition",
    "scaffold/tdc",
    "the Therapeutics Data Commons' scaffold split, exactly; forms of a molecule may leak",
    "Huang et al. 2021, NeurIPS Datasets and Benchmarks",
    reads=True,
    reproduces=True,
    asks="New scaffolds at random, large series in train: closer to training than DeepChem's.",
)
def split_like_tdc(task: Task) -> Parts:
    """The sets of ``create_scaffold_split`` of the Therapeutics Data Commons: chemprop 1's rule with whole targets.

    The targets of train and valid are rounded down and test has the rest. Without a test fraction whatever does not
    fit into train is valid. Their leaderboards ask for 0.7, 0.1, 0.2.
    """
    found = _scaffolds_of(task)
    n = len(found.rows)
    n_train, n_valid = int(n * task.fractions[0]), int(n * task.fractions[1])
    part_of = _large_then_small(found.sizes, n_train, n_valid, n - n_train - n_valid, task.seed)
    return found.parts(np.minimum(part_of, 1) if task.fractions[2] == 0 else part_of)


def _scaffolds_of(task: Task, *, unmap: bool = False, chiral: bool = False) -> _Scaffolds:
    keys = scaffolds(task.table.smiles[task.rows], unmap=unmap, chiral=chiral)
    bad = np.array([bool(r) for r in keys.reasons], dtype=bool)
    left_out = {int(row): str(why) for row, why in zip(task.rows[bad], keys.reasons[bad], strict=True)}
    scaffold_of = number(keys.values[~bad])
    first = np.unique(scaffold_of, return_index=True)[1]
    sizes = np.bincount(scaffold_of, minlength=len(first))
    return _Scaffolds(task.rows[~bad], scaffold_of, sizes, first, left_out)


def _largest_first(found: _Scaffolds, fractions: tuple[float, float, float]) -> Parts:
    """Largest scaffold first, of equal ones that which begins later; cut off at shares of the rows that can be read."""
    n = len(found.rows)
    train_cutoff, valid_cutoff = fractions[0] * n, (fractions[0] + fractions[1]) * n
    part_of = np.empty(len(found.sizes), dtype=np.int64)
    filled = [0, 0, 0]
    for g in np.lexsort((found.first, found.sizes))[::-1]:
        size = int(found.sizes[g])
        if filled[0] + size <= train_cutoff:
            part = 0
        else:
            part = 2 if filled[0] + filled[1] + size > valid_cutoff else 1
        part_of[g] = part
        filled[part] += size
    return found.parts(part_of)


def _large_then_small(sizes: np.ndarray, n_train: float, n_valid: float, n_test: float, seed: int) -> np.ndarray:
    """The part of each scaffold, numbered in order of first appearance as their dictionaries are."""
    from random import Random

    large = sizes > min(n_valid, n_test) / 2
    order, shuffled = [], Random(seed)  # their generator, whose shuffles depend on how many there are and on the seed
    for chosen in (np.flatnonzero(large).tolist(), np.flatnonzero(~large).tolist()):
        shuffled.shuffle(chosen)
        order += chosen
    part_of = np.empty(len(sizes), dtype=np.int64)
    filled = [0, 0, 0]
    for g in order:
        size = int(sizes[g])
        part = 0 if filled[0] + size <= n_train else 1 if filled[1] + size <= n_valid else 2
        part_of[g] = part
        filled[part] += size
    return part_of

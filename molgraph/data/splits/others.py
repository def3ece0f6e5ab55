"""Exact reproductions of other people's scaffold splits, ``scaffold/deepchem`` and ``scaffold/chemprop``.

They do not group the forms of a molecule: what leaks from train into test is found, carried and printed.
"""

from __future__ import annotations

from collections import Counter
from math import floor

import numpy as np

from molgraph.chem.scaffold import scaffolds
from molgraph.data.splits.recipe import Parts, SplitRecipe, Task, add, number


def split_like_deepchem(task: Task) -> Parts:
    """The sets of DeepChem's ``ScaffoldSplitter`` (2.8.0): largest scaffolds first, cut off at the fractions.

    All acyclic molecules are one scaffold there. Rows that cannot be read are in no part, but count as rows when
    the fractions are taken, as they do there. The seed plays no part.
    """
    rows, scaffold_of, left_out = _scaffold_codes(task, unmap=False)
    first = np.unique(scaffold_of, return_index=True)[1]
    sizes = np.bincount(scaffold_of, minlength=len(first))
    n = len(task.table)
    train_cutoff, valid_cutoff = task.fractions[0] * n, (task.fractions[0] + task.fractions[1]) * n
    part_of = np.empty(len(sizes), dtype=np.int64)
    filled = [0, 0, 0]
    for g in np.lexsort((first, sizes))[::-1]:
        if filled[0] + sizes[g] <= train_cutoff:
            part = 0
        else:
            part = 2 if filled[0] + filled[1] + sizes[g] > valid_cutoff else 1
        part_of[g] = part
        filled[part] += int(sizes[g])
    return Parts.of(rows, part_of[scaffold_of], left_out)


def split_like_chemprop(task: Task) -> Parts:
    """The sets of chemprop 2.3.1's ``scaffold_balanced``, which astartes 1.3.3 makes: test is filled first.

    Scaffolds that fit into the smaller part are shuffled by the seed, larger ones follow from small to large; each
    goes to test where it fits, then to valid, else to train. All acyclic molecules are one scaffold there.
    """
    rows, scaffold_of, left_out = _scaffold_codes(task, unmap=True)
    train, valid, test = task.fractions
    if train == 1.0:
        return Parts(rows, rows[:0], rows[:0], left_out)
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
    return Parts.of(rows, part_of[scaffold_of], left_out)


def _scaffold_codes(task: Task, *, unmap: bool) -> tuple[np.ndarray, np.ndarray, dict[int, str]]:
    keys = scaffolds(task.table.smiles[task.rows], unmap=unmap)
    bad = np.array([bool(r) for r in keys.reasons], dtype=bool)
    left_out = {int(row): str(why) for row, why in zip(task.rows[bad], keys.reasons[bad], strict=True)}
    return task.rows[~bad], number(keys.values[~bad]), left_out


DEEPCHEM = add(
    SplitRecipe("scaffold/deepchem", partition=split_like_deepchem, announces_leaks=True),
    "DeepChem's ScaffoldSplitter, exactly; forms of a molecule may leak",
    "Wu et al. 2018, Chem. Sci. 9:513",
)
CHEMPROP = add(
    SplitRecipe("scaffold/chemprop", partition=split_like_chemprop, announces_leaks=True),
    "chemprop 2's scaffold_balanced, exactly; forms of a molecule may leak",
    "Yang et al. 2019, J. Chem. Inf. Model. 59:3370",
)

"""Reproduce the splits of other projects exactly, each under its owner's name.

They do not group the forms of a molecule: what leaks from train into test is found, carried and printed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from math import floor
from random import Random

import numpy as np

from molgraph.base.errors import BadValueError, MissingOptionError, UnknownNameError, nearest
from molgraph.chem.scaffold import scaffolds
from molgraph.data.splits.splitter import Grouping, SplitParts, Task, number, register_split
from molgraph.data.splits.structures import reasons_by_row

TEN = 10  # rows that DeepChem's stratified splitter deals at a time
_scaffold_splitter = partial(register_split, "partition", reads=True, reproduces=True)


def _group(task: Task, **options: bool) -> Grouping:
    """Rows that can be read by their scaffolds, as the owners write them."""
    keys = scaffolds(task.table.smiles[task.rows], **options)
    use = keys.reasons == ""
    return Grouping(task.rows[use], number(keys.values[use]), reasons_by_row(task.rows, keys.reasons))


def _fill(grouping: Grouping, order: Iterable[int], rule: Callable[[list[int], int], int]) -> SplitParts:
    """The parts, filled scaffold by scaffold; ``rule`` gives the part from the rows of each part and the scaffold's."""
    (sizes,), filled = grouping.sizes, [0, 0, 0]
    part_of = np.empty(len(sizes), dtype=np.int64)
    for scaffold in order:
        size = int(sizes[scaffold])
        part_of[scaffold] = part = rule(filled, size)
        filled[part] += size
    return grouping.parts(part_of[grouping.group_of])


def _first_with_room(rooms: Mapping[int, float], last: int) -> Callable[[list[int], int], int]:
    """The rule of the first part that a scaffold fits in, else ``last``."""
    return lambda filled, size: next((part for part, room in rooms.items() if filled[part] + size <= room), last)


@_scaffold_splitter(
    "scaffold/deepchem",
    "DeepChem's ScaffoldSplitter, exactly; forms of a molecule may leak",
    "Wu et al. 2018, Chem. Sci. 9:513",
    asks="The rarest scaffolds: common ones train, and most tested ones occur once. No seed: one split.",
)
def split_like_deepchem(task: Task, chiral: bool = False) -> SplitParts:
    """The sets of DeepChem's ``ScaffoldSplitter`` (2.8.0): largest scaffolds first, cut off at the fractions.

    Of scaffolds of one size that which begins later comes first. All acyclic molecules are one scaffold there. Rows
    that cannot be read do not count: the loaders there, such as ``load_bbbp``, drop them before they split. The seed
    plays no part.
    """
    groups = _group(task, chiral=chiral)
    n, (sizes,) = len(groups.rows), groups.sizes
    train, valid = task.fractions[0] * n, (task.fractions[0] + task.fractions[1]) * n

    def rule(filled: list[int], size: int) -> int:
        return 0 if filled[0] + size <= train else 2 if filled[0] + filled[1] + size > valid else 1

    return _fill(groups, np.lexsort((np.arange(len(sizes)), sizes))[::-1].tolist(), rule)


@_scaffold_splitter(
    "scaffold/gem-chiral",
    "GEM's and Hu et al.'s scaffold split, exactly: DeepChem's with chiral scaffolds; forms of a molecule may leak",
    "Fang et al. 2022, Nat. Mach. Intell. 4:127; Hu et al. 2020, ICLR",
    asks="The rarest scaffolds, where another stereoisomer of a scaffold that trained counts as new.",
)
def split_like_gem(task: Task) -> SplitParts:
    """The sets of GEM's ``ScaffoldSplitter`` (PaddleHelix), which are those of Hu et al.'s ``scaffold_split``.

    DeepChem's rule, but scaffolds keep their stereo, so that stereoisomers fall into different ones; papers on
    pre-training report their numbers on it. Rows that cannot be read do not count: the loaders there drop them first.
    """
    return split_like_deepchem(task, chiral=True)


@_scaffold_splitter(
    "scaffold/chemprop",
    "chemprop 2's scaffold_balanced, exactly; forms of a molecule may leak",
    "Yang et al. 2019, J. Chem. Inf. Model. 59:3370",
    asks="New scaffolds at random, small ones first; other forms of a training molecule may be tested.",
)
def split_like_chemprop(task: Task) -> SplitParts:
    """The sets of chemprop 2.3.1's ``scaffold_balanced``, which astartes 1.3.3 makes: test is filled first.

    Scaffolds that fit into the smaller part are shuffled by the seed, larger ones follow from small to large; each
    goes to test where it fits, then to valid, else to train. All acyclic molecules are one scaffold there.
    """
    groups = _group(task, unmap=True)
    train, valid, test = task.fractions
    first, second = 2, 1
    if test == 0.0:
        first, second, valid, test = 1, 2, test, valid
    whole = train + test + valid
    if whole != 1.0:  # as there: valid keeps its fraction
        train, test = (train / whole, test / whole) if valid else (train / whole, 1.0 - train / whole)
    n_train, n_valid, n_test = (floor(len(groups.rows) * f) for f in (train, valid, test))
    shuffled_up_to = min(n_test, n_valid) if valid else min(n_train, n_test)
    (sizes,) = groups.sizes
    by_size = np.argsort(sizes, kind="stable").tolist()
    n_small = (sizes <= shuffled_up_to).sum()
    small, large = by_size[:n_small], by_size[n_small:]
    np.random.default_rng(seed=task.seed).shuffle(small)
    rooms = {} if task.fractions[0] == 1.0 else {first: n_test, second: n_valid}
    return _fill(groups, [*small, *large], _first_with_room(rooms, last=0))


@_scaffold_splitter(
    "scaffold/chemprop1",
    "chemprop 1's and GROVER's scaffold_balanced, exactly; forms of a molecule may leak",
    "Yang et al. 2019, J. Chem. Inf. Model. 59:3370; Rong et al. 2020, NeurIPS",
    asks="New scaffolds at random, large series in train: closer to training than DeepChem's.",
)
def split_like_chemprop1(task: Task) -> SplitParts:
    """The sets of chemprop 1's and GROVER's ``scaffold_balanced``: large scaffolds first, train is filled first.

    Scaffolds of more rows than half of valid or of test come first, then the others, both shuffled by the seed;
    each goes to train where it fits, then to valid, else to test. Targets of the parts are fractions of a row there.
    """
    groups = _group(task)
    n_train, n_valid, n_test = (f * len(groups.rows) for f in task.fractions)
    return _large_then_small(groups, n_train, n_valid, n_test, task.seed)


@_scaffold_splitter(
    "scaffold/tdc",
    "the Therapeutics Data Commons' scaffold split, exactly; forms of a molecule may leak",
    "Huang et al. 2021, NeurIPS Datasets and Benchmarks",
    asks="New scaffolds at random, large series in train: closer to training than DeepChem's.",
)
def split_like_tdc(task: Task) -> SplitParts:
    """The sets of ``create_scaffold_split`` of the Therapeutics Data Commons: chemprop 1's rule with whole targets.

    The targets of train and valid are rounded down and test has the rest. Without a test fraction whatever does not
    fit into train is valid. Their leaderboards ask for 0.7, 0.1, 0.2.
    """
    groups = _group(task)
    n = len(groups.rows)
    n_train, n_valid = int(n * task.fractions[0]), int(n * task.fractions[1])
    last = 1 if task.fractions[2] == 0 else 2
    return _large_then_small(groups, n_train, n_valid, n - n_train - n_valid, task.seed, last)


def _large_then_small(
    groups: Grouping, n_train: float, n_valid: float, n_test: float, seed: int, last: int = 2
) -> SplitParts:
    """Scaffolds of more rows than half a part, then the others, each shuffled; what does not fit goes to ``last``."""
    large = groups.sizes[0] > min(n_valid, n_test) / 2
    order, shuffled = [], Random(seed)  # their generator, whose shuffles depend on how many there are and on the seed
    for chosen in (np.flatnonzero(large).tolist(), np.flatnonzero(~large).tolist()):
        shuffled.shuffle(chosen)
        order += chosen
    return _fill(groups, order, _first_with_room({0: n_train, 1: n_valid}, last))


@register_split(
    "partition",
    "stratified/deepchem",
    "DeepChem's SingletaskStratifiedSplitter, exactly: all parts have the same range of values",
    "Wu et al. 2018, Chem. Sci. 9:513",
    reproduces=True,
    params={"target": None},
    asks="Molecules between those that trained: every range of values trains and is tested in the same shares.",
)
def split_by_value(task: Task) -> SplitParts:
    """The sets of DeepChem's ``SingletaskStratifiedSplitter`` (Wu et al. 2018, Chem. Sci. 9:513), for the same seed.

    Rows are sorted by one target; of every ten in that order 8, 1 and 1 (or what the fractions say) are drawn for
    train, valid and test. Rows over at the upper end, fewer than ten, are in no part, as there. DeepChem's QM7 and
    QM7b sort by the first target, which is the default of ``target`` here.
    """
    tenths = np.rint(TEN * np.array(task.fractions)).astype(int)
    if not np.allclose(TEN * np.array(task.fractions), tenths, rtol=0, atol=1e-6):
        message = f"'stratified/deepchem' deals ten rows at a time, and {list(task.fractions)} are no tenths"
        raise BadValueError(message, hint="give tenths, such as 0.8, 0.1, 0.1")
    names = [t.name for t in task.table.row_targets]
    if not names or task.table.y is None:
        hint = "name one: --target COLUMN, targets=[COLUMN]"
        raise MissingOptionError("'stratified/deepchem' needs a target to sort by", hint=hint)
    target = task.params["target"] or names[0]
    if target not in names:
        raise UnknownNameError(f"the table has no target {target!r}", hint=nearest(str(target), names))
    y = task.table.y[task.rows, names.index(target)]
    left_out = {int(row): f"no value of {target}" for row in task.rows[np.isnan(y)]}
    rows = task.rows[~np.isnan(y)]
    rows = rows[np.argsort(y[~np.isnan(y)])]
    dealt = len(rows) - len(rows) % TEN
    left_out |= {int(row): "among the last rows by value, fewer than ten" for row in rows[dealt:]}
    draw = np.random.RandomState(task.seed)  # their generator, which their rows depend on
    part_of = np.empty(dealt, dtype=np.int64)
    for ten in part_of.reshape(-1, TEN):
        ten[draw.permutation(TEN)] = np.repeat([0, 1, 2], tenths)
    return SplitParts.of(rows[:dealt], part_of, left_out)

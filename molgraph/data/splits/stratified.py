"""The recipe ``stratified/deepchem``: every ten rows that follow one another by a value give each part its share."""

from __future__ import annotations

import numpy as np

from molgraph.base.errors import UsageError, nearest
from molgraph.data.splits.recipe import Parts, Task, register_split

_TEN = 10


@register_split(
    "partition",
    "stratified/deepchem",
    "DeepChem's SingletaskStratifiedSplitter, exactly: all parts have the same range of values",
    "Wu et al. 2018, Chem. Sci. 9:513",
    reproduces=True,
    params={"target": None},
    asks="Molecules between those that trained: every range of values trains and is tested in the same shares.",
)
def split_by_value(task: Task) -> Parts:
    """The sets of DeepChem's ``SingletaskStratifiedSplitter`` (Wu et al. 2018, Chem. Sci. 9:513), for the same seed.

    Rows are sorted by one target; of every ten in that order 8, 1 and 1 (or what the fractions say) are drawn for
    train, valid and test. Rows over at the upper end, fewer than ten, are in no part, as there. DeepChem's QM7 and
    QM7b sort by the first target, which is the default of ``target`` here.
    """
    tenths = [round(_TEN * share) for share in task.fractions]
    if any(abs(_TEN * share - n) > 1e-6 for share, n in zip(task.fractions, tenths, strict=True)):
        raise UsageError(
            f"'stratified/deepchem' deals ten rows at a time, and {list(task.fractions)} are no tenths",
            hint="give tenths, such as 0.8, 0.1, 0.1",
        )
    names = [t.name for t in task.table.row_targets]
    if not names or task.table.y is None:
        raise UsageError(
            "'stratified/deepchem' needs a target to sort by", hint="name one: --target COLUMN, targets=[COLUMN]"
        )
    target = task.params["target"] or names[0]
    if target not in names:
        raise UsageError(f"the table has no target {target!r}", hint=nearest(str(target), names))
    y = task.table.y[task.rows, names.index(target)]
    rows, y = task.rows[~np.isnan(y)], y[~np.isnan(y)]
    left_out = {int(row): f"no value of {target}" for row in np.setdiff1d(task.rows, rows)}
    order = np.argsort(y)
    dealt = len(rows) - len(rows) % _TEN
    left_out |= {int(row): "among the last rows by value, fewer than ten" for row in rows[order[dealt:]]}
    # Their generator, which their rows depend on.
    draw = np.random.RandomState(task.seed)
    part_of = np.full(len(rows), -1)
    for ten in order[:dealt].reshape(-1, _TEN):
        part_of[ten[draw.permutation(_TEN)]] = np.repeat([0, 1, 2], tenths)
    use = part_of >= 0
    return Parts.of(rows[use], part_of[use], left_out)

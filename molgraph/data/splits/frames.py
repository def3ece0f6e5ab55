"""Split the frames of trajectories at random, one by one or in blocks of consecutive ones."""

from __future__ import annotations

import numpy as np

from molgraph.base.errors import BadValueError
from molgraph.data.splits.splitter import Grouping, Task, register_split


@register_split(
    "group",
    "frames",
    "rows at random, in blocks of consecutive ones, whatever molecule they are",
    params={"block": 1},
    asks="New frames of molecules that training knows: another conformation, not another molecule.",
)
def group_by_frames(task: Task) -> Grouping:
    """Group rows into blocks of consecutive rows.

    The split of energies with forces, whose rows are frames of a few molecules. Frames that follow each other are much
    alike, so that single ones (``block=1``, usual for MD17) are easier to predict than whole blocks.

    Settings: ``block``, rows of a block.
    """
    block = int(task.params["block"])
    if block < 1:
        raise BadValueError(f"block is {block}", hint="give 1 or more rows, such as 50")
    return Grouping(task.rows, np.arange(len(task.rows)) // block)

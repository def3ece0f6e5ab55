"""Draw the batches of an objective: few-shot episodes, groups of related rows, or rows as often as it asks for."""

from __future__ import annotations

import logging

import numpy as np

from molgraph.train.episodes import EpisodeSampler
from molgraph.train.objective import Objective
from molgraph.train.row_groups import RowGroups
from molgraph.train.samples import Sample, Samples

logger = logging.getLogger("molgraph")
VALID_BATCH = 512
Sampler = EpisodeSampler | RowGroups | None


def samplers(
    objective: Objective, train: Samples, valid: Samples | None, batch_size: int
) -> tuple[Sampler, Sampler, Samples | None]:
    """What draws the batches of training and of validation, None for rows as they come; and the rows to judge by.

    A validation part without rows that belong together judges nothing.
    """
    if (asked := objective.episodes) is not None:
        judged = None if valid is None else EpisodeSampler(valid, asked._replace(queries=VALID_BATCH))
        return EpisodeSampler(train, asked), judged, valid
    drawn = objective.sampler(train, batch_size)
    held = None if valid is None else objective.sampler(valid, batch_size, judged=True)
    if isinstance(held, RowGroups) and not held.count:
        logger.info("the validation part has no rows that belong together, and judges nothing")
        return drawn, None, None
    return drawn, held, valid


def rows_as_asked(
    objective: Objective,
    samples: Samples,
    rows: np.ndarray,
    views: np.random.Generator | None,
    bare: np.ndarray | None = None,
) -> Sample:
    """The batch of some rows with the copies that an objective asks for.

    Args:
        objective: which says how many ``copies`` it compares, and of which rows it has a ``plain`` one as well.
        samples: of which rows are taken.
        rows: int64 [n].
        views: random numbers of the views; None where there are none.
        bare: int64 [m], rows without labels, which follow; None where a validation part is judged: each row then
            comes once where the objective is judged by labels alone.
    """
    all_rows = rows if bare is None else np.concatenate([rows, bare])
    once = bare is None and objective.semi_supervised
    sample = samples.sample(all_rows if once else np.tile(all_rows, objective.copies), views)
    if objective.plain != "none":
        sample.plain = samples.sample(rows if objective.plain == "labelled" else all_rows)
    return sample

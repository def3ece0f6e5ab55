"""Choose the batch sampler of an objective: few-shot episodes, groups of related rows, or none for plain batches."""

from __future__ import annotations

import logging

from molgraph.train.episodes import EpisodeSampler
from molgraph.train.objective import Objective
from molgraph.train.row_groups import RowGroups
from molgraph.train.samples import Samples

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

"""Train a model that starts from a pretrained encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from molgraph.api.training import train
from molgraph.base.options import takes
from molgraph.base.recipe_keys import FINETUNE_KEYWORDS
from molgraph.run.result import TrainingResult


@takes({name: each for name, each in FINETUNE_KEYWORDS.items() if name != "test"})
def finetune(encoder: str | Path, data: Any = None, **options: Any) -> TrainingResult:
    """Train a model that starts from the weights of a pretrained encoder: ``train(data, init=encoder, ...)``.

    The head learns alone first, then all weights (``callback="lp-ft"``); ``"none"`` trains all at once. The result
    says whether that paid, beside a forest and, of fewer than 2,000 rows, the same model from scratch.

    Args:
        encoder: the file of a pretrained encoder, or of a graph model; it says the model and its parameters.
        data: what ``train`` takes.
        **options

    Returns:
        The trained model with its scores, baseline, split and report.

    Raises:
        DataError: the table cannot be used as asked. UsageError: a name or value that is not known.
    """
    return train(data, init=str(encoder), **options)

"""Choose the metrics that lead the board of each dataset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pandas as pd

PLACE = ["dataset", "edition", "split"]


def leading_metrics(
    scores: pd.DataFrame, asked: Mapping[str, str | Sequence[str]] | None = None
) -> dict[tuple[str, str, str], tuple[str, ...]]:
    """One metric for each kind of target: numbers and classes of one dataset have a board each that leads.

    Args:
        scores: the frame of ``score_records``, where the metric that leads a target stands first.
        asked: dataset -> the metric, or metrics, that shall lead; a target that none of them judges keeps its first.

    Returns:
        (dataset, edition, split) -> metrics, in the order of the frame's targets.

    Example:
        >>> rows = [("d", "raw", "s", "y", "rmse"), ("d", "raw", "s", "y", "mae"), ("d", "raw", "s", "k", "roc_auc")]
        >>> frame = pd.DataFrame(rows, columns=["dataset", "edition", "split", "target", "metric"])
        >>> leading_metrics(frame), leading_metrics(frame, {"d": "mae"})
        ({('d', 'raw', 's'): ('rmse', 'roc_auc')}, {('d', 'raw', 's'): ('mae', 'roc_auc')})
    """
    known = scores[[*PLACE, "target", "metric"]].drop_duplicates()
    found: dict[tuple[str, str, str], list[str]] = {}
    for (dataset, edition, split, _), part in known.groupby([*PLACE, "target"], sort=False):
        wanted, metrics = (asked or {}).get(str(dataset), ()), part["metric"].tolist()
        wanted = [wanted] if isinstance(wanted, str) else wanted
        chosen = next((name for name in wanted if name in metrics), metrics[0])
        place = found.setdefault((str(dataset), str(edition), str(split)), [])
        place += [] if chosen in place else [chosen]
    return {place: tuple(metrics) for place, metrics in found.items()}

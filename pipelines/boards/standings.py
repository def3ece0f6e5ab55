"""Make the standings that ship with molgraph: the rank of each method on every leaderboard, as one table."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

import numpy as np
import pandas as pd

from molgraph.base.recipe_keys import USUAL_MODEL
from molgraph.base.toml_config import toml_value
from molgraph.evaluate.benchmark.recipe import BenchMethod
from molgraph.evaluate.benchmark.report_data import BenchReport


def make_standings(reports: Iterable[BenchReport]) -> pd.DataFrame:
    """A row for each method of each leading board with more than one fold, submitted predictions aside.

    Returns:
        Columns: recipe, dataset, entity, split, metric, higher_is_better, rows, method, rank, leads, place, score,
        percent (of the reference's error), against (the verdict beside the reference), reference, cpu_seconds (of a
        fold), model (the registered name) and settings (options of ``molgraph train``).
    """
    rows = []
    for report in reports:
        for board in (b for b in report.boards if b.primary and b.tested and b.ranking.n_folds > 1):
            frame, entity = board.to_frame(), "molecule" if board.card is None else board.card.entity
            error = 1 - frame["mean"] if board.ranking.higher_is_better else frame["mean"]
            for place, (method, row) in enumerate(frame.loc[board.ranking.ranked].iterrows(), 1):
                if method in board.entered:
                    continue
                known = [m for m in (report.recipe.method if report.recipe else ()) if m.row == method]
                rows.append({
                    "recipe": report.recipe_name, "dataset": board.name, "entity": entity, "split": board.split,
                    "metric": board.metric, "higher_is_better": board.ranking.higher_is_better, "rows": board.rows.rows,
                    "method": method, "rank": int(row["rank"]), "leads": row["leads"],
                    "place": place, "score": float(f"{row['mean']:.4g}"),
                    "percent": float(f"{100 * error[method] / error.get(board.reference, np.nan):.4g}"),
                    "against": row["reference"], "reference": board.against if board.reference else "",
                    "cpu_seconds": float(f"{60 * row['cpu_minutes']:.3g}"),
                    "model": known[0].name if known else method, "settings": settings_of(known[0]) if known else "",
                })  # fmt: skip
    return pd.DataFrame(rows)


def settings_of(method: BenchMethod) -> str:
    """The parameters of a recipe's method as options of ``molgraph train``.

    Example:
        >>> settings_of(BenchMethod(name="pyg_pool", label="diffpool", params={"pool": "diffpool", "k": 32}))
        '-s params.pool=diffpool -s params.k=32'
    """
    params = {**({"descriptors": "none"} if method.name == USUAL_MODEL else {}), **method.params}
    plain = {name: value if isinstance(value, str) else toml_value(value) for name, value in params.items()}
    searched = f"# parameters: the best of {method.search.trials} trials of bench run" if method.search else ""
    return " ".join([*(f"-s params.{name}={shlex.quote(value)}" for name, value in plain.items()), searched]).rstrip()

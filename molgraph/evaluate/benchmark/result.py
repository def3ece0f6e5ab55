"""Load the results of a benchmark: scores, manifests and a summary as frames."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path

import pandas as pd

from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.report_data import gather
from molgraph.evaluate.benchmark.run import Ran
from molgraph.evaluate.benchmark.run_folder import Records, read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.benchmark.verify import Verified, verify_records


@dataclass(frozen=True)
class BenchmarkResult:
    """A benchmark that was run."""

    ran: Ran  # what the run did: cells that were there, made, failed

    @property
    def out(self) -> Path:
        """The folder that holds everything."""
        return self.ran.out

    @cached_property
    def records(self) -> Records:
        """Manifests and predictions of the cells."""
        return read_records(self.out)

    @cached_property
    def scores(self) -> pd.DataFrame:
        """A row for each cell, target and metric, from the stored predictions."""
        return score_records(self.records)

    @property
    def cells(self) -> pd.DataFrame:
        """A row for each cell: status, seconds, memory, versions."""
        return self.records.frame

    @property
    def summary(self) -> pd.DataFrame:
        """Mean of the leading metric over cells and targets: a row a dataset and split, a column a method.

        A method that lacks a score which another has, as one of its cells failed, has none here: the mean over other
        folds is no match. For a first look; ``molgraph bench report`` says what can be told apart.
        """
        scores = self.scores
        if not len(scores):
            return pd.DataFrame()
        leading = scores.groupby(["dataset", "split", "target"], sort=False)["metric"].transform("first")
        rows = scores[scores["metric"] == leading]
        name = rows["dataset"] + " " + rows["split"] + " " + rows["metric"].replace("", "(refused)")
        stats = rows.assign(board=name).groupby(["board", "method"], sort=False)["value"].agg(["mean", "count"])
        whole = stats["count"] == stats.groupby("board", sort=False)["count"].transform("max")
        means = stats["mean"].where(whole).unstack("method")
        wanted = [m.row for m in self.ran.recipe.method if m.row in means.columns]
        return means.loc[name.unique(), wanted].rename_axis(index=None, columns=None)

    @cached_property
    def boards(self) -> list[Board]:
        """Ranked boards, one a dataset, split and metric; each has ``to_frame`` and says who can be told from whom."""
        return list(gather(self.records, self.scores, slices=False).boards)

    def report(self, out: str | Path, leaderboard: str | Path | None = None) -> Path:
        """Write the page that ``molgraph bench report`` writes, and the leaderboard where it is named."""
        from molgraph.evaluate.benchmark.report import write_bench_report  # with matplotlib, which few runs need

        write_bench_report(self.records, out, leaderboard)
        return Path(out)

    def verify(self) -> Verified:
        """Hash and score everything once more."""
        return verify_records(self.out)

    def __repr__(self) -> str:
        shown = self.summary.to_string(float_format="{:.3f}".format, na_rep="-")
        return "\n".join([f"BenchmarkResult({self.records!r})", *self.records.refusals, shown])

    def _repr_html_(self) -> str:
        about = "<br>".join(map(escape, [repr(self.records), *self.records.refusals]))
        return f"<p>{about}</p>{self.summary.to_html(float_format='{:.3f}'.format, na_rep='-', border=0)}"

"""``molgraph bench audit``: whether one split of a run ranks methods as another does."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from molgraph.cli.options import argument, check_writable, option, out_option


def audit(
    folder: Annotated[Path, argument("What `molgraph bench run` filled, or a record of it.")],
    truth: Annotated[str, option("SPLIT", "The split whose order is wanted; the last of the run if not given.")] = "",
    out: Annotated[Path | None, out_option("The table (.csv).")] = None,
) -> None:
    """Say how often a split ranks two methods in the other order than another split.

    Of each dataset, all pairs of methods are compared by their mean scores on
    a split, such as a random one, and on the split whose order is wanted, such
    as new scaffolds. A pair that is ordered otherwise counts 1, and as much as
    its true order is sure over the folds (Dziugaite et al. 2020). 0 is the same
    order, 0.5 that of chance. The worst dataset stands beside the mean.

    Examples:
        molgraph bench audit bench/mine --truth scaffold/balanced
        molgraph bench audit bench/mine -o audit.csv
    """
    check_writable(out, inputs=[str(folder)])
    from molgraph.base.csv_text import write_csv
    from molgraph.cli.show import say, steps, table
    from molgraph.evaluate.benchmark.audit import audit_scores, recorded_scores

    with steps():
        found = audit_scores(recorded_scores(folder), truth)
    if out is not None:
        write_csv(out, found)
    table(found)
    for row in found[found["dataset"] == "mean"].itertuples():
        worst = found[(found["criterion"] == row.criterion) & (found["dataset"] == "worst")]["sign_error"].item()
        say(f"{row.criterion} orders {row.sign_error:.0%} of the pairs otherwise than {row.truth}, {worst:.0%} in the "
            f"worst dataset ({row.pairs} pairs; 50% is chance)", "bold")  # fmt: skip
    if out is not None:
        say(f"written to {out}", err=True)

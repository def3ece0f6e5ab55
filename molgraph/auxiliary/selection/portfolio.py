"""List the candidate methods that ``--model auto`` cross-validates on a table, the quick ones first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from molgraph.base.optional import missing
from molgraph.data.table import Table
from molgraph.train.make_method import make_method
from molgraph.train.method import GraphMethod

ENCODER = "encoder-descriptors"  # ships with molgraph
SMALL = "iterations=500, column_share=0.2, borders=32"  # of MapLight: about its error in a fraction of the time
FINETUNED = "lp-ft(share=0.05, probe=ridge, mix=0.5)"  # as `finetune` does
COMPARED, KERNEL = 2_000, 5_000  # rows: a kernel of more takes longer than boosted trees


@dataclass(frozen=True)
class Candidate:
    """A method that is tried.

    Args:
        name: under which it is listed.
        spec: the method with its settings, as ``--model`` takes it.
        most: rows above which it is not tried.
        package: one whose published weights it reads; not tried where it is not installed.
    """

    name: str
    spec: str
    most: int | None = None
    package: str = ""

    @property
    def network(self) -> bool:
        """Whether it is trained by gradient descent, so that its epochs fit the time."""
        return isinstance(make_method(self.spec), GraphMethod)

    @property
    def learns_limits(self) -> bool:
        """Whether it learns labels that are limits, such as >8; a network does by the objective ``tobit``."""
        return self.network or all(part.learns_limits for part in make_method(self.spec).innermost)


PORTFOLIO = (
    Candidate("linear", "linear(features=morgan-counts)"),
    Candidate("linear+encoder", f"linear(features=vectors, descriptors={ENCODER})"),
    Candidate("linear+minimol", "linear(features=vectors, descriptors=minimol)", package="minimol"),
    Candidate("xgboost", "xgboost"),
    Candidate("gp", "gp", COMPARED),
    Candidate("maplight", f"maplight({SMALL})"),
    Candidate("dmpnn", "dmpnn(descriptors=rdkit)"),
    Candidate("svm", "svm", KERNEL),
    Candidate("maplight+encoder", f"maplight({SMALL}, descriptors={ENCODER})"),
    Candidate("maplight+minimol", f"maplight({SMALL}, descriptors=minimol)", package="minimol"),
    Candidate("random_forest", "random_forest"),
    Candidate("dmpnn+encoder", f"dmpnn(init={ENCODER}, callback='{FINETUNED}', head_layers=1)"),
)


def candidates_for(table: Table, names: Sequence[str] | None = None) -> tuple[list[Candidate], dict[str, str]]:
    """The methods to try, and why the others of the portfolio are not.

    Args:
        table: the rows to learn from.
        names: of the portfolio, or other models with their settings, such as ``gin(depth=3)``; None for all of it.
    """
    known = {entry.name: entry for entry in PORTFOLIO}
    chosen, left = [], {}
    for name in dict.fromkeys(known if names is None else names):
        candidate = known.get(name, Candidate(name, name))
        if lacking := missing([*make_method(candidate.spec).needs, *filter(None, [candidate.package])]):
            left[name] = f"needs {', '.join(lacking)}"
        elif names is None and candidate.most is not None and len(table) > candidate.most:
            left[name] = f"more than {candidate.most:,} rows"
        else:
            chosen.append(candidate)
    return chosen, left

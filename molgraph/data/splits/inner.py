"""Split training rows again as the outer split divided them, for early stopping and for searches."""

from __future__ import annotations

from molgraph.base.errors import MolgraphError
from molgraph.base.registry import get
from molgraph.base.seeds import derive
from molgraph.data.splits import Split, kfold, split_table
from molgraph.data.splits.splitter import Splitter
from molgraph.data.table import Table

SCAFFOLDS = "scaffold/balanced"  # follows the scaffold splits of others, which make their parts themselves
RANDOM = "random"
STOPPING_SHARE = 0.1  # of the training rows, for methods that stop early by them


def inner_splitter(outer: Split) -> str:
    """The splitter of the inner splits: the outer one where it groups rows, else its setting ``inner`` or ``random``.

    A method that is tested on new scaffolds and stops, or is tuned, by known ones is tuned for another question.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCCO", "c1ccccc1", "C1CCCCC1", "C1CC1", "CN"])
        >>> inner_splitter(split_table(table, "cluster/butina", fractions=(0.5, 0.0, 0.5)))
        'cluster/butina'
    """
    if outer.splitter.startswith("scaffold/"):
        return SCAFFOLDS
    if "inner" in outer.params:
        return str(outer.params["inner"])
    splitter: Splitter = get("split", outer.splitter)
    return RANDOM if splitter.group is None or "column" in splitter.params else outer.splitter


def inner_splits(
    train: Table, outer: Split, seed: int, *, share: float | None = None, folds: int | None = None, part: str = "test"
) -> list[Split]:
    """Splits of the training rows by ``inner_splitter``; random ones where that cannot divide them.

    Args:
        train: the training rows.
        outer: the split that they are the training part of.
        seed: what shuffling begins from.
        share: of the rows, for one split.
        folds: in place of a share.
        part: the part that gets the share, ``valid`` or ``test``.

    Raises:
        DataError: too few rows.
    """
    name = inner_splitter(outer)
    settings = {key: value for key, value in outer.params.items() if key in get("split", name).params}
    for splitter, params in ((name, settings), (RANDOM, {})):
        try:
            if share is None:
                return kfold(train, folds or 2, splitter, seed, with_valid=False, **params)
            fractions = (1 - share, share, 0.0) if part == "valid" else (1 - share, 0.0, share)
            return [split_table(train, splitter, fractions=fractions, seed=seed, quiet=True, **params)]
        except MolgraphError:  # fewer scaffolds than parts
            if splitter == RANDOM:
                raise
    raise AssertionError("one of both returns or raises")


def stopping_rows(train: Table, outer: Split, seed: int) -> tuple[Table, Table]:
    """A tenth of the training rows to stop early by, divided off as ``outer`` divided the table; the others first."""
    (cut,) = inner_splits(train, outer, derive(seed, "valid") % 2**32, share=STOPPING_SHARE, part="valid")
    return train.take(cut.train), train.take(cut.valid)

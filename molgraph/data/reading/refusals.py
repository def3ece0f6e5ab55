"""Word the error for cells of values that another way of reading their column would read."""

from __future__ import annotations

from collections.abc import Sequence

from molgraph.base.errors import CellError
from molgraph.data.reading import cells
from molgraph.data.reading.cells import OddCell

_WAYS = "in train, evaluate and data curate (benchmarks read its table); molgraph data audit lists such cells"


def refusal(name: str, these: Sequence[OddCell], odd: Sequence[OddCell], counts: str, unit: str) -> CellError:
    """The error for the first of some odd cells, all of which another way of reading would read.

    Args:
        name: the column.
        these: the cells that a way of reading decides about.
        odd: all odd cells of the column.
        counts: how many cells have each unit, in words, or empty.
        unit: the commonest unit that values can be brought to, or empty.
    """
    first, n = these[0], sum(cell.kind == these[0].kind for cell in these)
    many = f" ({n:,} such cells)" if n > 1 else ""
    where = f"column {name!r} holds {first.text[:60]!r} in row {first.row + 1}"
    if first.kind == cells.SIGNS:
        words = f"{where}: a decimal comma beside points, or one of them parts thousands{many}"
        return CellError(words, hint="write all decimals with a point, or all with a comma")
    if first.kind == cells.COMMA:
        doubt = ", or one of thousands" * any(cells.read_cell(c.text).comma == cells.THOUSANDS for c in odd)
        hint = f"write decimals with a point, or say --decimal , (in Python decimal=',') {_WAYS}"
        return CellError(f"{where}: a decimal comma{doubt}{many}", hint=hint)
    if first.kind == cells.QUALIFIER:
        hint = "--qualifiers drop (in Python and a benchmark's [[table]] qualifiers='drop') leaves such labels out"
        hint += f", strip reads the bare number as exact, learn (train, evaluate) takes it as a limit, {_WAYS}"
        return CellError(f"{where}: a bound, no measured value{many}", hint=hint)
    way = f"--unit {unit} brings all values to {unit}, {_WAYS}" if unit else ""
    return CellError(f"{where}: a number with a unit{counts}", hint=way or "write numbers alone")

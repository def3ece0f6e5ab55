"""Word the error for cells of values that another way of reading their column would read."""

from __future__ import annotations

from collections.abc import Sequence

from molgraph.base.errors import CellError
from molgraph.data.reading import cells
from molgraph.data.reading.cells import OddCell

_VERBS = "in train, evaluate and data curate (benchmarks read its table); molgraph data audit lists such cells"


def refusal(name: str, odd: Sequence[OddCell], counts: str, unit: str) -> CellError:
    """The error for the first of some odd cells that another way of reading would read.

    Args:
        name: the column.
        odd: all odd cells of the column.
        counts: how many cells have each unit, in words, or empty.
        unit: the commonest unit that values can be brought to, or empty.
    """
    first = next(cell for cell in odd if cell.kind in cells.DECIDED)
    n = sum(cell.kind == first.kind for cell in odd)
    many = f" ({n:,} such cells)" if n > 1 else ""
    where = f"column {name!r} holds {first.text[:60]!r} in row {first.row + 1}"
    if first.kind == cells.SIGNS:
        words = f"{where}: a decimal comma beside points, or one of them parts thousands{many}"
        return CellError(words, hint="write all decimals with a point, or all with a comma")
    if first.kind == cells.COMMA:
        thousands = any(cells.read_cell(cell.text).comma == cells.THOUSANDS for cell in odd)
        doubt = ", or one of thousands" if thousands else ""
        hint = f"write decimals with a point, or say --decimal , (in Python decimal=',') {_VERBS}"
        return CellError(f"{where}: a decimal comma{doubt}{many}", hint=hint)
    if first.kind == cells.QUALIFIER:
        hint = "--qualifiers drop (in Python and a benchmark's [[table]] qualifiers='drop') leaves such labels out"
        hint += f", strip reads the bare number as exact, learn (train, evaluate) takes it as a limit, {_VERBS}"
        return CellError(f"{where}: a bound, no measured value{many}", hint=hint)
    hint = f"--unit {unit} brings all values to {unit}, {_VERBS}" if unit else "write numbers alone"
    return CellError(f"{where}: a number with a unit{counts}", hint=hint)

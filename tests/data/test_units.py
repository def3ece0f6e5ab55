"""Units of ADME assays are brought to one, in cells and in a column beside."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.base.table import Table
from molgraph.data.read import read_table


def read(values: list[str], beside: dict[str, list[str]] | None = None, **options: object) -> Table:
    """A table of those values."""
    return read_table({"smiles": ["C"] * len(values), "y": values, **(beside or {})}, targets=["y"], **options)


@pytest.mark.parametrize(
    ("cells", "unit", "expected"),
    [
        (["12 mL/min/kg", "0.6 L/h/kg"], "mL/min/kg", [12, 10]),
        (["45 µL/min/mg", "3 ul/min/mg protein", "0.2 mL/min/mg"], "uL/min/mg", [45, 3, 200]),
        (["12 uL/min/10^6 cells", "5 µL/min/million cells"], "uL/min/1e6 cells", [12, 5]),
        (["20 nm/s", "5 x 10-6 cm/s", "5 10^-6 cm/s", "5e-6 cm/s", "1 1e-6 cm/s"], "1e-6 cm/s", [2, 5, 5, 5, 1]),
        (["98.5 %", "0.5 fraction"], "fraction", [0.985, 0.5]),
        (["1.5 h", "30 min", "90 s", "2 hours"], "min", [90, 30, 1.5, 120]),
        (["2 uL/min/mg", "3 uL/min/1e6 cells", "4"], "uL/min/mg", [2, np.nan, np.nan]),
    ],
)
def test_units_of_adme_are_brought_to_one(cells: list[str], unit: str, expected: list[float]) -> None:
    assert np.allclose(read(cells, unit=unit).y[:, 0], expected, rtol=1e-12, equal_nan=True)
    logs = read_table({"smiles": ["C"] * len(cells), "y": cells}, targets=["y"], unit=unit, log=True)
    assert np.allclose(10 ** logs.y[:, 0], expected, equal_nan=True) and logs.units == {"log10_y": f"log10({unit})"}
    numbers, words = zip(*(cell.partition(" ")[::2] for cell in cells), strict=True)
    if all(words):  # a unit without blanks before it, in a column beside
        table = read([*numbers], beside={"y_units": [*words]}, unit=unit)
        assert np.allclose(table.y[:, 0], expected, equal_nan=True)

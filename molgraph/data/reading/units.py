"""List the units that values can be brought to each other in, and write a unit in the way that the list has it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from molgraph.base.errors import MismatchError

_PREFIXES = {"": 0, "m": -3, "u": -6, "n": -9, "p": -12, "f": -15}
_MASSES = {"g/L": 0, "mg/mL": 0, "mg/L": -3, "ug/mL": -3, "ug/L": -6, "ng/mL": -6}
#: The quantity, and how many of its base unit: a power of ten, times a whole number. Clearance by body mass, by protein
#: and by cells are three quantities: scaling one to another takes numbers of an organ that no table holds.
UNITS: dict[str, tuple[str, int, int]] = {
    **{f"{prefix}M": ("molar", power, 1) for prefix, power in _PREFIXES.items()},
    **{f"{prefix}mol/L": ("molar", power, 1) for prefix, power in _PREFIXES.items() if prefix != "f"},
    **{unit: ("mass", power, 1) for unit, power in _MASSES.items()},
    "mL/min/kg": ("clearance by body mass", 1, 6),
    "mL/h/kg": ("clearance by body mass", 0, 1),
    "L/h/kg": ("clearance by body mass", 3, 1),
    "uL/min/mg": ("clearance by protein", 0, 1),
    "mL/min/g": ("clearance by protein", 0, 1),
    "mL/min/mg": ("clearance by protein", 3, 1),
    "uL/min/1e6 cells": ("clearance by cells", 0, 1),
    "mL/min/1e6 cells": ("clearance by cells", 3, 1),
    "nm/s": ("permeability", 0, 1),
    "um/s": ("permeability", 3, 1),
    "1e-6 cm/s": ("permeability", 1, 1),
    "cm/s": ("permeability", 7, 1),
    "%": ("share", -2, 1),
    "fraction": ("share", 0, 1),
    "s": ("time", 0, 1),
    "min": ("time", 1, 6),
    "h": ("time", 2, 36),
}
#: how a cell may write what the list has in another way, in small letters
MILLIONTHS = r"(?:[x*·]\s*)?(?:1\.?0*e|10\s*\^?|10e)-0?6\s*cm/s(?:ec)?"
_WAYS = (
    (rf"^{MILLIONTHS}$", "1e-6 cm/s"),
    (r"^([um]l/min)/(?:1e\+?0?6|10\s*\^?6|10e6|million|mio\.?)\s*(?:cells?|hepatocytes)$", r"\1/1e6 cells"),
    (r"^([um]l/min)/mg\s+(?:of\s+)?(?:microsomal\s+)?protein$", r"\1/mg"),
    (r"^(?:percent|pct)$", "%"),
    (r"^(?:hr|hrs|hours?)$", "h"),
    (r"^(?:mins|minutes?)$", "min"),
    (r"^(?:sec|secs|seconds?)$", "s"),
)
_LISTED = {unit.lower(): unit for unit in UNITS if "/min/" in unit or "/h/" in unit or unit in ("fraction", "min", "h")}
Number = TypeVar("Number", float, np.ndarray)


def plain_unit(text: str) -> str:
    """A unit without stray blanks, with u for micro and a large L for litre, as the list of units has it.

    Example:
        >>> plain_unit(" µM "), plain_unit("nmol/l"), plain_unit("10^-6 cm/s"), plain_unit("µl/min/10^6 cells")
        ('uM', 'nmol/L', '1e-6 cm/s', 'uL/min/1e6 cells')
    """
    unit = " ".join(text.replace("µ", "u").replace("μ", "u").replace("⁻⁶", "^-6").replace("⁶", "^6").split())
    small = unit.lower()
    for way, listed in _WAYS:
        small = re.sub(way, listed, small)
    if small != unit.lower() or small in _LISTED:
        return _LISTED.get(small.lower(), small)
    return re.sub(r"/(m?)l$", r"/\1L", unit)


def convert(value: Number, unit: str, wanted: str) -> Number | None:
    """A value, or an array of some, in another unit; None where the units cannot be converted.

    Example:
        >>> convert(0.25, "uM", "nM"), convert(3.0, "mg/L", "nM"), convert(1.5, "h", "min")
        (250.0, None, 90.0)
    """
    if unit == wanted:
        return value
    (quantity, power, times), (other, other_power, other_times) = (
        UNITS.get(unit, ("", 0, 1)),
        UNITS.get(wanted, ("?", 0, 1)),
    )
    if quantity != other:
        return None
    shift = power - other_power
    value = value if times == other_times else value * times / other_times
    return value * 10.0**shift if shift >= 0 else value / 10.0**-shift  # powers from 1 on are exact


def same_unit(unit: str, other: str) -> bool:
    """Whether two units are the same.

    Example:
        >>> same_unit("nM", "nmol/L"), same_unit("uM", "nM"), same_unit("h", "h")
        (True, False, True)
    """
    return convert(1.0, unit, other) == 1.0


def check_units(units: Mapping[str, str], known: Mapping[str, str]) -> None:
    """Refuse values in another unit than those that a model learns or has learnt."""
    for name, unit in known.items():
        wanted, other = (re.sub(r"^log10\((.*)\)$", r"\1", str(text)) for text in (unit, units.get(name, "")))
        if other and wanted in UNITS and not same_unit(other, wanted):
            words = f"the values of {name!r} are in {other} here, and in {wanted} in the training table"
            hint = f"--unit {wanted} (in Python unit={wanted!r}) brings them to it; none reads them as they stand"
            raise MismatchError(words, hint=hint)

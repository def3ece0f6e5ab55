"""Read durations such as ``10m`` as seconds."""

from __future__ import annotations

import math
import re

from molgraph.base.errors import BadValueError

UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


def seconds_of(duration: str | float) -> float:
    """Seconds of a duration: a number of seconds, or a number with s, m (min), h or d.

    Raises:
        BadValueError: anything else, or a duration that is not above 0.

    Example:
        >>> seconds_of("10m"), seconds_of("1.5 h"), seconds_of(30)
        (600.0, 5400.0, 30.0)
    """
    match = re.fullmatch(r"([0-9]*\.?[0-9]+)\s*(s|min|m|h|d|)", str(duration).strip().lower())
    seconds = float(match[1]) * UNITS[match[2]] if match else math.nan
    if not 0 < seconds < math.inf:
        raise BadValueError(f"the budget is {duration!r}", hint="give a time above 0, such as 90s, 10m or 2h")
    return seconds

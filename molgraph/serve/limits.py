"""Define the limits of a server: sizes, times and how much may wait before it refuses."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace

from molgraph.base.errors import BadValueError, UnknownNameError, nearest


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for, and all of them together.

    Args:
        rows: molecules of one request.
        bytes: of one request's body; all bodies that are held at once have at most 32 times as many.
        seconds: that a request may take, its body to arrive and its answer to be computed, each.
        requests: that are answered at once; more are refused with 503.
        waiting: rows that wait for the model at once; more are refused with 503.
        connections: that are open at once; more are refused with 503.
        upload: bytes of a file.
        upload_seconds: that a file may take to arrive.
        jobs: files that are kept at once, done or not; more are refused with 429.
        hours: that the result of a file is kept.

    Raises:
        BadValueError: a limit that is not above 0.
    """

    rows: int = 1_000
    bytes: int = 2_000_000
    seconds: float = 30.0
    requests: int = 256
    waiting: int = 10_000
    connections: int = 512
    upload: int = 100_000_000
    upload_seconds: float = 600.0
    jobs: int = 16
    hours: float = 24.0

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if not 0 < value < float("inf"):
                raise BadValueError(f"the limit {name} is {value}, expected a number above 0", hint=f"as in {name}=100")


def read_limits(texts: Iterable[str]) -> Limits:
    """Limits from texts such as ``rows=500`` or ``rows=500,seconds=10``; those that are not named keep their defaults.

    Raises:
        UnknownNameError: no such limit. BadValueError: no number, or one that is not above 0.

    Example:
        >>> read_limits(["rows=500,seconds=2.5"]).seconds
        2.5
    """
    kinds = {field.name: int if field.type == "int" else float for field in fields(Limits)}
    values: dict[str, float] = {}
    for part in (part.strip() for text in texts for part in text.split(",")):
        name, _, number = part.partition("=")
        if name not in kinds:
            raise UnknownNameError(f"there is no limit {name!r}", hint=nearest(name, kinds))
        try:
            values[name] = kinds[name](number.replace("_", ""))
        except ValueError:
            words = f"the limit {name} is {number!r}, expected a {'whole ' * (kinds[name] is int)}number"
            raise BadValueError(words, hint=f"as in {name}={getattr(Limits(), name)}") from None
    return replace(Limits(), **values)  # type: ignore[arg-type]

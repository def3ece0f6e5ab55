"""Define what goes to the processes that hold the models, and what comes back."""

from __future__ import annotations

from typing import Any, NamedTuple


class Call(NamedTuple):
    """A request to a process: ``predict`` and others, the model's name (empty for none), and what is asked.

    ``rows``: how many molecules it is about, by which the queue counts.
    """

    kind: str
    model: str
    given: dict[str, Any]
    rows: int = 1


class Reply(NamedTuple):
    """An HTTP status and a JSON text; of a prediction the rows alone, without the brackets of their list."""

    status: int
    body: bytes

"""Call the functions of ``answers`` in the process that is asked, so that the server itself loads no torch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from molgraph.serve.calls import Call, Reply


def prepare(given: dict[str, Any]) -> list[dict[str, Any]]:
    """``molgraph.serve.answers.prepare``, in the process that is asked."""
    from molgraph.serve import answers

    return answers.prepare(given)


def answer(calls: Sequence[Call]) -> list[Reply]:
    """``molgraph.serve.answers.answer``, in the process that is asked."""
    from molgraph.serve import answers

    return answers.answer(calls)

"""Describe targets that a table's labels could not teach, in notes and in model files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from molgraph.base.contracts import Target

Unlearned = Mapping[str, str]  # target's name -> why


def notes_of(unlearned: Unlearned) -> tuple[str, ...]:
    """A sentence for each target.

    Example:
        >>> notes_of({"toxic": "only class 0 among 31 training labels"})
        ("target 'toxic' is not learned: only class 0 among 31 training labels; its predictions are empty",)
    """
    return tuple(f"target {name!r} is not learned: {why}; its predictions are empty" for name, why in unlearned.items())


def restore_unlearned(meta: Mapping[str, Any], targets: tuple[Target, ...]) -> dict[str, str]:
    """What a model file says of its targets; a file of a version that refused such targets says nothing.

    Raises:
        ValueError: it names other targets than the model's, or all of them.
    """
    said = meta.get("unlearned", {})
    if not isinstance(said, Mapping):
        raise ValueError("what was not learned is no mapping")
    if not all(isinstance(why, str) and why for why in said.values()) or not set(said) <= {t.name for t in targets}:
        raise ValueError("the targets that were not learned are not the model's own")
    if len(said) == len(targets):
        raise ValueError("none of the targets was learned")
    return dict(said)

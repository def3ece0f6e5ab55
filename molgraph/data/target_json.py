"""Read targets from the JSON values of a model file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from molgraph.base.contracts import Target
from molgraph.base.errors import ModelFileError

LEVELS = ("row", "atom", "bond")
KINDS = ("regression", "binary", "multiclass", "bounded")


def target_from_json(value: Mapping[str, Any]) -> Target:
    """One target.

    Raises:
        ModelFileError: a kind or level that molgraph does not have, or classes or bounds that do not fit the kind.
        KeyError, TypeError, ValueError: a part is missing or of another type.

    Example:
        >>> target_from_json({"name": "y", "kind": "multiclass", "classes": ["a", "b"], "bounds": None}).columns
        ('y:a', 'y:b')
    """
    kind, level, bounds = value["kind"], value.get("level", "row"), value.get("bounds")
    if kind not in KINDS or level not in LEVELS:
        words = f"kind {str(kind)[:40]!r} or level {str(level)[:40]!r}"
        raise ModelFileError(f"the model has a target of unknown {words}")
    low_high = None if bounds is None else (float(bounds[0]), float(bounds[1]))
    target = Target(str(value["name"]), kind, level, tuple(map(str, value["classes"])), low_high)
    if kind == "multiclass" and not target.classes:
        raise ModelFileError(f"the model's target {target.name[:40]!r} has no classes")
    if kind == "bounded" and (low_high is None or not low_high[0] < low_high[1]):
        raise ModelFileError(f"the model's target {target.name[:40]!r} has bounds that cannot be")
    return target


def targets_from_json(values: Any) -> tuple[Target, ...]:
    """Every target of a model, at least one."""
    targets = tuple(target_from_json(value) for value in values)
    if not targets:
        raise ModelFileError("the model has no targets")
    return targets
